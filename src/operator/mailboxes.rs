//! `mailgate mailboxes`: the connected mailboxes of all apps, and which of them are in trouble.

use std::path::Path;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::page::Page;
use super::table::Table;
use super::{OperatorError, on_database};
use mailgate_storage::database::{pool, tables};
use mailgate_storage::mailboxes::overview::{MailboxOverview, overview};
use mailgate_types::moment::iso8601;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum MailboxesAction {
    /// List mailboxes, oldest first.
    List {
        /// Only those in trouble: disconnected by the provider, parked, with a token that isn't refreshed, or with
        /// messages that wait after a failed attempt.
        #[arg(long)]
        failing: bool,
        /// Which rows.
        #[command(flatten)]
        page: Page,
    },
}

/// Runs one action and prints its result.
///
/// # Errors
///
/// [`OperatorError`]
pub async fn run(
    action: &MailboxesAction,
    as_json: bool,
    file: Option<&Path>,
) -> Result<(), OperatorError> {
    on_database(file, async |_, pool| act(action, as_json, &pool).await).await
}

async fn act(action: &MailboxesAction, as_json: bool, pool: &PgPool) -> Result<(), OperatorError> {
    let MailboxesAction::List { failing, page } = action;
    tables::require_tables(pool).await?;
    let mut connection = pool.acquire().await?;
    let now = pool::clock(&mut *connection).await?;
    let listed = overview(&mut connection, *failing, now, page.limit, page.offset).await?;
    drop(connection);
    if as_json {
        let mailboxes: Vec<Value> = listed.iter().map(shown).collect();
        println!("{}", json!({ "mailboxes": mailboxes }));
        return Ok(());
    }
    if listed.is_empty() {
        println!("{}", page.empty("No mailboxes."));
        return Ok(());
    }
    let mut table = Table::new(["MAILBOX", "APP", "ADDRESS", "PLUGIN", "STATUS", "TROUBLE"]);
    for mailbox in &listed {
        table.row([
            mailbox.id.to_string(),
            mailbox.slug.clone(),
            mailbox.email.clone(),
            mailbox.plugin.to_string(),
            status(mailbox).to_owned(),
            words(mailbox),
        ]);
    }
    print!("{}", table.text());
    page.say_whether_full(listed.len());
    Ok(())
}

fn status(mailbox: &MailboxOverview) -> &'static str {
    if mailbox.is_active {
        "active"
    } else {
        "disconnected"
    }
}

/// What is wrong with a mailbox, by stable names.
fn problems(mailbox: &MailboxOverview) -> Vec<&'static str> {
    [
        ("disconnected", mailbox.is_refused),
        ("parked", mailbox.parked_until.is_some()),
        ("token_not_refreshed", mailbox.is_stale),
        ("messages_fail", mailbox.failed_messages > 0),
    ]
    .into_iter()
    .filter_map(|(name, is_so)| is_so.then_some(name))
    .collect()
}

fn words(mailbox: &MailboxOverview) -> String {
    let mut words = Vec::new();
    for problem in problems(mailbox) {
        words.push(match problem {
            "disconnected" => format!(
                "disconnected: {}",
                mailbox.disconnect_reason.as_deref().unwrap_or("unknown")
            ),
            "parked" => format!("parked until {}", moment(mailbox.parked_until)),
            "messages_fail" if mailbox.failed_messages == 1 => "1 message fails".to_owned(),
            "messages_fail" => format!("{} messages fail", mailbox.failed_messages),
            _ => "token not refreshed".to_owned(),
        });
    }
    words.join("; ")
}

fn moment(moment: Option<DateTime<Utc>>) -> String {
    moment.map_or_else(|| "-".to_owned(), iso8601)
}

fn shown(mailbox: &MailboxOverview) -> Value {
    json!({
        "credential_id": mailbox.id.to_string(),
        "app_id": mailbox.app.to_string(),
        "app_slug": mailbox.slug,
        "email": mailbox.email,
        "plugin": mailbox.plugin.to_string(),
        "status": status(mailbox),
        "problems": problems(mailbox),
        "disconnect_reason": mailbox.disconnect_reason,
        "disconnected_at": mailbox.disconnected_at.map(iso8601),
        "parked_until": mailbox.parked_until.map(iso8601),
        "failed_messages": mailbox.failed_messages,
        "connected_at": iso8601(mailbox.connected_at),
        "last_sent_at": mailbox.last_sent_at.map(iso8601),
    })
}
