//! `mailgate reseal`: reseals everything in the database under the first of `seal.keys`.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgPool;

use super::{OperatorError, on_database};
use mailgate_domain::accounts::keys::reseal::{Progress, Resealed, reseal};
use mailgate_domain::mailboxes::LONGEST_SESSION;
use mailgate_storage::database::pool;
use mailgate_storage::database::tables;
use mailgate_storage::sealed::SealedColumn;
use mailgate_types::moment::iso8601;
use mailgate_types::seal::{SealKeys, UnsealError};

/// Runs the command and prints its result.
///
/// # Errors
///
/// [`OperatorError`]; [`OperatorError::Unopened`] if everything else was resealed.
pub async fn run(as_json: bool, file: Option<&Path>) -> Result<(), OperatorError> {
    on_database(file, async |settings, pool| {
        act(as_json, &settings.seal_keys, &pool).await
    })
    .await
}

async fn act(as_json: bool, keys: &SealKeys, pool: &PgPool) -> Result<(), OperatorError> {
    tables::migrate(pool).await?;
    let mut progress = Line::new();
    let resealed = reseal(pool, keys, &mut progress).await?;
    progress.end();
    let removable_from = pool::clock(pool).await? + LONGEST_SESSION;
    print(as_json, &resealed, keys, removable_from);
    match resealed.unopened {
        0 => Ok(()),
        count => Err(OperatorError::Unopened(count)),
    }
}

/// `removable_from` is when the last connect session's link sealed with another key has expired.
fn print(as_json: bool, resealed: &Resealed, keys: &SealKeys, removable_from: DateTime<Utc>) {
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
            "other_keys_removable_from": (complete && !others.is_empty()).then(|| iso8601(removable_from)),
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
            "Everything is sealed with {first}. If every gateway has {first} as its first key by now, {others} may be \
             removed from seal.keys from {} on: until then there may be links of connect sessions that only {others} opens. A later run says a later time: note this one.",
            iso8601(removable_from)
        ),
        (false, _) => println!("Keep all keys, and run mailgate reseal again."),
    }
}

/// A progress line for a terminal.
struct Line {
    is_terminal: bool,
    shown: Option<(SealedColumn, usize)>,
}

impl Line {
    fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            shown: None,
        }
    }

    fn end(&mut self) {
        if self.is_terminal && self.shown.take().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}

impl Progress for Line {
    fn advanced(&mut self, column: &SealedColumn, values: usize) {
        let before = match self.shown {
            Some((shown, count)) if shown == *column => count,
            _ => 0,
        };
        let count = before + values;
        self.shown = Some((*column, count));
        if self.is_terminal {
            let (table, column) = (column.table, column.column);
            eprint!("\r\x1b[K{table}.{column}: {count} looked at");
            // Continue if the terminal can't be written to.
            drop(std::io::stderr().flush());
        }
    }

    fn unopened(&mut self, context: &str, error: &UnsealError) {
        self.end();
        eprintln!("mailgate: {context}: {error}");
    }
}
