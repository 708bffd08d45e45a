//! The memory held for unauthenticated callers: headers, bodies and responses count against one small budget, with a
//! share per address. A caller that authenticates no longer counts.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};

use mailgate_types::budget::{Budget, NoRoom, Share};
use mailgate_types::neighbourhood::neighbourhood;

/// The minimum cost of a request.
const LEAST: usize = 1024;

/// The divisor of the budget for one address's share.
const PARTS: usize = 4;

/// The budget for all unauthenticated callers.
pub type Strangers = Budget<IpAddr>;

/// Creates a budget of `bytes`, a quarter of it per address.
#[must_use]
pub fn strangers(bytes: usize) -> Strangers {
    Budget::new(bytes, bytes / PARTS)
}

/// Set by the listener: this address has too many requests through a proxy.
#[derive(Debug, Clone, Copy)]
pub struct Crowded;

/// An unauthenticated caller's bytes. The listener keeps it until the response is sent.
#[derive(Debug, Clone)]
pub struct Stranger {
    share: Arc<Mutex<Option<Share<IpAddr>>>>,
}

impl Stranger {
    /// Starts counting a caller, whose header has arrived.
    pub fn begin(strangers: &Strangers, address: IpAddr, header: usize) -> Result<Self, NoRoom> {
        let mut share = strangers.share(neighbourhood(address));
        share.hold(header.max(LEAST))?;
        Ok(Self {
            share: Arc::new(Mutex::new(Some(share))),
        })
    }

    fn share(&self) -> MutexGuard<'_, Option<Share<IpAddr>>> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds this many more bytes, unless the caller has authenticated.
    pub fn grow(&self, bytes: usize) -> Result<(), NoRoom> {
        self.share()
            .as_mut()
            .map_or(Ok(()), |share| share.grow(bytes))
    }

    /// The caller has authenticated: its bytes are counted elsewhere.
    pub fn authenticated(&self) {
        self.share().take();
    }

    /// Whether the caller hasn't authenticated yet.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.share().is_some()
    }
}

/// Marks this request's caller as authenticated.
pub fn authenticated(parts: &Parts) {
    if let Some(stranger) = parts.extensions.get::<Stranger>() {
        stranger.authenticated();
    }
}

/// The approximate size of a request's header, in bytes.
pub fn header_bytes(uri: &Uri, headers: &HeaderMap) -> usize {
    let target = uri.path().len() + uri.query().map_or(0, str::len);
    headers.iter().fold(target, |bytes, (name, value)| {
        bytes + name.as_str().len() + value.len()
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn who_authenticates_gives_the_room_back() {
        let strangers = strangers(100_000);
        let one = IpAddr::from([192, 0, 2, 1]);
        let stranger = Stranger::begin(&strangers, one, 20_000).unwrap();
        assert!(stranger.grow(10_000).is_err(), "a quarter for one address");
        stranger.grow(5_000).unwrap();
        assert!(Stranger::begin(&strangers, one, 0).is_err());
        let another = IpAddr::from([192, 0, 2, 2]);
        assert!(Stranger::begin(&strangers, another, 0).is_ok());
        stranger.authenticated();
        assert!(!stranger.is_one());
        stranger.grow(1_000_000).unwrap();
        assert!(Stranger::begin(&strangers, one, 25_000).is_ok());
    }
}
