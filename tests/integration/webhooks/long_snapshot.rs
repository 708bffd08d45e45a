//! A snapshot that is held for long keeps a dead row, and its index entries, of each delivery that there was since: polls
//! must not step over them.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_settings::DatabaseSettings;
use mailgate_storage::database::pool;
use mailgate_storage::database::pool::DedicatedConnection;
use mailgate_storage::webhook_queue::claim::{Wanted, claim, left};
use mailgate_storage::webhook_queue::due::{From, make_ready};
use mailgate_storage::webhook_queue::ready::{self, Window};
use mailgate_types::ids::EndpointId;
use secrecy::SecretString;
use sqlx::{AssertSqlSafe, Executor, PgConnection, PgPool};
use uuid::Uuid;

use super::{connected, gateway, happen, listener, queued};
use crate::support::database;
use crate::support::gateway::Gateway;
use crate::support::receiver::Receiver;

/// Deliveries that were made under the snapshot. The statements that began at the indexes' low end touched 36,183 pages
/// for the endpoints, 3,998 for what is due, and 3,639 for one claim of a tenth of them.
const DEAD: i64 = 200_000;

/// The sum of these, for a single poll that claims from each of the ten endpoints.
const ONE_POLL: i64 = 76_000;

/// Pages that all statements of a poll may touch, which changes 60 rows and their index entries.
const FEW: i64 = 1_500;

/// Holds a snapshot until it is dropped.
async fn snapshot(url: &str) -> PgConnection {
    let mut holder = database::connect(url).await;
    hold(&mut holder).await;
    holder
}

async fn hold(holder: &mut PgConnection) {
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    holder.execute(begin).await.unwrap();
}

/// Rows of ten endpoints: so many in this state, of which the nth is due at `due_at`.
async fn insert(connection: &mut PgConnection, many: i64, state: &str, due_at: &str) {
    let insert = format!(
        "INSERT INTO webhook_queue
             (message_id, endpoint_id, app_id, event, url, secret_sealed, state, due_at)
         SELECT gen_random_uuid(), ('00000000-0000-7000-8000-' || lpad((n % 10)::text, 12, '0'))::uuid,
                gen_random_uuid(), 'email.sent', 'https://example.com/', 'x', '{state}', {due_at}
         FROM generate_series(1, {many}) AS n"
    );
    connection.execute(AssertSqlSafe(insert)).await.unwrap();
}

/// Deliveries that came and went: an hour of them, up to ten minutes ago, and a replay.
async fn deliver_many(connection: &mut PgConnection, many: i64) {
    let due_at = format!("now() - interval '10 minutes' - interval '1 hour' * (n / {many}.0)");
    insert(connection, many, "ready", &due_at).await;
    let due_at = format!(
        "now() - interval '10 minutes' + interval '1 day' - interval '1 s' * (n / {many}.0)"
    );
    insert(connection, many / 10, "ready", &due_at).await;
    for statement in [
        "UPDATE webhook_queue SET state = 'leased', due_at = least(due_at, now()) + interval '1 minute'",
        "DELETE FROM webhook_queue",
    ] {
        connection.execute(statement).await.unwrap();
    }
}

async fn pool(url: &str) -> PgPool {
    pool::connect(&DatabaseSettings {
        url: SecretString::from(url.to_owned()),
        max_connections: 5,
        statement: Duration::from_mins(1),
    })
    .await
    .unwrap()
}

/// The pages of the queue and its indexes that were touched so far.
async fn pages(watcher: &mut PgConnection) -> i64 {
    sqlx::query_scalar(
        "SELECT (heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)::bigint
         FROM pg_statio_user_tables WHERE relname = 'webhook_queue'",
    )
    .fetch_one(watcher)
    .await
    .unwrap()
}

/// The pages that statements touch.
async fn touched<T>(
    watcher: &mut PgConnection,
    connection: &mut DedicatedConnection,
    statements: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
) -> (T, i64) {
    let before = pages(watcher).await;
    let result = connection.run(async |connection| {
        let result = statements(connection).await?;
        connection
            .execute("SELECT pg_stat_force_next_flush()")
            .await?;
        Ok(result)
    });
    let result = result.await.unwrap();
    (result, pages(watcher).await - before)
}

