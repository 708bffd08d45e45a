//! A subscriber's own account: itself, its API secrets, its portal sessions, its audit trail.

mod api_secret_fields;
pub(super) mod api_secrets;
pub(super) mod audit;
pub(super) mod me;
mod minted_since;
mod minted_staying;
pub(super) mod portal_sessions;
pub(super) mod subscribers;
