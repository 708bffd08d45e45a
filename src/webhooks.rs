//! Floor 2: webhooks. What happens is written for an app's endpoints in the transaction that makes it
//! happen, so that neither is there without the other.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::storage::webhook_messages::{self, NewMessage};
use crate::types::event::Event;
use crate::types::ids::{AppId, LogId, uuid_at};

/// Something that happened.
#[derive(Debug, Clone)]
pub struct Emission {
    /// Whose event it is.
    pub app: AppId,
    /// What happened.
    pub event: Event,
    /// The log row that it tells of.
    pub log: Option<LogId>,
}

impl Emission {
    /// An event that tells of no message.
    #[must_use]
    pub fn of(app: AppId, event: Event) -> Self {
        Self {
            app,
            event,
            log: None,
        }
    }
}

/// Writes events for each endpoint of their apps, within the caller's transaction.
///
/// # Errors
///
/// What the database said.
pub async fn emit(
    connection: &mut PgConnection,
    emissions: &[Emission],
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    if emissions.is_empty() {
        return Ok(());
    }
    webhook_messages::insert(connection, &messages(emissions, at), at).await
}

/// Events as they lie in the outbox, for whoever writes them together with other things.
#[must_use]
pub fn messages(emissions: &[Emission], at: DateTime<Utc>) -> Vec<NewMessage> {
    emissions
        .iter()
        .map(|emission| NewMessage {
            id: uuid_at(at),
            app: emission.app,
            event: emission.event.name(),
            log: emission.log,
            body: emission.event.body(emission.app, at),
        })
        .collect()
}

/// Takes back, within the caller's transaction, what was to be told of a message that counts as never
/// taken.
///
/// # Errors
///
/// What the database said.
pub async fn withdraw(
    connection: &mut PgConnection,
    app: AppId,
    log: LogId,
) -> Result<(), sqlx::Error> {
    webhook_messages::withdraw(connection, app, log).await
}
