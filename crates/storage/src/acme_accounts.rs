//! The table `acme_accounts`: accounts at ACME servers, whose keys are sealed.

use sqlx::PgConnection;

use mailgate_types::ids::AcmeAccountId;

/// An account as it is stored.
#[derive(Debug)]
pub struct StoredAccount {
    /// The row.
    pub id: AcmeAccountId,
    /// Its URL and key, sealed for [`context`].
    pub credentials_sealed: Vec<u8>,
}

/// The context that an account's credentials are sealed for.
#[must_use]
pub fn context(id: AcmeAccountId) -> String {
    format!("acme_accounts.credentials {}", id.0)
}

/// The account at a directory.
pub async fn find(
    connection: &mut PgConnection,
    directory_url: &str,
) -> Result<Option<StoredAccount>, sqlx::Error> {
    sqlx::query_as!(
        StoredAccount,
        "SELECT id, credentials_sealed FROM acme_accounts WHERE directory_url = $1",
        directory_url,
    )
    .fetch_optional(connection)
    .await
}

/// Stores a new account; `false` if another gateway was faster.
pub async fn insert(
    connection: &mut PgConnection,
    account: &StoredAccount,
    directory_url: &str,
) -> Result<bool, sqlx::Error> {
    let inserted = sqlx::query!(
        "INSERT INTO acme_accounts (id, directory_url, credentials_sealed) VALUES ($1, $2, $3)
         ON CONFLICT (directory_url) DO NOTHING",
        account.id.0,
        directory_url,
        account.credentials_sealed,
    )
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() > 0)
}

/// Removes an account that the server no longer knows.
pub async fn remove(connection: &mut PgConnection, id: AcmeAccountId) -> Result<(), sqlx::Error> {
    sqlx::query!("DELETE FROM acme_accounts WHERE id = $1", id.0)
        .execute(connection)
        .await?;
    Ok(())
}
