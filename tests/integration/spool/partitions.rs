//! The log's daily partitions.

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use mailgate_storage::partitions::midnight;
use mailgate_types::clock::Clock;
use serde_json::json;

use crate::command_line::process::http_client;
use crate::command_line::serve::replica;
use crate::support::database::COUNTED;
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::ports;
use crate::support::retention::{kept_for, kept_since, look_after};

fn partition(day: NaiveDate) -> String {
    format!("email_logs_{}", day.format("%Y%m%d"))
}

/// The log's rows: where each lies, and its moment.
async fn rows(gateway: &Gateway) -> Vec<(String, DateTime<Utc>)> {
    sqlx::query_as("SELECT tableoid::regclass::text, sent_at FROM email_logs ORDER BY id")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}

async fn partitions(gateway: &Gateway) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT inhrelid::regclass::text FROM pg_inherits
         WHERE inhparent = 'email_logs'::regclass ORDER BY 1",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_lie_in_their_day_and_go_with_it() {
    let gateway = Gateway::start().await;
    for days in [0, 10] {
        gateway.clock.advance(TimeDelta::days(days));
        let (status, answer) = gateway.send_to("bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
    }
    let rows_before = rows(&gateway).await;
    assert_eq!(rows_before.len(), 2);
    for (table, sent_at) in &rows_before {
        assert_eq!(*table, partition(sent_at.date_naive()));
    }
    assert_ne!(rows_before[0].0, rows_before[1].0);
    assert!((rows_before[1].1 - gateway.clock.now()).abs() < TimeDelta::minutes(1));

    let today = gateway.clock.now().date_naive();
    let oldest = today - Days::new(5);
    look_after(&gateway, kept_for(5)).await;
    assert_eq!(rows(&gateway).await, rows_before[1..]);
    assert_eq!(partitions(&gateway).await.first(), Some(&partition(oldest)));
    // Another round may be making them.
    gateway
        .eventually("the days ahead", async |gateway| {
            partitions(gateway).await.last() == Some(&partition(today + Days::new(35)))
        })
        .await;
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_class WHERE relname = $1")
        .bind(partition(oldest - Days::new(1)))
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(left, 0, "the table outlives its partition");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_runs_for_months_always_has_a_day_to_log_to() {
    let gateway = Gateway::start().await;
    for _ in 0..3 {
        gateway.clock.advance(TimeDelta::days(14));
        let day = partition(gateway.clock.now().date_naive() + Days::new(14));
        gateway
            .eventually("the next partitions", async |gateway| {
                look_after(gateway, kept_for(90)).await;
                partitions(gateway).await.contains(&day)
            })
            .await;
        let (status, answer) = gateway.send_to("bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(gateway.logged().await.len(), 3);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message_that_waits_keeps_a_day() {
    let gateway = Gateway::builder()
        .set("SENDING__RETRY_SECONDS", 2_000_000)
        .set("SENDING__MAXIMUM_AGE_SECONDS", 9_000_000)
        .start()
        .await;
    assert_eq!(gateway.send_to("tempfail@example.com").await.0, 202);
    gateway.clock.advance(TimeDelta::days(10));
    look_after(&gateway, kept_for(5)).await;
    assert!(rows(&gateway).await.is_empty());
    assert_eq!(gateway.spooled().await, 1);
    // It comes to its end all the same, and is counted.
    gateway.clock.advance(TimeDelta::days(20));
    gateway
        .eventually("the message's end", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
    assert!(rows(&gateway).await.is_empty());
    let counted: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
        "SELECT coalesce(sum(messages), 0)::bigint FROM {COUNTED} AS counted
         WHERE status = 'failed_perm'"
    )))
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    assert_eq!(counted, 1);
    gateway.stop().await;
}

/// The days of the past and the future that no partition was made for.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_moved_still_has_a_day_to_log_to() {
    for moved in [
        TimeDelta::days(100),
        TimeDelta::days(-50),
        TimeDelta::hours(-26),
    ] {
        let gateway = Gateway::start().await;
        // A round that is under way when the clock moves must not make the new day.
        patience::until("first days of the log", async || {
            partitions(&gateway).await.len() > 35
        })
        .await;
        gateway.clock.advance(moved);
        let (status, answer) = gateway.send_to("bob@example.com").await;
        assert_eq!(status, 200, "{moved} {answer}");
        let (status, answer) = gateway.send_to("permfail@example.com").await;
        assert_eq!(status, 502, "{moved} {answer}");
        let (status, answer) = gateway.send_to("tempfail@example.com").await;
        assert_eq!(status, 202, "{moved} {answer}");
        let logged: Vec<String> = (gateway.logged().await.into_iter())
            .map(|(status, _)| status)
            .collect();
        assert_eq!(logged, ["sent", "failed_perm", "failed_temp"], "{moved}");
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beginning_of_the_log_that_lies_ahead_is_set_back() {
    let gateway = Gateway::start().await;
    let ahead = "UPDATE log_retention SET kept_since = date_trunc('day', now(), 'UTC') + interval '10 days'";
    sqlx::query(ahead)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway
        .eventually("beginning that is set back", async |gateway| {
            // Another round may be at it, which the worker leaves alone.
            look_after(gateway, kept_for(90)).await;
            kept_since(gateway).await < gateway.clock.now()
        })
        .await;
    // Days before the first partition are gone.
    let first = partitions(&gateway).await.into_iter().next().unwrap();
    assert_eq!(partition(kept_since(&gateway).await.date_naive()), first);
    assert_eq!(gateway.send_to("permfail@example.com").await.0, 502);
    assert_eq!(gateway.logged().await.len(), 1);
    // It moves ahead as before.
    gateway.clock.advance(TimeDelta::days(40));
    let moved = midnight(gateway.clock.now().date_naive() - Days::new(30));
    look_after(&gateway, kept_for(30)).await;
    assert_eq!(kept_since(&gateway).await, moved);
    gateway.stop().await;
}

#[tokio::test]
async fn a_message_that_is_older_than_the_log_is_counted_and_logged() {
    let gateway = Gateway::start().await;
    gateway.stop_daemon().await;
    let metrics = ports::local_address();
    let mut serve = replica(&gateway)
        .set("METRICS__LISTEN", metrics.to_string())
        .start();
    let http = serve.ready().await.http;
    let body = json!({
        "pk": gateway.app.pushable_key.expose(),
        "to": "permfail@example.com",
        "subject": "Hello",
        "body": "It works.",
    });
    let unlogged = async || {
        let scrape = http_client().get(format!("http://{metrics}/metrics"));
        let scrape = scrape.send().await.unwrap().text().await.unwrap();
        let line = scrape
            .lines()
            .find_map(|line| line.strip_prefix("mailgate_unlogged_total "));
        line.unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(unlogged().await, 0);
    patience::until("message without a row", async || {
        // The first look at the partitions may set it back meanwhile.
        let ahead = "UPDATE log_retention SET kept_since = now() + interval '1 hour'";
        sqlx::query(ahead)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        let sent = http_client().post(format!("http://{http}/send"));
        let sent = sent.header("x-send-key", gateway.app.send_key.expose());
        let answer = sent.json(&body).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 502);
        unlogged().await > 0
    })
    .await;
    let line = serve
        .logged("messages have ended that are older than the log: they are counted, and have no row in it")
        .await;
    assert_eq!(
        (&line["level"], &line["messages"]),
        (&json!("WARN"), &json!(1))
    );
    serve.terminate().await;
    gateway.stop().await;
}
