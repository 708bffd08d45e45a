//! Reseals everything in the database under the first key, while gateways run. A value is replaced only if it is
//! still the one that was read, so nothing that a gateway writes meanwhile is lost.

use secrecy::ExposeSecret as _;
use serde_json::json;
use sqlx::PgPool;

use crate::accounts::audit;
use mailgate_storage::database::pool;
use mailgate_storage::sealed::{self, COLUMNS, Replacement, SealedColumn};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::seal::{SealError, SealKeys, UnsealError};

/// Values per statement.
const BATCH: i64 = 500;

/// How often a column is scanned again for values that were locked.
const ROUNDS: usize = 5;

/// Why resealing failed or did not complete.
#[derive(Debug, thiserror::Error)]
pub enum ResealError {
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
    /// Nothing can be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// Receives progress reports.
pub trait Progress {
    /// This many more values of a column were processed.
    fn advanced(&mut self, column: &SealedColumn, values: usize);
    /// No configured key unseals the value of this context.
    fn unopened(&mut self, context: &str, error: &UnsealError);
}

/// The result.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Values that were resealed.
    pub resealed: u64,
    /// Values under another key that were being changed by a gateway on every scan.
    pub busy: u64,
    /// Values that no configured key unseals.
    pub unopened: u64,
    /// OAuth flows in progress that began under another key.
    pub lapsing: u64,
}

impl Resealed {
    /// Whether nothing is left that needs another key.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.busy == 0 && self.unopened == 0 && self.lapsing == 0
    }
}

/// Reseals all columns.
///
/// # Errors
///
/// The database's error, or when nothing can be sealed.
pub async fn reseal(
    pool: &PgPool,
    keys: &SealKeys,
    progress: &mut impl Progress,
) -> Result<Resealed, ResealError> {
    let mut all = Resealed::default();
    for column in COLUMNS {
        for round in 1..=ROUNDS {
            let found = go_through(pool, keys, column, progress).await?;
            all.resealed += found.resealed;
            if found.busy == 0 || round == ROUNDS {
                all.busy += found.busy;
                all.unopened += found.unopened;
                break;
            }
        }
    }
    let mut connection = pool.acquire().await?;
    let now = pool::clock(&mut *connection).await?;
    let lapsing = sealed::lapsing(&mut connection, keys.first_prefix(), now).await?;
    all.lapsing = u64::try_from(lapsing).unwrap_or_default();
    drop(connection);
    if all.resealed > 0 {
        let details = json!({ "key": keys.first_id(), "values": all.resealed });
        let entry = AuditEntry::of_gateway(AuditAction::SecretsResealed).with(details);
        let transaction = audit::begin(pool, Author::operator(None), now).await?;
        transaction.commit_change(entry).await?;
    }
    Ok(all)
}

/// Scans one column once.
async fn go_through(
    pool: &PgPool,
    keys: &SealKeys,
    column: &SealedColumn,
    progress: &mut impl Progress,
) -> Result<Resealed, ResealError> {
    let mut found = Resealed::default();
    let mut after = None;
    loop {
        // Not held between batches: the command uses no more of the pool than a request.
        let mut connection = pool.acquire().await?;
        let values = column
            .read(
                &mut connection,
                after.as_deref(),
                keys.first_prefix(),
                BATCH,
            )
            .await?;
        let Some(last) = values.last() else {
            return Ok(found);
        };
        after = Some(last.key.clone());
        let looked_at = values.len();
        let mut replacements = Vec::new();
        for value in values {
            let Some(read) = value.sealed else { continue };
            match keys.unseal(&value.context, &read) {
                Ok(secret) => replacements.push(Replacement {
                    key: value.key,
                    sealed: keys.seal(&value.context, secret.expose_secret())?,
                    digest: if column.has_digest() {
                        keys.lookup_digest(secret.expose_secret())
                    } else {
                        Vec::new()
                    },
                    read,
                }),
                Err(error) => {
                    progress.unopened(&value.context, &error);
                    found.unopened += 1;
                }
            }
        }
        if !replacements.is_empty() {
            let replaced = column.replace(&mut connection, &replacements).await?;
            found.resealed += replaced;
            found.busy += (replacements.len() as u64).saturating_sub(replaced);
        }
        progress.advanced(column, looked_at);
    }
}
