//! The table `sign_of_life`: its one row.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::sign_of_life::SignOfLife;

/// The last sign of life, and the database's time.
pub async fn read(
    connection: &mut PgConnection,
) -> Result<(SignOfLife, DateTime<Utc>), sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT observed_at, trusted_at, held_since, clock_timestamp() AS "now!" FROM sign_of_life"#
    )
    .fetch_one(connection)
    .await?;
    let last = SignOfLife {
        observed_at: row.observed_at,
        trusted_at: row.trusted_at,
        held_since: row.held_since,
    };
    Ok((last, row.now))
}

/// Replaces the sign of life; `false` if it has changed meanwhile.
pub async fn replace(
    connection: &mut PgConnection,
    last: SignOfLife,
    next: SignOfLife,
) -> Result<bool, sqlx::Error> {
    let replaced = sqlx::query!(
        "UPDATE sign_of_life SET observed_at = $4, trusted_at = $5, held_since = $6
         WHERE observed_at = $1 AND trusted_at = $2 AND held_since IS NOT DISTINCT FROM $3",
        last.observed_at,
        last.trusted_at,
        last.held_since,
        next.observed_at,
        next.trusted_at,
        next.held_since,
    )
    .execute(connection)
    .await?;
    Ok(replaced.rows_affected() == 1)
}

/// Trusts the database's clock as it is; returns the previous state.
pub async fn trust(
    connection: &mut PgConnection,
) -> Result<(SignOfLife, DateTime<Utc>), sqlx::Error> {
    loop {
        let (last, now) = read(connection).await?;
        if replace(connection, last, SignOfLife::trusted(now)).await? {
            return Ok((last, now));
        }
    }
}
