//! The table `subscribers`: reactivations, one at a time, and their requests for a new subscription.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::SubscriberId;

/// Takes the lease for reactivating a subscription, for the length from `now` to `lease_until`, by the database's
/// clock; `false` if another process holds it.
pub async fn claim(
    connection: &mut PgConnection,
    id: SubscriberId,
    now: DateTime<Utc>,
    lease_until: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let claimed = sqlx::query!(
        "UPDATE subscribers
         SET reactivation_lease_until = now() + ($3::timestamptz - $2::timestamptz)
         WHERE id = $1
               AND (reactivation_lease_until IS NULL OR reactivation_lease_until <= now())",
        id.0,
        now,
        lease_until,
    )
    .execute(connection)
    .await?;
    Ok(claimed.rows_affected() == 1)
}

/// Releases that lease.
pub async fn release(connection: &mut PgConnection, id: SubscriberId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE subscribers SET reactivation_lease_until = NULL WHERE id = $1",
        id.0,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A request for a new subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewal {
    /// Its number, for the provider's idempotency key.
    pub number: i32,
    /// The requested quantity.
    pub quantity: i64,
}

/// Begins a request at `now` for the subscription that replaces the one that has `ended`; `None` if the subscriber was
/// deleted. While the result of the last request, sent after `unknown_since`, is unknown, this repeats it; else it is a
/// new one, for this quantity.
pub async fn begin(
    connection: &mut PgConnection,
    id: SubscriberId,
    ended: &str,
    quantity: i64,
    now: DateTime<Utc>,
    unknown_since: DateTime<Utc>,
) -> Result<Option<Renewal>, sqlx::Error> {
    sqlx::query_as!(
        Renewal,
        r#"UPDATE subscribers
           SET renewal_number = CASE WHEN renewal_of = $2 AND renewal_at > $5 THEN renewal_number
                                     ELSE renewal_number + 1 END,
               renewal_quantity = CASE WHEN renewal_of = $2 AND renewal_at > $5 THEN renewal_quantity
                                       ELSE $3 END,
               renewal_of = $2, renewal_at = $4
           WHERE id = $1
           RETURNING renewal_number AS number, renewal_quantity AS "quantity!""#,
        id.0,
        ended,
        quantity,
        now,
        unknown_since,
    )
    .fetch_optional(connection)
    .await
}

/// Stores that the provider has certainly refused the request with this number: the next one is new.
pub async fn refuse(
    connection: &mut PgConnection,
    id: SubscriberId,
    number: i32,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE subscribers SET renewal_at = NULL WHERE id = $1 AND renewal_number = $2",
        id.0,
        number,
    )
    .execute(connection)
    .await?;
    Ok(())
}
