//! Places for requests of subscribers: what they ask for takes the database's connections, and their bodies memory. The
//! main API secret, the additional ones together, and the portal have their own, so that nobody who got hold of one of
//! these keeps the owner from ending it.

use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use super::Accounts;
use mailgate_types::audit::{Author, Credential};
use mailgate_types::ids::SubscriberId;
use mailgate_types::shared_places::{Busy, Joined, Place, SharedPlaces};

/// Requests of one way in that are served or wait for a place, and how long they wait.
const WAITING: usize = 64;
const PATIENCE: Duration = Duration::from_secs(5);

/// Whose: the subscriber, and how it was let in.
type Holder = (SubscriberId, Discriminant<Credential>);

/// The places of a process.
pub(super) type RequestPlaces = SharedPlaces<Holder>;

/// Places that leave each holder a fifth of the database's connections, two at least.
pub(super) fn request_places(connections: u32) -> RequestPlaces {
    let each = usize::try_from(connections / 5).unwrap_or_default().max(2);
    SharedPlaces::unshared(each)
}

/// The place of a request, until it is dropped.
#[derive(Debug)]
pub struct RequestPlace(
    #[expect(dead_code, reason = "it is held")] Option<(Place, Joined<Holder>)>,
);

impl Accounts {
    /// A place for a request of a subscriber, as soon as there is one.
    ///
    /// # Errors
    ///
    /// [`Busy`]: the subscriber has too many requests in progress.
    pub async fn request_place(&self, author: &Author) -> Result<RequestPlace, Busy> {
        let Some(shown) = author.shown else {
            return Ok(RequestPlace(None));
        };
        let holder = (shown.subscriber, discriminant(&shown.credential));
        let joined = self.request_places.join(holder, WAITING).ok_or(Busy)?;
        let place = joined.place_within(PATIENCE).await?;
        Ok(RequestPlace(Some((place, joined))))
    }
}
