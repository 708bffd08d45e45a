//! The subscriber that some lanes belong to.

use std::collections::VecDeque;

use mailgate_types::ids::{EndpointId, SubscriberId};

/// The owner of an endpoint; those of deleted apps share one.
pub(super) type Owner = Option<SubscriberId>;

/// What the lanes of an owner have in total, and those of them that are set aside.
#[derive(Debug, Default)]
pub(super) struct Owned {
    pub(super) leased: usize,
    pub(super) in_flight: usize,
    /// Whether its lanes rejoin the queue in turn.
    pub(super) in_turn: bool,
    /// Lanes that have something to start once the subscriber has fewer in flight, or more places are free.
    pub(super) aside: VecDeque<EndpointId>,
}