/// A window that begins a minute ago, as the widest of a poll does.
fn window(now: DateTime<Utc>) -> Window {
    let since = now - TimeDelta::minutes(1);
    Window {
        since,
        behind_since: since + TimeDelta::days(1),
        ahead: now + TimeDelta::minutes(1),
        behind_before: now + TimeDelta::minutes(1) + TimeDelta::days(1),
    }
}

/// A whole poll: how many deliveries it claims, and how many pages it touches.
async fn poll(watcher: &mut PgConnection, connection: &mut DedicatedConnection) -> (usize, i64) {
    let statements = async |connection: &mut PgConnection| {
        let now = Utc::now();
        let from = From {
            due_at: now - TimeDelta::seconds(30),
            lease: Some(now - TimeDelta::seconds(30)),
        };
        make_ready(connection, now, from, 1_000).await?;
        let found = ready::arrived(connection, window(now)).await?;
        let wanted: Vec<Wanted> = (found.iter())
            .map(|ready| Wanted {
                endpoint: ready.endpoint,
                from: ready.due_at,
                before: (!ready.is_behind).then(|| now + TimeDelta::minutes(1)),
                places: 4,
            })
            .collect();
        let claimed = claim(connection, &wanted, Duration::from_mins(1)).await?;
        let left = left(connection, &wanted).await?;
        assert!(left.iter().all(Option::is_none), "{left:?}");
        Ok(claimed.len())
    };
    touched(watcher, connection, statements).await
}

#[tokio::test]
async fn a_poll_reads_what_is_new_however_much_was_delivered() {
    let url = database::create().await;
    let mut watcher = database::connect(&url).await;
    let pool = pool(&url).await;
    let _holder = snapshot(&url).await;
    let mut early = DedicatedConnection::async_commit(pool.clone());
    // Its statements are planned while there is nothing.
    let (claimed, _) = poll(&mut watcher, &mut early).await;
    assert_eq!(claimed, 0);
    deliver_many(&mut watcher, DEAD).await;
    for (state, due_at) in [
        ("ready", "now() - interval '1 s'"),
        ("leased", "now() - interval '2 s'"),
        ("waiting", "now() - interval '3 s'"),
        ("ready", "now() + interval '1 day'"),
    ] {
        insert(&mut watcher, 10, state, due_at).await;
    }
    let (claimed, pages) = poll(&mut watcher, &mut early).await;
    assert_eq!(
        claimed, 40,
        "three and a replayed one for each of ten endpoints"
    );
    assert!(pages < FEW, "{pages} pages of a plan made for nothing");

    // Made when the statistics say that there is next to nothing.
    watcher.execute("ANALYZE webhook_queue").await.unwrap();
    let mut late = DedicatedConnection::async_commit(pool.clone());
    insert(&mut watcher, 30, "ready", "now()").await;
    let (claimed, pages) = poll(&mut watcher, &mut late).await;
    assert_eq!(claimed, 30);
    assert!(pages < FEW, "{pages} pages of a plan made for little");

    // The full scan is what reads it all.
    insert(&mut watcher, 30, "ready", "now() - interval '1 hour'").await;
    let nil = EndpointId(Uuid::nil());
    let ahead = Utc::now() + TimeDelta::minutes(1);
    let (found, pages) = touched(&mut watcher, &mut late, async |connection| {
        ready::all(connection, nil, 1_000, ahead).await
    })
    .await;
    assert_eq!(found.len(), 10);
    assert!(pages > DEAD / 50, "{pages} pages of all");
    pool.close().await;
}

