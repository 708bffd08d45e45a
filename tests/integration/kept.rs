//! What is kept for a time, under a clock that is 100 days ahead: nothing is deleted but what is old by a time that has
//! certainly passed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use mailgate_storage::{certificates, partitions};
use mailgate_types::clock::{Clock, MovedClock, SharedClock};
use mailgate_types::past::Past;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::support::gateway::Gateway;
use crate::support::patience;

/// The database's clock is wrong, or the machine's, and the other one is right.
#[derive(Debug)]
struct Ahead;

impl Clock for Ahead {
    fn now(&self) -> DateTime<Utc> {
        Utc::now() + TimeDelta::days(100)
    }

    fn certainly_past(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// What is deleted by its age, but for the log's partitions: the table, the column with the time, and a row whose time
/// is `{at}`, which the id `{id}` has too; `{n}` is a number of its own.
const KEPT: [(&str, &str, &str); 24] = [
    (
        "audit_entries",
        "id",
        "(id, action, actor, details) VALUES ({id}, 'app.changed', 'subscriber', '{}')",
    ),
    (
        "billing_notices",
        "created_at",
        "(id, subscriber_id, kind, event_id, data, created_at)
         VALUES ({id}, {subscriber}, 'trial_will_end', '{n}', '{}', {at})",
    ),
    (
        "bounced_messages",
        "log_id",
        "(log_id, app_id, subscriber_id, plugin) VALUES ({id}, {app}, {subscriber}, 'plugin_a')",
    ),
    (
        "bounces",
        "log_id",
        "(credential_id, key, log_id, recipient, bounce_type, bounced_at, awaits_sent)
         VALUES ({mailbox}, '{n}', {id}, 'a', 'permanent', {at}, false)",
    ),
    (
        "certificates",
        "created_at",
        "(id, name, directory_url, created_at) VALUES ({id}, '{n}', '', {at})",
    ),
    (
        "deleted_apps",
        "deleted_at",
        "(app_id, deleted_at) VALUES ({id}, {at})",
    ),
    (
        "deleted_webhook_endpoints",
        "deleted_at",
        "(endpoint_id, app_id, secret_sealed, deleted_at) VALUES ({id}, {app}, '', {at})",
    ),
    (
        "email_changes",
        "created_at",
        "(id, subscriber_id, former_email, former_is_confirmed, email, created_at)
         VALUES ({id}, {subscriber}, 'a', true, 'b', {at})",
    ),
    (
        "email_counters",
        "start",
        "(owner_id, unit, start, plugin_a_sent, plugin_a_failed_temp, plugin_a_failed_perm,
          plugin_b_sent, plugin_b_failed_temp, plugin_b_failed_perm)
         VALUES (gen_random_uuid(), 'hour', {at}, 1, 0, 0, 0, 0, 0)",
    ),
    (
        "idempotency_keys",
        "created_at",
        "(app_id, key, request_digest, log_id, created_at) VALUES ({app}, '{n}', '', {id}, {at})",
    ),
    (
        "mailboxes",
        "disconnected_at",
        "(id, app_id, user_key, plugin, email, email_lookup, status, scopes, connected_at, disconnected_at)
         VALUES ({id}, {app}, (SELECT user_key FROM mailboxes LIMIT 1), 'plugin_a', '{n}', '{n}', 'disconnected',
                 '{}', {at}, {at})",
    ),
    (
        "message_replies",
        "log_id",
        "(log_id, key, from_address, replied_at) VALUES ({id}, '{n}', 'a', {at})",
    ),
    (
        "oauth_states",
        "expires_at",
        "(digest, app_id, pushable_key, plugin, redirect_uri, code_verifier_sealed, expires_at)
         VALUES ('{n}', {app}, '', 'plugin_a', '', '', {at})",
    ),
    (
        "payprov_events",
        "received_at",
        "(id, type, received_at, state, due_at) VALUES ('{n}', 'a', {at}, 'applied', {at})",
    ),
    (
        "portal_links",
        "expires_at",
        "(digest, subscriber_id, kind, expires_at) VALUES ('{n}', {subscriber}, 'link', {at})",
    ),
    (
        "portal_sessions",
        "expires_at",
        "(id, subscriber_id, digest, started_by, created_at, last_used_at, expires_at, user_agent, address)
         VALUES ({id}, {subscriber}, '{n}', 'link', {at}, {at}, {at}, '', '')",
    ),
    ("refusal_batches", "id", "(id) VALUES ({id})"),
    (
        "refusal_counters",
        "hour",
        "(app_id, hour, reason, messages) VALUES ({app}, {at}, 'no_recipient', 1)",
    ),
    (
        "refusals",
        "id",
        "(app_id, id, door, reason) VALUES ({app}, {id}, 'rest', 'no_recipient')",
    ),
    (
        "replies",
        "seen_at",
        "(credential_id, message_id, seen_at) VALUES ({mailbox}, '{n}', {at})",
    ),
    (
        "suppressions",
        "bounced_at",
        "(app_id, address, log_id, bounced_at) VALUES ({app}, '{n}', {id}, {at})",
    ),
    (
        "used_links",
        "expires_at",
        "(id, expires_at) VALUES ({id}, {at})",
    ),
    (
        "webhook_counters",
        "hour",
        "(endpoint_id, hour, event, success, app_id, deliveries)
         VALUES ({id}, {at}, 'test', true, {app}, 1)",
    ),
    (
        "webhook_queue",
        "message_id",
        "(message_id, endpoint_id, app_id, event, url, secret_sealed, state, due_at)
         VALUES ({id}, {app}, {app}, 'test', '', '', 'waiting', now() + interval '1 year')",
    ),
];

/// Older than anything is kept.
const LONG_AGO: &str = "(now() - interval '200 days')";
const OLD: &str = "(now() - interval '400 days')";

/// Keys are kept for a day, and links until their end.
const YOUNG: &str = "(now() + interval '1 hour')";
const TOMORROW: &str = "(now() + interval '1 day')";

/// A `UUIDv7` of a time, as SQL.
fn id(at: &str, number: usize) -> String {
    format!(
        "(lpad(to_hex((extract(epoch FROM {at}) * 1000)::bigint), 12, '0')
          || '70008000' || lpad(to_hex({number}), 12, '0'))::uuid"
    )
}

