//! Looks names up for the guarded client, and lets only public addresses through. The connection goes to
//! the addresses that were checked, and no second look-up comes between.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Refusal;
use mailgate_types::public_address::is_public;

/// How long a name may take.
const LOOK_UP: Duration = Duration::from_secs(5);

/// Look-ups at once. One that has timed out keeps its place until the system gives it up.
const PLACES: usize = 128;

/// A name that can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResolveError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the name can't be looked up: {0}")]
    Failed(#[from] std::io::Error),
    #[error("the name has no address")]
    Empty,
    #[error("looking the name up took longer than 5 seconds")]
    TimedOut,
}

/// The system's own resolver, and the check behind it.
#[derive(Debug)]
pub(super) struct GuardedResolver {
    allow_private: bool,
    places: Arc<Semaphore>,
}

impl GuardedResolver {
    pub(super) fn new(allow_private: bool) -> Self {
        Self {
            allow_private,
            places: Arc::new(Semaphore::new(PLACES)),
        }
    }
}

/// One address that isn't public refuses all: a name that has both is no honest receiver's.
pub(super) fn check(
    addresses: Vec<SocketAddr>,
    allow_private: bool,
) -> Result<Vec<SocketAddr>, ResolveError> {
    if addresses.is_empty() {
        return Err(ResolveError::Empty);
    }
    if !allow_private && !addresses.iter().all(|address| is_public(address.ip())) {
        return Err(Refusal::Address.into());
    }
    Ok(addresses)
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (allow_private, places) = (self.allow_private, Arc::clone(&self.places));
        Box::pin(async move {
            let looked_up = timeout(LOOK_UP, async {
                let place = places.acquire_owned().await;
                let looking = tokio::task::spawn_blocking(move || {
                    use std::net::ToSocketAddrs;
                    let _place = place;
                    // The connector puts the URL's own port in.
                    (name.as_str(), 0).to_socket_addrs().map(Vec::from_iter)
                });
                looking.await.unwrap_or_else(|gone| Err(gone.into()))
            });
            let addresses = looked_up
                .await
                .map_err(|_| ResolveError::TimedOut)?
                .map_err(ResolveError::Failed)?;
            let checked = check(addresses, allow_private)?;
            Ok(Box::new(checked.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_private_address_refuses_the_name() {
        let address = |text: &str| SocketAddr::new(text.parse().unwrap_or([0; 4].into()), 0);
        let refused = |addresses: &[&str]| {
            let addresses = addresses.iter().map(|text| address(text)).collect();
            matches!(
                check(addresses, false),
                Err(ResolveError::Refused(Refusal::Address))
            )
        };
        assert!(!refused(&["1.1.1.1", "2606:4700:4700::1111"]));
        assert!(refused(&["1.1.1.1", "10.0.0.1"]));
        assert!(refused(&["2606:4700:4700::1111", "::1"]));
        assert!(check(vec![address("10.0.0.1")], true).is_ok());
        assert!(matches!(check(vec![], true), Err(ResolveError::Empty)));
    }
}