#[tokio::test]
async fn each_round_goes_on_where_the_last_one_ended() {
    let url = database::create().await;
    let mut watcher = database::connect(&url).await;
    let pool = pool(&url).await;
    let _holder = snapshot(&url).await;
    // An outage has left many retries, each due at a time of its own.
    insert(
        &mut watcher,
        20_000,
        "waiting",
        "now() - interval '1 hour' + n * interval '1 ms'",
    )
    .await;
    let mut connection = DedicatedConnection::async_commit(pool.clone());
    let now = Utc::now();
    let mut from = From {
        due_at: now - TimeDelta::hours(2),
        lease: None,
    };
    let mut rounds = Vec::new();
    loop {
        let (round, pages) = touched(&mut watcher, &mut connection, async |connection| {
            make_ready(connection, now, from, 1_000).await
        })
        .await;
        if round.found == 0 {
            break;
        }
        rounds.push(pages);
        from.due_at = round.last.unwrap();
        if round.found < 1_000 {
            break;
        }
    }
    let left: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM webhook_queue WHERE state <> 'ready' OR due_at <> $1",
    )
    .bind(now)
    .fetch_one(&mut watcher)
    .await
    .unwrap();
    assert_eq!(left, 0, "each is ready from then on");
    // Beside the first ones, whose pages are new.
    let (first, last) = (rounds[1], rounds[rounds.len() - 1]);
    assert!(last < first * 2, "{rounds:?}");
    pool.close().await;
}

/// A gateway whose app has an endpoint, while a snapshot is held by the connection.
async fn under_a_snapshot() -> (Gateway, Receiver, PgConnection) {
    let gateway = gateway().start().await;
    let receiver = listener(&gateway).await;
    let mut holder = gateway.database().await;
    hold(&mut holder).await;
    (gateway, receiver, holder)
}

/// Events of an hour ago that are committed only now.
async fn happen_late(gateway: &Gateway) {
    let mut transaction = gateway.daemon.pool.begin().await.unwrap();
    mailgate_storage::webhook_messages::emit(
        &mut transaction,
        &[connected(gateway.app.id)],
        Utc::now(),
    )
    .await
    .unwrap();
    sqlx::query(
        "UPDATE webhook_queue SET due_at = due_at - interval '1 hour' WHERE state = 'ready'",
    )
    .execute(&mut *transaction)
    .await
    .unwrap();
    transaction.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_delivered_under_a_snapshot_and_what_commits_late_by_the_full_scan() {
    let (gateway, receiver, _holder) = under_a_snapshot().await;
    let app = gateway.app.id;
    deliver_many(&mut gateway.database().await, 20_000).await;
    let all = async |count: usize| {
        gateway
            .eventually("all is delivered", async |gateway| {
                receiver.count() >= count && queued(gateway).await.is_empty()
            })
            .await;
        assert_eq!(receiver.count(), count);
    };
    let many: Vec<_> = (0..500).map(|_| connected(app)).collect();
    happen(&gateway, &many).await;
    all(500).await;
    // The scan of the start may have found it, but not again.
    for count in 501..=503 {
        happen_late(&gateway).await;
        gateway.clock.advance(TimeDelta::minutes(6));
        all(count).await;
    }
    happen(&gateway, &many[..5]).await;
    all(508).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_reads_little_for_each_event_under_a_snapshot() {
    let (gateway, receiver, _holder) = under_a_snapshot().await;
    let app = gateway.app.id;
    let mut watcher = gateway.database().await;
    deliver_many(&mut watcher, DEAD).await;
    let flush = "SELECT pg_stat_force_next_flush()";
    watcher.execute(flush).await.unwrap();
    let before = pages(&mut watcher).await;
    for count in 1..=50 {
        happen(&gateway, &[connected(app)]).await;
        gateway
            .eventually("delivery", async |_| receiver.count() == count)
            .await;
    }
    // Its connections count what they have touched when they end, at the latest.
    gateway.stop_daemon().await;
    gateway.daemon.pool.close().await;
    let connected = "SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND application_name = 'mailgate'";
    gateway
        .eventually("end of its connections", async |gateway| {
            let left: i64 = sqlx::query_scalar(connected)
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap();
            left == 0
        })
        .await;
    let touched = pages(&mut watcher).await - before;
    assert!(touched < ONE_POLL, "{touched} pages");
}