/// Previous secrets of webhooks, which go before their rows.
const SECRETS: (&str, &str, &str) = (
    "deleted_webhook_endpoints",
    "previous_secret_expires_at",
    "(endpoint_id, app_id, secret_sealed, deleted_at, previous_secret_sealed, previous_secret_expires_at)
     VALUES (gen_random_uuid(), {app}, '', now() + interval '1 hour', '', {at})",
);

fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    KEPT.into_iter().chain([SECRETS])
}

/// Inserts a row into each table.
async fn insert(gateway: &Gateway, at: &str, number: usize) {
    let mut database = gateway.database().await;
    let quoted = |id: uuid::Uuid| format!("'{id}'");
    for (table, _, row) in all() {
        let row = row
            .replace("{id}", &id(at, number))
            .replace("{at}", at)
            .replace("{n}", &number.to_string())
            .replace("{app}", &quoted(gateway.app.id.0))
            .replace("{subscriber}", &quoted(gateway.subscriber.0))
            .replace("{mailbox}", &quoted(gateway.mailbox.credential.0));
        let statement = AssertSqlSafe(format!("INSERT INTO {table} {row}"));
        let inserted = sqlx::query(statement).execute(&mut database).await;
        inserted.unwrap_or_else(|error| panic!("{table}: {error}"));
    }
}

/// The tables that have a row whose time is between these.
async fn having(gateway: &Gateway, from: &str, to: &str) -> Vec<&'static str> {
    let mut database = gateway.database().await;
    let mut having = Vec::new();
    for (table, column, _) in all() {
        let mut bounds = [from.to_owned(), to.to_owned()];
        if column.ends_with("id") {
            bounds = [id(from, 0), id(to, 0)];
        }
        let [from, to] = bounds;
        let found =
            format!("SELECT EXISTS (SELECT FROM {table} WHERE {column} BETWEEN {from} AND {to})");
        let found = sqlx::query_scalar(AssertSqlSafe(found));
        if found.fetch_one(&mut database).await.unwrap() {
            having.push(table);
        }
    }
    having
}

