//! The table `certificates`: certificates from ACME servers, and the claims of gateways that order them. All times are
//! of the database's clock, so that gateways whose clocks differ agree on what is due. An attempt has a number, and
//! writes only while it is the latest one: a process that slept through its lease can't overwrite its successor's
//! results.

pub mod overview;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::CertificateId;
use mailgate_types::past::Past;

/// A certificate as it is stored.
#[derive(Debug)]
pub struct StoredCertificate {
    /// The row.
    pub id: CertificateId,
    /// The name that it is for.
    pub name: String,
    /// Grows with each new one.
    pub revision: i64,
    /// The key and the chain as PEM, sealed for [`context`].
    pub pair_sealed: Vec<u8>,
}

/// An attempt to order a certificate.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The row.
    pub id: CertificateId,
    /// The name.
    pub name: String,
    /// The attempt's number.
    pub number: i64,
    /// Attempts before it that failed in a row.
    pub failures: i32,
}

/// A new certificate.
#[derive(Debug)]
pub struct NewCertificate {
    /// The key and the chain, sealed.
    pub pair_sealed: Vec<u8>,
    /// Its validity.
    pub not_before: DateTime<Utc>,
    /// Its validity's end.
    pub not_after: DateTime<Utc>,
    /// When it should be renewed.
    pub renew_at: DateTime<Utc>,
}

/// The context that a certificate and its key are sealed for.
#[must_use]
pub fn context(id: CertificateId) -> String {
    format!("certificates.pair {}", id.0)
}

/// Creates the row of a name, if there is none: it is due immediately.
pub async fn ensure(
    connection: &mut PgConnection,
    id: CertificateId,
    name: &str,
    directory_url: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO certificates (id, name, directory_url) VALUES ($1, $2, $3)
         ON CONFLICT (name, directory_url) DO NOTHING",
        id.0,
        name,
        directory_url,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The stored certificates of these names.
pub async fn issued(
    connection: &mut PgConnection,
    names: &[String],
    directory_url: &str,
) -> Result<Vec<StoredCertificate>, sqlx::Error> {
    sqlx::query_as!(
        StoredCertificate,
        r#"SELECT id, name, revision, pair_sealed AS "pair_sealed!" FROM certificates
           WHERE directory_url = $1 AND name = ANY($2) AND pair_sealed IS NOT NULL"#,
        directory_url,
        names,
    )
    .fetch_all(connection)
    .await
}

/// Claims a certificate that is due for `seconds`: no other gateway orders it until then, or until the claim ends. A
/// lease further in the future than possible comes from a clock that was set back.
pub async fn claim(
    connection: &mut PgConnection,
    names: &[String],
    directory_url: &str,
    seconds: f64,
) -> Result<Option<Claim>, sqlx::Error> {
    sqlx::query_as!(
        Claim,
        "UPDATE certificates
         SET claim = claim + 1, last_attempt_at = now(),
             lease_until = now() + make_interval(secs => $3)
         WHERE id = (
             SELECT id FROM certificates
             WHERE directory_url = $1 AND name = ANY($2) AND due_at <= now()
                   AND (lease_until IS NULL OR lease_until <= now()
                        OR lease_until > now() + make_interval(secs => $3) + interval '1 minute')
             ORDER BY due_at LIMIT 1
             FOR UPDATE SKIP LOCKED
         )
         RETURNING id, name, claim AS number, failures",
        directory_url,
        names,
        seconds,
    )
    .fetch_optional(connection)
    .await
}

/// Stores an attempt's certificate; returns when it is due again, or `None` if the attempt is no longer the latest.
/// Whatever the clocks show and however short its lifetime, a certificate isn't ordered again within a twenty-fourth of
/// its lifetime, nor within five minutes.
pub async fn store(
    connection: &mut PgConnection,
    claim: &Claim,
    new: &NewCertificate,
) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    sqlx::query_scalar!(
        "UPDATE certificates
         SET pair_sealed = $3, not_before = $4, not_after = $5, issued_at = now(),
             revision = revision + 1, failures = 0, last_error = NULL, lease_until = NULL,
             due_at = greatest($6::timestamptz,
                               now() + ($5::timestamptz - $4::timestamptz) / 24,
                               now() + interval '5 minutes')
         WHERE id = $1 AND claim = $2
         RETURNING due_at",
        claim.id.0,
        claim.number,
        new.pair_sealed,
        new.not_before,
        new.not_after,
        new.renew_at,
    )
    .fetch_optional(connection)
    .await
}

/// Ends an attempt that failed; the next one is due in `seconds`. `false` if the attempt is no longer the latest.
pub async fn fail(
    connection: &mut PgConnection,
    claim: &Claim,
    error: &str,
    seconds: f64,
) -> Result<bool, sqlx::Error> {
    let failed = sqlx::query!(
        "UPDATE certificates
         SET failures = failures + 1, last_error = $3, lease_until = NULL,
             due_at = now() + make_interval(secs => $4)
         WHERE id = $1 AND claim = $2",
        claim.id.0,
        claim.number,
        error,
        seconds,
    )
    .execute(connection)
    .await?;
    Ok(failed.rows_affected() > 0)
}

/// Ends an interrupted attempt, so that another gateway may begin one in `seconds`.
pub async fn release(
    connection: &mut PgConnection,
    claim: &Claim,
    seconds: f64,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE certificates
         SET lease_until = NULL, due_at = now() + make_interval(secs => $3)
         WHERE id = $1 AND claim = $2 AND lease_until IS NOT NULL",
        claim.id.0,
        claim.number,
        seconds,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// How many attempts of each of these names have failed in a row.
pub async fn failures(
    connection: &mut PgConnection,
    names: &[String],
    directory_url: &str,
) -> Result<Vec<(String, i32)>, sqlx::Error> {
    let rows = sqlx::query!(
        "SELECT name, failures FROM certificates WHERE directory_url = $1 AND name = ANY($2)",
        directory_url,
        names,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.name, row.failures))
        .collect())
}

/// Removes certificates not ordered or used since `past`, except those of these names.
pub async fn forget(
    connection: &mut PgConnection,
    names: &[String],
    directory_url: &str,
    past: Past,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM certificates
         WHERE NOT (directory_url = $1 AND name = ANY($2))
               AND greatest(created_at, last_attempt_at, not_after) < $3",
        directory_url,
        names,
        past.moment(),
    )
    .execute(connection)
    .await?;
    Ok(())
}
