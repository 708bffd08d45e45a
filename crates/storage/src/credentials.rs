//! Whether the credential that authenticated a request still does: read within the transaction of what the request
//! changes, so that the credential's end waits for that or comes before it.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::audit::{Credential, Shown};
use mailgate_types::ids::SubscriberId;

/// How long a credential's end waits: longer than changes by a credential take, a replay of webhooks too.
const LOCK_TIMEOUT: &str = "25s";

/// A statement's time counts the wait for a lock too.
const STATEMENT_TIMEOUT: &str = "30s";

/// The credential was renewed, deleted or has expired since the request was authenticated.
///
/// It comes as an [`sqlx::Error`], like whatever else keeps a transaction from beginning: every door has one answer to
/// these, so no operation can forget this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the credential that the request came with has ended")]
struct Ended;

/// Whether a transaction didn't begin because its author's credential has ended.
#[must_use]
pub fn has_ended(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::AnyDriverError(cause) if cause.is::<Ended>())
}

/// Has a subscriber's credentials to itself until the transaction ends: changes by them have ended, and new ones wait.
/// They queue by an advisory lock. By the row's alone, those that share it would overtake whoever wants it alone, again
/// and again.
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

/// Until the transaction ends, or they are set again.
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

/// Keeps a subscriber and the credential that it has shown as they are until the transaction ends.
///
/// # Errors
///
/// One of which [`has_ended`] is true where the credential, or the subscriber, is no more, or is deleted.
pub async fn keep(
    connection: &mut PgConnection,
    shown: Shown,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    // A statement of its own: the next one sees what was committed while this one waited.
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
