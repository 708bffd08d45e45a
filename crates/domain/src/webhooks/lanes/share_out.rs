//! Shares out the room for leases: in total, by subscriber and by endpoint.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Lanes;
use super::lane::{FIRST, WINDOW};
use super::owner::Owner;
use mailgate_types::ids::EndpointId;

/// The share of all leases that one subscriber may have.
pub(super) const PARTS: usize = 4;

impl<T> Lanes<T> {
    /// The number that may be leased in total.
    pub(super) fn most(&self) -> usize {
        self.concurrency.saturating_mul(4).max(2 * WINDOW)
    }

    /// The number that may still be leased in total.
    pub(in crate::webhooks) fn room(&self) -> usize {
        self.most().saturating_sub(self.waiting + self.in_flight)
    }

    /// The number that may still be leased for one subscriber.
    fn room_of_owner(&self, owner: Owner) -> usize {
        let leased = self.by_owner.get(&owner).map_or(0, |owned| owned.leased);
        (self.most() / PARTS).saturating_sub(leased)
    }

    /// Divides the room among endpoints with ready deliveries, `most` deliveries at most. Endpoints that have a lane
    /// are marked as having more.
    pub(in crate::webhooks) fn share_out(
        &mut self,
        endpoints: &[EndpointId],
        most: usize,
    ) -> Vec<(EndpointId, i64)> {
        let mut left = self.room().min(most);
        // A new endpoint's owner is known only from its first deliveries, so new endpoints leave most of the room to
        // the others.
        let mut left_to_new = self.room() / PARTS;
        let mut waiting = endpoints.len();
        let mut places = Vec::with_capacity(waiting);
        let mut left_of: HashMap<Owner, usize> = HashMap::new();
        for endpoint in endpoints {
            // Room that earlier endpoints leave unused is available to later ones.
            let share = left.div_ceil(waiting.max(1));
            waiting -= 1;
            let wanted = self.room_of(*endpoint);
            let mut number = wanted.min(share);
            if let Some(lane) = self.by_endpoint.get_mut(endpoint) {
                lane.has_more = true;
                let owner = lane.owner;
                let left_of = match left_of.entry(owner) {
                    Entry::Occupied(left_of) => left_of.into_mut(),
                    Entry::Vacant(left_of) => left_of.insert(self.room_of_owner(owner)),
                };
                number = number.min(*left_of);
                *left_of -= number;
            } else {
                number = number.min(left_to_new);
                left_to_new -= number;
            }
            if number > 0 {
                left -= number;
                places.push((*endpoint, i64::try_from(number).unwrap_or(i64::MAX)));
            }
        }
        places
    }

    /// The number that may still be leased for an endpoint: its places, plus its deliveries in [`AHEAD`].
    pub(in crate::webhooks) fn room_of(&self, endpoint: EndpointId) -> usize {
        let Some(lane) = self.by_endpoint.get(&endpoint) else {
            return FIRST.min(self.endpoint_concurrency);
        };
        lane.room()
    }
}
