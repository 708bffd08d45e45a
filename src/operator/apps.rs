//! `mailgate apps`: the apps of all subscribers.

use std::path::Path;

use clap::Subcommand;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::page::Page;
use super::table::Table;
use super::{OperatorError, on_database};
use mailgate_storage::apps::overview::{AppOverview, overview};
use mailgate_storage::database::tables;
use mailgate_types::ids::SubscriberId;
use mailgate_types::moment::iso8601;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum AppsAction {
    /// List apps, oldest first, without their keys.
    List {
        /// Of this subscriber only: sub_….
        #[arg(long)]
        subscriber: Option<SubscriberId>,
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
    action: &AppsAction,
    as_json: bool,
    file: Option<&Path>,
) -> Result<(), OperatorError> {
    on_database(file, async |_, pool| act(action, as_json, &pool).await).await
}

async fn act(action: &AppsAction, as_json: bool, pool: &PgPool) -> Result<(), OperatorError> {
    let AppsAction::List { subscriber, page } = action;
    tables::require_tables(pool).await?;
    let mut connection = pool.acquire().await?;
    let listed = overview(&mut connection, *subscriber, page.limit, page.offset).await?;
    drop(connection);
    if as_json {
        let apps: Vec<Value> = listed.iter().map(shown).collect();
        println!("{}", json!({ "apps": apps }));
        return Ok(());
    }
    if listed.is_empty() {
        println!("{}", page.empty("No apps."));
        return Ok(());
    }
    let mut table = Table::new(["APP", "ID", "SUBSCRIBER", "MAILBOXES", "CREATED", "NAME"]);
    for app in &listed {
        table.row([
            app.slug.clone(),
            app.id.to_string(),
            app.subscriber.to_string(),
            app.mailboxes.to_string(),
            iso8601(app.created_at),
            app.name.clone(),
        ]);
    }
    print!("{}", table.text());
    page.say_whether_full(listed.len());
    Ok(())
}

fn shown(app: &AppOverview) -> Value {
    json!({
        "id": app.id.to_string(),
        "app_id": app.slug,
        "name": app.name,
        "subscriber_id": app.subscriber.to_string(),
        "mailboxes": app.mailboxes,
        "created_at": iso8601(app.created_at),
    })
}
