//! The audit trail: each change leaves one entry, and nothing else does; who reads it, and for how long it
//! is kept.

mod actions;
mod kept;
mod logged;
mod matrix;
mod nothing;
mod read;

use std::collections::BTreeMap;

use mailgate_domain::accounts::Renewal;
use serde_json::Value;
use uuid::Uuid;

use crate::support::caller::{Caller, text};
use crate::support::gateway::{Gateway, OPERATOR};

/// A row of the trail.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
struct Row {
    id: Uuid,
    subscriber_id: Option<Uuid>,
    app_id: Option<Uuid>,
    app_slug: Option<String>,
    action: String,
    actor: String,
    address: Option<String>,
    target: Option<String>,
    details: Value,
}

/// All that there are.
async fn rows(gateway: &Gateway) -> BTreeMap<Uuid, Row> {
    let rows: Vec<Row> = sqlx::query_as("SELECT * FROM audit_entries")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap();
    rows.into_iter().map(|row| (row.id, row)).collect()
}

/// What has been added since.
async fn since(gateway: &Gateway, before: &BTreeMap<Uuid, Row>) -> Vec<Row> {
    let mut rows = rows(gateway).await;
    rows.retain(|id, _| !before.contains_key(id));
    rows.into_values().collect()
}

/// Asserts that nothing has been added since.
async fn nothing_since(gateway: &Gateway, before: &BTreeMap<Uuid, Row>) {
    let new = since(gateway, before).await;
    assert!(new.is_empty(), "{new:?}");
}

/// A page of the caller's trail.
async fn page(caller: &Caller<'_>, query: &str) -> Value {
    caller.get(&format!("/audit{query}")).await.success(200)
}

/// The actions on a page, the newest first.
async fn actions(caller: &Caller<'_>, query: &str) -> Vec<String> {
    let page = page(caller, query).await;
    let entries = page["entries"].as_array().unwrap();
    let actions = entries.iter().map(|entry| text(entry, "action").to_owned());
    actions.collect()
}

/// Renews the API secret of the gateway's subscriber, as an operator does.
async fn renew(gateway: &Gateway) {
    let accounts = &gateway.daemon.accounts;
    let renewed = accounts.renew_api_secret(gateway.subscriber, Renewal::default(), OPERATOR);
    renewed.await.unwrap();
}
