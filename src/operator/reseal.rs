//! `mailgate reseal`: seals all that lies in the database anew under the first of `seal.keys`, while
//! gateways run. A value is replaced only where it is still the one that was read, so nothing that a gateway
//! writes meanwhile is lost.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use chrono::Utc;
use secrecy::ExposeSecret as _;
use serde_json::json;
use sqlx::PgPool;

use super::OperatorError;
use crate::accounts::audit::commit_change;
use crate::config;
use crate::storage::pool;
use crate::storage::sealed::{self, COLUMNS, Replacement, SealedColumn};
use crate::telemetry;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::seal::SealKeys;

/// Values of one statement.
const BATCH: i64 = 500;

/// How often a column is gone through for values that were being changed at the moment.
const ROUNDS: usize = 5;

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Values that were sealed anew.
    pub resealed: u64,
    /// Values under another key that a gateway was changing whenever they were looked at.
    pub busy: u64,
    /// Values that no configured key opens.
    pub unopened: u64,
    /// Users on their way through a provider who began under another key.
    pub lapsing: u64,
}

impl Resealed {
    /// Whether nothing is left that only a further key opens.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.busy == 0 && self.unopened == 0 && self.lapsing == 0
    }
}

/// Runs the command and prints what came of it.
///
/// # Errors
///
/// [`OperatorError`]; [`OperatorError::Unopened`] when all else is resealed.
pub async fn run(as_json: bool, file: Option<&Path>) -> Result<(), OperatorError> {
    let settings = config::load_operator(file, std::env::vars_os())?;
    telemetry::start_logging_by(&settings.log, &settings.seal_keys);
    let pool = pool::connect(&settings.database).await?;
    pool::migrate(&pool).await?;
    let mut progress = Progress::new();
    let resealed = reseal(&pool, &settings.seal_keys, &mut progress).await?;
    progress.end();
    if resealed.resealed > 0 {
        let details = json!({ "key": settings.seal_keys.first_id(), "values": resealed.resealed });
        let entry = AuditEntry::of_gateway(AuditAction::SecretsResealed).with(details);
        let (transaction, now) = (pool.begin().await?, Utc::now());
        commit_change(transaction, Author::operator(None), now, entry).await?;
    }
    print(as_json, &resealed, &settings.seal_keys);
    match resealed.unopened {
        0 => Ok(()),
        count => Err(OperatorError::Unopened(count)),
    }
}

/// Seals all columns anew.
///
/// # Errors
///
/// What the database said, or when nothing can be sealed.
async fn reseal(
    pool: &PgPool,
    keys: &SealKeys,
    progress: &mut Progress,
) -> Result<Resealed, OperatorError> {
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
    let lapsing = sealed::lapsing(&mut connection, keys.first_prefix(), Utc::now()).await?;
    all.lapsing = u64::try_from(lapsing).unwrap_or_default();
    Ok(all)
}

/// Once through one column.
async fn go_through(
    pool: &PgPool,
    keys: &SealKeys,
    column: &SealedColumn,
    progress: &mut Progress,
) -> Result<Resealed, OperatorError> {
    let mut found = Resealed::default();
    let mut after = None;
    loop {
        // Not held from one batch to the next: the command takes no more of the database than a request.
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
                    progress.end();
                    eprintln!("mailgate: {}: {error}", value.context);
                    found.unopened += 1;
                }
            }
        }
        if !replacements.is_empty() {
            let replaced = column.replace(&mut connection, &replacements).await?;
            found.resealed += replaced;
            found.busy += (replacements.len() as u64).saturating_sub(replaced);
        }
        progress.tell(column, looked_at);
    }
}

fn print(as_json: bool, resealed: &Resealed, keys: &SealKeys) {
    let complete = resealed.is_complete();
    let (first, others) = (keys.first_id(), keys.other_ids());
    if as_json {
        let value = json!({
            "key": first,
            "resealed": resealed.resealed,
            "busy": resealed.busy,
            "unopened": resealed.unopened,
            "connecting": resealed.lapsing,
            "other_keys_removable": complete,
        });
        println!("{value}");
        return;
    }
    println!("{} values were resealed with {first}.", resealed.resealed);
    if resealed.busy > 0 {
        println!(
            "{} were skipped, because gateways were changing them each time.",
            resealed.busy
        );
    }
    if resealed.lapsing > 0 {
        println!(
            "{} users are signing in at a provider with a link under another key; that takes ten minutes at most.",
            resealed.lapsing
        );
    }
    if resealed.unopened > 0 {
        println!(
            "{} can't be opened with any of seal.keys.",
            resealed.unopened
        );
    }
    let others = others.join(", ");
    match (complete, others.is_empty()) {
        (true, true) => println!("Everything is sealed with {first}, the only one of seal.keys."),
        (true, false) => println!(
            "Everything is sealed with {first}: once every gateway has {first} as its first key, {others} may be \
             removed from seal.keys."
        ),
        (false, _) => println!("Keep all keys, and run mailgate reseal again."),
    }
}

/// What a terminal is told meanwhile, in one line.
struct Progress {
    is_terminal: bool,
    shown: Option<(SealedColumn, usize)>,
}

impl Progress {
    fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            shown: None,
        }
    }

    fn tell(&mut self, column: &SealedColumn, looked_at: usize) {
        let before = match self.shown {
            Some((shown, count)) if shown == *column => count,
            _ => 0,
        };
        let count = before + looked_at;
        self.shown = Some((*column, count));
        if self.is_terminal {
            let (table, column) = (column.table, column.column);
            eprint!("\r\x1b[K{table}.{column}: {count} looked at");
            // A terminal that takes no more is no reason to stop.
            drop(std::io::stderr().flush());
        }
    }

    fn end(&mut self) {
        if self.is_terminal && self.shown.take().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
