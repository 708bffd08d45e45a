//! Whether the credential that authenticated a request still does: read within the transaction of what the request
//! changes, so that the credential's end waits for that or comes before it.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::audit::{Credential, Shown};

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

/// Keeps a subscriber and the credential that it has shown as they are until the transaction ends.
///
/// # Errors
///
/// One of which [`has_ended`] is true where the credential, or the subscriber, is no more.
pub async fn keep(
    connection: &mut PgConnection,
    shown: Shown,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let is_there = match shown.credential {
        Credential::ApiSecret { since } => {
            let current = sqlx::query_scalar!(
                "SELECT credentials_since FROM subscribers WHERE id = $1 FOR KEY SHARE",
                shown.subscriber.0,
            )
            .fetch_optional(connection)
            .await?;
            current == Some(since)
        }
        Credential::AdditionalSecret(id) => sqlx::query_scalar!(
            r#"SELECT true AS "is_there!"
               FROM subscribers JOIN api_secrets ON subscriber_id = subscribers.id
               WHERE subscribers.id = $1 AND api_secrets.id = $2
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
               WHERE subscribers.id = $1 AND portal_sessions.id = $2
               FOR KEY SHARE"#,
            shown.subscriber.0,
            id.0,
        )
        .fetch_optional(connection)
        .await?
        .is_some(),
        Credential::Link => sqlx::query_scalar!(
            r#"SELECT true AS "is_there!" FROM subscribers WHERE id = $1 FOR KEY SHARE"#,
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
