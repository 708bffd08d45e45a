//! `mailgate queue`: shows and changes waiting messages. It never prints a subject, a body or a recipient.

use std::collections::HashSet;
use std::path::Path;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::page::Page;
use super::table::Table;
use super::{OperatorError, on_database};
use mailgate_domain::sending::queue::{Queue, QueueError, QueuedMessage, Scope};
use mailgate_storage::apps;
use mailgate_storage::database::{pool, tables};
use mailgate_types::audit::Author;
use mailgate_types::database_clock::DatabaseClock;
use mailgate_types::ids::{AppId, CredentialId, LogId};
use mailgate_types::moment::iso8601;
use mailgate_types::waiting_reason::WaitingReason;

/// Messages read at a time when all of an app's are canceled.
const PAGE: i64 = 500;

/// What to do.
#[expect(
    clippy::doc_markdown,
    reason = "these are the texts of --help, which would show backticks"
)]
#[derive(Debug, Subcommand)]
pub enum QueueAction {
    /// List waiting messages, the first due first.
    List {
        /// Of this app only: its UUID or its app_id.
        #[arg(long)]
        app: Option<String>,
        /// Of this mailbox only: cred_….
        #[arg(long)]
        mailbox: Option<CredentialId>,
        /// Waiting for this only: scheduled, subscription, mailbox_limit, temporary_failure.
        #[arg(long)]
        reason: Option<WaitingReason>,
        /// Which rows.
        #[command(flatten)]
        page: Page,
    },
    /// Show a message that waits or is being sent.
    Show {
        /// log_…
        log_id: LogId,
    },
    /// Try a waiting message now, within its mailbox's limits.
    Retry {
        /// log_…
        log_id: LogId,
    },
    /// After the database was restored to an earlier moment, before gateways start on it: have each waiting message
    /// that may have left since then looked up in its mailbox's sent mail before it is sent.
    Verify {
        /// Every waiting message, not only those due by now: somebody may have had one tried before its time.
        #[arg(long)]
        all: bool,
    },
    /// Cancel a waiting message, or with --app all of an app's.
    Cancel {
        /// log_…
        #[arg(required_unless_present = "app", conflicts_with = "app")]
        log_id: Option<LogId>,
        /// All that wait of this app: its UUID or its app_id.
        #[arg(long, requires = "yes")]
        app: Option<String>,
        /// They are all to be canceled.
        #[arg(long, requires = "app")]
        yes: bool,
    },
}

/// Runs one action and prints its result.
///
/// # Errors
///
/// [`OperatorError`]
pub async fn run(
    action: &QueueAction,
    as_json: bool,
    file: Option<&Path>,
) -> Result<(), OperatorError> {
    on_database(file, async |_, pool| act(action, as_json, pool).await).await
}

async fn act(action: &QueueAction, as_json: bool, pool: PgPool) -> Result<(), OperatorError> {
    tables::require_tables(&pool).await?;
    let clock = DatabaseClock::shared();
    pool::synchronize(&pool, &clock).await?;
    let queue = Queue::new(pool.clone(), clock);
    let find = async |app: &str| -> Result<AppId, OperatorError> {
        let mut connection = pool.acquire().await?;
        let found = apps::find_anybodys(&mut connection, app).await?;
        found.ok_or_else(|| OperatorError::Argument(format!("--app: there is no app {app:?}")))
    };
    let author = Author::operator(None);
    match action {
        QueueAction::List {
            app,
            mailbox,
            reason,
            page,
        } => {
            let app = match app {
                Some(app) => Some(find(app).await?),
                None => None,
            };
            let listed = (queue.list(app, *mailbox, *reason, page.limit, page.offset)).await?;
            print_list(as_json, &listed, *page);
        }
        QueueAction::Show { log_id } => {
            let (message, error) = queue
                .show(*log_id)
                .await?
                .ok_or(OperatorError::Queue(*log_id, QueueError::NotFound))?;
            print_one(as_json, &message, error.as_deref());
        }
        QueueAction::Retry { log_id } => {
            let due = queue.retry(Scope::All, *log_id, author).await;
            let due = due.map_err(|error| OperatorError::Queue(*log_id, error))?;
            if as_json {
                let value = json!({ "log_id": log_id.to_string(), "due_at": iso8601(due) });
                println!("{value}");
            } else {
                println!("{log_id} is due; a gateway tries it when its mailbox may send.");
            }
        }
        QueueAction::Verify { all } => {
            let marked = queue.verify(*all).await?;
            if as_json {
                println!("{}", json!({ "marked": marked }));
            } else {
                println!("{marked} marked: each is looked up before it is sent.");
            }
        }
        QueueAction::Cancel {
            log_id: Some(log_id),
            ..
        } => {
            let canceled = queue.cancel(Scope::All, *log_id, author).await;
            canceled.map_err(|error| OperatorError::Queue(*log_id, error))?;
            print_canceled(as_json, 1, 0);
        }
        QueueAction::Cancel { app, .. } => {
            let app = find(app.as_deref().unwrap_or_default()).await?;
            let left = cancel_all(&queue, app, author, as_json).await?;
            if left > 0 {
                return Err(OperatorError::NotCanceled(left));
            }
        }
    }
    Ok(())
}

