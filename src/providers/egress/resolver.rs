//! Resolves names for the guarded client, and lets only public addresses through. The connection goes to the addresses
//! that were checked, without a second lookup in between.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Refusal;
use mailgate_types::public_address::is_public;

/// Time limit for one lookup.
const LOOK_UP: Duration = Duration::from_secs(5);

/// Concurrent lookups. One that has timed out keeps its slot until the system gives up on it.
const PLACES: usize = 128;

/// Why a name can't be used.
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

/// The system's own resolver, followed by the check.
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

/// A single address that isn't public rejects the name: no honest receiver's name resolves to both kinds.
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
                    // The connector fills in the URL's own port.
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
