//! A mailbox's tokens, and the lease for refreshing them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{CredentialId, GatewayId};

/// Takes the lease for refreshing a mailbox's token, by the database's clock. `false` if another process holds it, or
/// the token is no longer of `generation`, or the mailbox is no longer active. The lease of a gateway ends with it.
pub async fn claim_refresh(
    connection: &mut PgConnection,
    id: CredentialId,
    generation: i64,
    lease: Duration,
    gateway: Option<GatewayId>,
) -> Result<bool, sqlx::Error> {
    let claimed = sqlx::query!(
        "UPDATE mailboxes
         SET refresh_lease_until = now() + make_interval(secs => $3), refresh_gateway_id = $4
         WHERE id = $1 AND token_generation = $2 AND status = 'active'
           AND (refresh_lease_until IS NULL OR refresh_lease_until < now())",
        id.0,
        generation,
        lease.as_secs_f64(),
        gateway.map(|gateway| gateway.0),
    )
    .execute(connection)
    .await?;
    Ok(claimed.rows_affected() == 1)
}

/// Makes refreshes due again that these processes had begun when they ended: the response may be lost, and with it the
/// only refresh token that the provider still accepts. Locked ones are left to their lease. Returns their number.
pub async fn refresh_again(
    connection: &mut PgConnection,
    ended: &[GatewayId],
    now: DateTime<Utc>,
) -> Result<u64, sqlx::Error> {
    let ended: Vec<Uuid> = ended.iter().map(|id| id.0).collect();
    let begun = sqlx::query!(
        "UPDATE mailboxes
         SET refresh_lease_until = NULL, refresh_gateway_id = NULL,
             refresh_due_at = least(refresh_due_at, $2)
         WHERE id = ANY(ARRAY(
             SELECT id FROM mailboxes WHERE refresh_gateway_id = ANY($1) FOR UPDATE SKIP LOCKED
         ))",
        &ended,
        now,
    )
    .execute(connection)
    .await?;
    Ok(begun.rows_affected())
}

/// Releases the refresh lease without a new token.
pub async fn release_refresh(
    connection: &mut PgConnection,
    id: CredentialId,
    generation: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE mailboxes SET refresh_lease_until = NULL, refresh_gateway_id = NULL
         WHERE id = $1 AND token_generation = $2",
        id.0,
        generation,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores new tokens of an active mailbox, releases the refresh lease, and returns the new generation;
/// `refresh_due_at` is when an unused token is refreshed. Without `refresh_token_sealed` the old one stays. With
/// `refreshed`, the generation that was refreshed, only if that is still the stored one: `None` if the mailbox was
/// reconnected or has ended, or another refresh came first.
pub async fn store_tokens(
    connection: &mut PgConnection,
    id: CredentialId,
    refreshed: Option<i64>,
    access_token_sealed: &[u8],
    refresh_token_sealed: Option<&[u8]>,
    expires_at: DateTime<Utc>,
    refresh_due_at: DateTime<Utc>,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar!(
        "UPDATE mailboxes
         SET access_token_sealed = $3, refresh_token_sealed = coalesce($4, refresh_token_sealed),
             access_token_expires_at = $5, token_generation = token_generation + 1,
             refresh_lease_until = NULL, refresh_gateway_id = NULL, refresh_due_at = $6
         WHERE id = $1 AND status = 'active' AND ($2::bigint IS NULL OR token_generation = $2)
         RETURNING token_generation",
        id.0,
        refreshed,
        access_token_sealed,
        refresh_token_sealed,
        expires_at,
        refresh_due_at,
    )
    .fetch_optional(connection)
    .await
}
