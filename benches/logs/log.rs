//! A log to measure on.

use mailgate_domain::reports::Reports;
use mailgate_types::ids::{AppId, SubscriberId};
use sqlx::PgPool;

/// Days that the logs cover.
pub const DAYS: u64 = 90;

/// A database with a subscriber and its apps.
pub struct Log {
    pub database: String,
    pub pool: PgPool,
    pub reports: Reports,
    pub subscriber: SubscriberId,
    /// By their creation.
    pub apps: Vec<AppId>,
    pub rows: u64,
}
