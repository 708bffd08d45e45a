//! What is held for callers that have not shown a key yet: header, body and answer are counted against one small
//! budget, of which an address has a share. A caller that proves who it is counts no more.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};

use mailgate_types::budget::{Budget, NoRoom, Share};
use mailgate_types::neighbourhood::neighbourhood;

/// What a request without a header's worth of bytes costs all the same.
const LEAST: usize = 1024;

/// The share of the budget that one address has, as a part of the whole.
const PARTS: usize = 4;

/// What may be held for all of them.
pub type Strangers = Budget<IpAddr>;

/// Room for `bytes`, a quarter of it for one address.
#[must_use]
pub fn strangers(bytes: usize) -> Strangers {
    Budget::new(bytes, bytes / PARTS)
}

/// Too many requests of this address's come through a proxy: set by the listener.
#[derive(Debug, Clone, Copy)]
pub struct Crowded;

/// Somebody who has not authenticated, until it does. The listener keeps it until the answer is out.
#[derive(Debug, Clone)]
pub struct Stranger {
    share: Arc<Mutex<Option<Share<IpAddr>>>>,
}

impl Stranger {
    /// A caller of whom the header has come.
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

    /// Holds so many bytes more, unless the caller has authenticated.
    pub fn grow(&self, bytes: usize) -> Result<(), NoRoom> {
        self.share()
            .as_mut()
            .map_or(Ok(()), |share| share.grow(bytes))
    }

    /// The caller has authenticated: what it holds is counted elsewhere.
    pub fn authenticated(&self) {
        self.share().take();
    }

    /// Whether it still hasn't.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.share().is_some()
    }
}

/// The caller of this request has authenticated.
pub fn authenticated(parts: &Parts) {
    if let Some(stranger) = parts.extensions.get::<Stranger>() {
        stranger.authenticated();
    }
}

/// Bytes of a request's header, about.
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
