//! The table `acme_challenges`: the current challenges of ACME servers.

use sqlx::PgConnection;

use super::certificates::Claim;

/// A challenge that is being answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveChallenge {
    /// The name to be validated.
    pub name: String,
    /// Part of the requested path (RFC 8555 §8.3).
    pub token: String,
    /// The answer.
    pub key_authorization: String,
}

/// Publishes a certificate's challenge for `seconds`, replacing an earlier one; `false` if the claim is over.
pub async fn publish(
    connection: &mut PgConnection,
    claim: &Claim,
    token: &str,
    key_authorization: &str,
    seconds: f64,
) -> Result<bool, sqlx::Error> {
    let published = sqlx::query!(
        "INSERT INTO acme_challenges (certificate_id, token, key_authorization, expires_at)
         SELECT id, $3, $4, now() + make_interval(secs => $5) FROM certificates
         WHERE id = $1 AND claim = $2 AND lease_until > now()
         ON CONFLICT (certificate_id) DO UPDATE
         SET token = EXCLUDED.token, key_authorization = EXCLUDED.key_authorization,
             expires_at = EXCLUDED.expires_at",
        claim.id.0,
        claim.number,
        token,
        key_authorization,
        seconds,
    )
    .execute(connection)
    .await?;
    Ok(published.rows_affected() > 0)
}

/// All current challenges: one for each certificate at most.
pub async fn live(connection: &mut PgConnection) -> Result<Vec<LiveChallenge>, sqlx::Error> {
    sqlx::query_as!(
        LiveChallenge,
        "SELECT name, token, key_authorization
         FROM acme_challenges JOIN certificates ON id = certificate_id WHERE expires_at > now()",
    )
    .fetch_all(connection)
    .await
}

/// Withdraws a completed challenge, unless it has been replaced, or belongs to another attempt: a server may issue the
/// same token for that one.
pub async fn withdraw(
    connection: &mut PgConnection,
    claim: &Claim,
    token: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM acme_challenges WHERE certificate_id = $1 AND token = $2
             AND EXISTS (SELECT FROM certificates WHERE id = $1 AND claim = $3)",
        claim.id.0,
        token,
        claim.number,
    )
    .execute(connection)
    .await?;
    Ok(())
}
