//! Resolves names for the guarded client, and lets only public addresses through. The connection goes to the addresses
//! that were checked, without a second lookup in between.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::time::timeout;

use super::Refusal;
use mailgate_types::ids::SubscriberId;
use mailgate_types::public_address::is_public;
use mailgate_types::shared_places::SharedPlaces;

/// Time limit for one lookup.
const LOOK_UP: Duration = Duration::from_secs(5);

/// Concurrent lookups, in total and per subscriber. One that has timed out keeps its place until the system gives up on
/// it, which takes long if a name server never responds.
const PLACES: usize = 128;
const PLACES_OF_A_SUBSCRIBER: usize = 32;

/// The subscriber for whom a name is looked up.
pub(super) type Asker = Option<SubscriberId>;

tokio::task_local! {
    /// The subscriber of this task's exchange: the client passes its resolver only the name.
    pub(super) static ASKER: Asker;
}

/// Why a name can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResolveError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("DNS lookup failed: {0}")]
    Failed(#[from] std::io::Error),
    #[error("the name has no address")]
    Empty,
    #[error("DNS lookup took longer than 5 seconds")]
    TimedOut,
}

/// The system's own resolver, followed by the check.
#[derive(Debug)]
pub(super) struct GuardedResolver {
    allow_private: bool,
    places: SharedPlaces<Asker>,
}

impl GuardedResolver {
    pub(super) fn new(allow_private: bool) -> Self {
        Self {
            allow_private,
            places: SharedPlaces::new(PLACES, PLACES_OF_A_SUBSCRIBER),
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
        let (allow_private, places) = (self.allow_private, self.places.clone());
        let asker = ASKER.try_with(|asker| *asker).unwrap_or_default();
        Box::pin(async move {
            let looked_up = timeout(LOOK_UP, async {
                let place = places.take_within(asker, LOOK_UP).await;
                let place = place.map_err(|_| ResolveError::TimedOut)?;
                let looking = tokio::task::spawn_blocking(move || {
                    use std::net::ToSocketAddrs;
                    let _place = place;
                    // The connector fills in the URL's own port.
                    (name.as_str(), 0).to_socket_addrs().map(Vec::from_iter)
                });
                let looked_up = looking.await.unwrap_or_else(|gone| Err(gone.into()));
                Ok(looked_up?)
            });
            let addresses = looked_up.await.unwrap_or(Err(ResolveError::TimedOut))?;
            let checked = check(addresses, allow_private)?;
            Ok(Box::new(checked.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the subscriber of each lookup.
    #[derive(Default)]
    struct Noted(std::sync::Mutex<Vec<Asker>>);

    impl Noted {
        fn askers(&self) -> std::sync::MutexGuard<'_, Vec<Asker>> {
            self.0
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }

    impl Resolve for Noted {
        fn resolve(&self, _: Name) -> Resolving {
            let asker = ASKER.try_with(|asker| *asker).unwrap_or_default();
            self.askers().push(asker);
            Box::pin(async { Err(ResolveError::Empty.into()) })
        }
    }

    #[tokio::test]
    async fn the_resolver_knows_for_whom_it_is_asked() -> Result<(), crate::egress::EgressSetupError>
    {
        let noted = std::sync::Arc::new(Noted::default());
        let tls = crate::tls::client(None)?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.as_ref().clone())
            .no_proxy()
            .dns_resolver(std::sync::Arc::clone(&noted));
        let client = client.build()?;
        let askers: Vec<Asker> = (1..=20)
            .map(|number| Some(SubscriberId(uuid::Uuid::from_u128(number))))
            .collect();
        let asking = askers.iter().map(|asker| {
            let request = client.get("http://receiver.example/").send();
            ASKER.scope(*asker, request)
        });
        for answer in futures_util::future::join_all(asking).await {
            assert!(answer.is_err());
        }
        let mut noted = std::mem::take(&mut *noted.askers());
        noted.sort();
        assert_eq!(noted, askers);
        Ok(())
    }

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
