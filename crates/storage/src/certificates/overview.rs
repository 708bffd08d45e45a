//! All certificates from ACME servers, for the operator.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// A certificate, without its key.
#[derive(Debug)]
pub struct CertificateOverview {
    /// The name that it is for.
    pub name: String,
    /// The ACME server.
    pub directory_url: String,
    /// Since when it is valid; `None`: there is none yet.
    pub not_before: Option<DateTime<Utc>>,
    /// Until when.
    pub not_after: Option<DateTime<Utc>>,
    /// When the gateway got it.
    pub issued_at: Option<DateTime<Utc>>,
    /// When it is ordered next.
    pub due_at: DateTime<Utc>,
    /// When it was last tried.
    pub last_attempt_at: Option<DateTime<Utc>>,
    /// Attempts in a row that failed.
    pub failures: i32,
    /// Why the last one failed.
    pub last_error: Option<String>,
    /// Whether a gateway is ordering it.
    pub is_ordered: bool,
    /// Whether it has expired, by the database's clock.
    pub is_expired: bool,
}

/// All of them, by name.
pub async fn overview(
    connection: &mut PgConnection,
) -> Result<Vec<CertificateOverview>, sqlx::Error> {
    sqlx::query_as!(
        CertificateOverview,
        r#"SELECT name, directory_url, not_before, not_after, issued_at, due_at, last_attempt_at,
                  failures, last_error,
                  coalesce(lease_until > now(), false) AS "is_ordered!",
                  coalesce(not_after <= now(), false) AS "is_expired!"
           FROM certificates ORDER BY name, directory_url"#,
    )
    .fetch_all(connection)
    .await
}

/// Makes all certificates due, or those of one name; returns the names.
pub async fn renew(
    connection: &mut PgConnection,
    name: Option<&str>,
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        "UPDATE certificates SET due_at = now(), failures = 0
         WHERE $1::text IS NULL OR name = $1 RETURNING name",
        name,
    )
    .fetch_all(connection)
    .await
}