async fn has_day(gateway: &Gateway, day: NaiveDate) -> bool {
    sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(format!("email_logs_{}", day.format("%Y%m%d")))
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_early_by_a_clock_that_is_ahead() {
    let first = Gateway::start().await;
    let (status, answer) = first.send_to("bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    // From here on only the one that is ahead deletes.
    first.stop_daemon().await;
    insert(&first, YOUNG, 1).await;
    insert(&first, OLD, 2).await;
    let tables: Vec<&str> = all().map(|(table, ..)| table).collect();
    assert_eq!(having(&first, "now()", TOMORROW).await, tables);
    assert_eq!(
        having(&first, "'epoch'::timestamptz", LONG_AGO).await,
        tables
    );
    let mut database = first.database().await;
    let (old_day, today) = (
        Utc::now().date_naive() - Days::new(400),
        Utc::now().date_naive(),
    );
    partitions::create(&mut database, old_day).await.unwrap();

    let ahead: SharedClock = Arc::new(Ahead);
    let second = first.replica().billed().clock(Arc::clone(&ahead));
    let second = second.start().await;
    // Gateways that have an ACME server alone do this.
    let past = Past::by(&ahead);
    certificates::forget(&mut database, &[], "", past)
        .await
        .unwrap();
    // What is old goes by the same statements that would delete what is young.
    patience::until("end of what is old", async || {
        having(&first, "'epoch'::timestamptz", LONG_AGO)
            .await
            .is_empty()
            && !has_day(&first, old_day).await
    })
    .await;
    assert_eq!(having(&first, "now()", TOMORROW).await, tables);
    assert!(has_day(&first, today).await);
    assert_eq!(first.logged().await.len(), 1);
    second.stop().await;
    first.stop().await;
}

/// The tables that something is deleted from by a [`Past`].
fn deleted_from(folder: &Path, tables: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            deleted_from(&path, tables);
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let functions = source.split("fn ").filter(|it| it.contains(": Past"));
        for deletion in functions.flat_map(|it| it.split("DELETE FROM ").skip(1)) {
            let table = deletion.split_whitespace().next().unwrap();
            tables.insert(table.to_owned());
        }
    }
}

#[test]
fn all_that_is_deleted_by_its_age_is_tried() {
    let mut tables = BTreeSet::new();
    let storage = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/storage/src");
    deleted_from(&storage, &mut tables);
    let tried: BTreeSet<String> = all().map(|(table, ..)| table.to_owned()).collect();
    assert_eq!(tables, tried);
}

/// The database's clock is 26 hours behind until another database takes over; the machine's is right.
#[derive(Debug)]
struct Behind;

const BEHIND: TimeDelta = TimeDelta::hours(26);

impl Clock for Behind {
    fn now(&self) -> DateTime<Utc> {
        Utc::now() - BEHIND
    }

    fn ahead(&self) -> Option<TimeDelta> {
        Some(BEHIND)
    }
}

async fn send(gateway: &Gateway, app: &Gateway, key: &str) -> (u16, bool, Value) {
    let request = gateway
        .http
        .post(format!("{}/send", gateway.daemon.base_url))
        .header("x-send-key", app.app.send_key.expose())
        .header("idempotency-key", key)
        .json(&json!({
            "pk": app.app.pushable_key.expose(),
            "to": "bob@example.com",
            "subject": "Hello",
            "body": "It works.",
        }));
    let response = request.send().await.unwrap();
    let is_replayed = response.headers().contains_key("idempotent-replayed");
    let status = response.status().as_u16();
    (status, is_replayed, response.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_used_while_the_clock_was_behind_is_kept_for_a_day() {
    let behind = Gateway::builder().clock(Arc::new(Behind)).start().await;
    let (status, _, body) = send(&behind, &behind, "order 17").await;
    assert_eq!(status, 200, "{body}");
    let mut database = behind.database().await;
    let old = "INSERT INTO idempotency_keys (app_id, key, request_digest, log_id, created_at)
               VALUES ($1, 'old', '', $1, now() - interval '25 hours')";
    let old = sqlx::query(old).bind(behind.app.id.0);
    old.execute(&mut database).await.unwrap();
    let right: SharedClock = Arc::new(MovedClock::default());
    let right = behind.replica().clock(right).start().await;
    // Old keys are removed by the statement that would remove this one.
    patience::until("end of an old key", async || {
        let left = sqlx::query_scalar("SELECT count(*) FROM idempotency_keys WHERE key = 'old'");
        let left: i64 = left.fetch_one(&mut behind.database().await).await.unwrap();
        left == 0
    })
    .await;
    let (status, is_replayed, body) = send(&right, &behind, "order 17").await;
    assert!(status == 200 && is_replayed, "{status} {body}");
    assert_eq!(behind.arrived().await.len(), 1);
    right.stop().await;
    behind.stop().await;
}