/// Cancels an app's waiting messages one by one; returns how many could not be canceled.
async fn cancel_all(
    queue: &Queue,
    app: AppId,
    author: Author,
    as_json: bool,
) -> Result<u64, OperatorError> {
    let mut canceled = 0;
    // They may precede the next page, or no longer be listed.
    let mut left: HashSet<LogId> = HashSet::new();
    loop {
        let limit = PAGE.saturating_add(i64::try_from(left.len()).unwrap_or(i64::MAX));
        let mut page = queue.list(Some(app), None, None, limit, 0).await?;
        page.retain(|message| !left.contains(&message.id));
        if page.is_empty() {
            break;
        }
        for message in page {
            match queue.cancel(Scope::All, message.id, author).await {
                Ok(()) => canceled += 1,
                Err(QueueError::Database(error)) => return Err(error.into()),
                // It has left the queue in the meantime.
                Err(QueueError::NotFound | QueueError::Sent | QueueError::Failed) => {}
                Err(error) => {
                    left.insert(message.id);
                    eprintln!("mailgate: {}: {error}", message.id);
                }
            }
        }
    }
    let left = u64::try_from(left.len()).unwrap_or(u64::MAX);
    print_canceled(as_json, canceled, left);
    Ok(left)
}

fn print_canceled(as_json: bool, canceled: u64, left: u64) {
    if as_json {
        println!("{}", json!({ "canceled": canceled, "left": left }));
    } else {
        println!("{canceled} canceled, {left} left.");
    }
}

fn print_list(as_json: bool, listed: &[QueuedMessage], page: Page) {
    if as_json {
        let messages: Vec<Value> = listed.iter().map(shown).collect();
        println!("{}", json!({ "messages": messages }));
        return;
    }
    if listed.is_empty() {
        println!("{}", page.empty("Nothing waits."));
        return;
    }
    let mut table = Table::new(["MESSAGE", "APP", "MAILBOX", "WAITS FOR", "ATTEMPTS", "DUE"]);
    for message in listed {
        table.row([
            message.id.to_string(),
            message.slug.clone().unwrap_or_default(),
            message.from_address.clone(),
            message.reason.as_str().to_owned(),
            message.attempts.to_string(),
            moment(message.next_attempt_at),
        ]);
    }
    print!("{}", table.text());
    page.say_whether_full(listed.len());
}

fn print_one(as_json: bool, message: &QueuedMessage, error: Option<&str>) {
    let mut value = shown(message);
    value["in_progress"] = json!(message.in_progress);
    value["error"] = json!(error);
    if as_json {
        println!("{value}");
        return;
    }
    let mut table = Table::new(["FIELD", "VALUE"]);
    for (name, value) in value.as_object().into_iter().flatten() {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        table.row([name.clone(), text]);
    }
    print!("{}", table.text());
}

fn moment(moment: Option<DateTime<Utc>>) -> String {
    moment.map_or_else(|| "-".to_owned(), iso8601)
}

fn shown(message: &QueuedMessage) -> Value {
    json!({
        "log_id": message.id.to_string(),
        "app_id": message.app.to_string(),
        "app_slug": message.slug,
        "subscriber_id": message.subscriber.map(|id| id.to_string()),
        "credential_id": message.credential.to_string(),
        "from_address": message.from_address,
        "plugin": message.plugin.to_string(),
        "reason": message.reason.as_str(),
        "outcome_unknown": message.outcome_unknown,
        "attempts": message.attempts,
        "next_attempt_at": message.next_attempt_at.map(iso8601),
        "opened_at": iso8601(message.opened_at),
        "size_bytes": message.size_bytes,
    })
}
