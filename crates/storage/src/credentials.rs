//! Checks that the credential of a request is still valid, within the transaction of the request's changes, so that the
//! credential ends either before or after it.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::audit::{Credential, Shown};
use mailgate_types::ids::SubscriberId;

/// How long a credential's end waits: longer than any change by a credential takes, including a replay of webhooks.
const LOCK_TIMEOUT: &str = "25s";

/// A statement's time counts the wait for a lock too.
const STATEMENT_TIMEOUT: &str = "30s";

/// The credential was renewed, deleted or has expired since the request was authenticated.
/// It is an [`sqlx::Error`], like any other failure to begin a transaction: every interface handles these in one place,
/// so no operation can forget this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the credential that the request came with has ended")]
struct Ended;

/// Whether a transaction didn't begin because its author's credential has ended.
#[must_use]
pub fn has_ended(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::AnyDriverError(cause) if cause.is::<Ended>())
}

/// Locks a subscriber's credentials exclusively until the transaction ends: changes by them have ended, and new ones
/// wait. They queue on an advisory lock: with the row's lock alone, shared holders would starve an exclusive one.
pub async fn lock(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<(), sqlx::Error> {
    let before = sqlx::query!(
        r#"SELECT current_setting('lock_timeout') AS "lock!", current_setting('statement_timeout') AS "statement!""#,
    )
    .fetch_one(&mut *connection)
    .await?;
    set_timeouts(connection, LOCK_TIMEOUT, STATEMENT_TIMEOUT).await?;
    sqlx::query_scalar!(
        "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text",
        name(subscriber),
    )
    .fetch_one(&mut *connection)
    .await?;
    set_timeouts(connection, &before.lock, &before.statement).await
}

/// Lasts until the transaction ends, or they are set again.
async fn set_timeouts(
    connection: &mut PgConnection,
    lock: &str,
    statement: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "SELECT set_config('lock_timeout', $1, true) AS lock,
                set_config('statement_timeout', $2, true) AS statement",
        lock,
        statement,
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// The name of the advisory lock.
fn name(subscriber: SubscriberId) -> String {
    format!("credentials {}", subscriber.0)
}

/// Keeps a subscriber and its presented credential unchanged until the transaction ends.
///
/// # Errors
/// An error for which [`has_ended`] is true if the credential or the subscriber has ended or was deleted.
pub async fn keep(
    connection: &mut PgConnection,
    shown: Shown,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    // A separate statement: the next one sees commits made while this one waited.
    sqlx::query_scalar!(
        "SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))::text",
        name(shown.subscriber),
    )
    .fetch_one(&mut *connection)
    .await?;
    let is_there = match shown.credential {
        Credential::ApiSecret { since } => {
            let current = sqlx::query_scalar!(
                "SELECT credentials_since FROM subscribers
                 WHERE id = $1 AND deletion_due_at IS NULL FOR KEY SHARE",
                shown.subscriber.0,
            )
            .fetch_optional(connection)
            .await?;
            current == Some(since)
        }
        Credential::AdditionalSecret(id) => sqlx::query_scalar!(
            r#"SELECT true AS "is_there!"
               FROM subscribers JOIN api_secrets ON subscriber_id = subscribers.id
               WHERE subscribers.id = $1 AND api_secrets.id = $2 AND deletion_due_at IS NULL
                     AND (expires_at IS NULL OR expires_at > $3)
               FOR KEY SHARE"#,
            shown.subscriber.0,
            id.0,
            now,
        )
        .fetch_optional(connection)
        .await?
        .is_some(),
        Credential::PortalSession(id) => sqlx::query_scalar!(
            r#"SELECT true AS "is_there!"
               FROM subscribers JOIN portal_sessions ON subscriber_id = subscribers.id
               WHERE subscribers.id = $1 AND portal_sessions.id = $2 AND deletion_due_at IS NULL
               FOR KEY SHARE"#,
            shown.subscriber.0,
            id.0,
        )
        .fetch_optional(connection)
        .await?
        .is_some(),
        Credential::Link => sqlx::query_scalar!(
            r#"SELECT true AS "is_there!" FROM subscribers
               WHERE id = $1 AND deletion_due_at IS NULL FOR KEY SHARE"#,
            shown.subscriber.0,
        )
        .fetch_optional(connection)
        .await?
        .is_some(),
    };
    if is_there {
        Ok(())
    } else {
        Err(sqlx::Error::AnyDriverError(Box::new(Ended)))
    }
}
