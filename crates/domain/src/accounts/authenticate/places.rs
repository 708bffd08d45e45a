//! Limits concurrent requests per subscriber: they take database connections, and their bodies memory. The main API
//! secret, the additional ones together, and the portal have separate limits, so that a thief of one of them can't keep
//! the owner from ending it. One additional secret, or one session of the portal, gets half of its limit at most.

use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use tokio::time::timeout;
use uuid::Uuid;

use crate::accounts::Accounts;
use mailgate_types::audit::{Author, Credential};
use mailgate_types::ids::SubscriberId;
use mailgate_types::shared_places::{Busy, Joined, Place, SharedPlaces};

/// Requests of one credential, and of one kind of credential, that run or wait for a place, and how long they wait.
const WAITING: usize = 64;
const WAITING_TOGETHER: usize = 4 * WAITING;
const PATIENCE: Duration = Duration::from_secs(5);

/// The owner of a place: the subscriber, and its kind of credential.
type Holder = (SubscriberId, Discriminant<Credential>);

/// The places of a process.
#[derive(Debug, Clone)]
pub(in crate::accounts) struct RequestPlaces {
    /// Of one kind of credential.
    together: SharedPlaces<Holder>,
    /// Of one of several credentials of a kind.
    own: SharedPlaces<Uuid>,
}

impl RequestPlaces {
    /// Places such that each holder gets a fifth of the database's connections, at least two.
    pub(in crate::accounts) fn new(connections: u32) -> Self {
        let each = usize::try_from(connections / 5).unwrap_or_default().max(2);
        Self {
            together: SharedPlaces::unshared(each),
            own: SharedPlaces::unshared(each.div_ceil(2)),
        }
    }
}

/// The place of a request, until it is dropped.
#[derive(Debug)]
pub struct RequestPlace(#[expect(dead_code, reason = "it is held")] Option<Held>);

#[derive(Debug)]
#[expect(dead_code, reason = "they are held")]
struct Held {
    places: (Option<Place>, Place),
    joined: (Option<Joined<Uuid>>, Joined<Holder>),
}

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
        let RequestPlaces { together, own } = &self.request_places;
        // The credential's own place first: a request that waits for it blocks no other credential.
        let own = match one_of_several(shown.credential) {
            Some(id) => Some(own.join(id, WAITING).ok_or(Busy)?),
            None => None,
        };
        let holder = (shown.subscriber, discriminant(&shown.credential));
        let most = own.as_ref().map_or(WAITING, |_| WAITING_TOGETHER);
        let together = together.join(holder, most).ok_or(Busy)?;
        let places = async {
            let own = match &own {
                Some(own) => Some(own.place().await),
                None => None,
            };
            (own, together.place().await)
        };
        let places = timeout(PATIENCE, places).await.map_err(|_| Busy)?;
        let joined = (own, together);
        Ok(RequestPlace(Some(Held { places, joined })))
    }
}

/// The id of a credential, of a kind that a subscriber can have several of.
fn one_of_several(credential: Credential) -> Option<Uuid> {
    match credential {
        Credential::AdditionalSecret(id) => Some(id.0),
        Credential::PortalSession(id) => Some(id.0),
        Credential::ApiSecret { .. } | Credential::Link => None,
    }
}
