//! `GET /queue`: what waits for a subscriber's apps, and for what.

use chrono::TimeDelta;
use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};

use super::*;
use crate::support::caller::{has_just, is_moment, text};
use crate::support::gateway::MAILBOX;

const HOUR: TimeDelta = TimeDelta::hours(1);

fn group<'a>(summary: &'a Value, reason: &str) -> &'a Value {
    let mut groups = summary["groups"].as_array().unwrap().iter();
    groups
        .find(|group| group["reason"] == reason)
        .unwrap_or_else(|| panic!("{reason}: {summary}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_summary_at_a_time_and_a_further_one_waits_for_a_while() {
    let gateway = Gateway::builder()
        .set("DATABASE__MAX_CONNECTIONS", 40)
        .start()
        .await;
    let owner = Caller::owner(&gateway).await;
    // Each takes as long as a statement waits for a lock, which is as long as a further one waits for its turn.
    let mut database = gateway.database().await;
    let locked = sqlx::raw_sql("BEGIN; LOCK TABLE spool_usage IN ACCESS EXCLUSIVE MODE");
    locked.execute(&mut database).await.unwrap();
    let (one, two, three) = tokio::join!(
        owner.get("/queue"),
        owner.get("/queue"),
        owner.get("/queue")
    );
    let mut busy = Vec::new();
    for answer in [one, two, three] {
        if answer.status == 429 {
            busy.push(answer);
        } else {
            assert_eq!(answer.problem(), (503, "unavailable"));
        }
    }
    let busy = busy.pop().expect("one of three has found no turn");
    assert_eq!(busy.problem().1, "too_many_requests");
    assert_eq!(busy.header("retry-after"), "5");
    assert!(
        text(&busy.body, "detail").contains("GET /queue"),
        "{busy:?}"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_counted_by_app_mailbox_and_reason() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let empty = owner.get("/queue").await.success(200);
    let nothing = json!({ "messages": 0, "bytes": 0, "groups": [], "is_complete": true });
    assert_eq!(empty, nothing);

    let first = scheduled(&gateway, "bob@example.com", HOUR).await;
    scheduled(&gateway, "bob@example.com", HOUR * 2).await;
    for _ in 0..3 {
        waiting(&gateway).await;
    }
    gateway
        .connect(None, Plugin::B, "grace@sandbox.example")
        .await;
    let message = json!({
        "to": "tempfail@example.com", "subject": "x", "body": "x", "plugin": "plugin_b",
    });
    assert_eq!(gateway.send(message).await.0, 202);
    // One is suspended, another waits for its mailbox's turn. Blocked first, since who isn't is released.
    run(
        &gateway,
        "UPDATE subscribers SET subscription_status = 'past_due'",
    )
    .await;
    run(
        &gateway,
        "UPDATE spool SET awaits_subscription = true WHERE id = (SELECT id FROM spool WHERE is_logged AND plugin = 'plugin_a' ORDER BY id DESC LIMIT 1)",
    )
    .await;
    run(
        &gateway,
        "UPDATE spool SET awaits_pace = true WHERE plugin = 'plugin_b'",
    )
    .await;
    // Nobody else's is in there.
    let (_, other) = crate::support::gateway::create_app(&gateway.daemon, "Other").await;
    sqlx::query(
        "UPDATE spool SET app_id = $1 WHERE id = (SELECT id FROM spool WHERE is_logged ORDER BY id LIMIT 1)",
    )
    .bind(other.id.0)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    run(&gateway, "DELETE FROM spool_usage_changes").await;
    run(
        &gateway,
        "INSERT INTO spool_usage_changes SELECT app_id, 1, size_bytes FROM spool",
    )
    .await;

    let summary = owner.get("/queue").await.success(200);
    has_just(&summary, vec!["messages", "bytes", "groups", "is_complete"]);
    assert_eq!(
        (&summary["messages"], &summary["is_complete"]),
        (&json!(5), &json!(true))
    );
    let groups = summary["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 4, "{summary}");
    let sum = |field: &str| -> i64 {
        groups
            .iter()
            .map(|group| group[field].as_i64().unwrap())
            .sum()
    };
    assert_eq!(
        (sum("messages"), sum("bytes")),
        (5, summary["bytes"].as_i64().unwrap())
    );
    let later = group(&summary, "scheduled");
    has_just(
        later,
        vec![
            "app_id",
            "app_name",
            "oauth_credential_id",
            "email",
            "plugin",
            "reason",
            "messages",
            "bytes",
            "oldest_at",
            "next_attempt_at",
        ],
    );
    assert_eq!(later["messages"], 2);
    assert_eq!(later["email"], MAILBOX);
    assert_eq!(later["app_id"], gateway.app.id.to_string());
    let shown = owner.get(&format!("/logs/{first}")).await.success(200);
    assert_eq!(later["next_attempt_at"], shown["send_at"]);
    assert_eq!(later["oldest_at"], shown["send_at"]);
    assert_eq!(group(&summary, "subscription")["messages"], 1);
    let paced = group(&summary, "mailbox_limit");
    assert_eq!(
        (&paced["plugin"], &paced["email"]),
        (&json!("plugin_b_alt"), &json!("grace@sandbox.example"))
    );
    let failed = group(&summary, "temporary_failure");
    assert_eq!(failed["messages"], 1);
    is_moment(text(failed, "oldest_at"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_of_others_is_not_read() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    waiting(&gateway).await;
    run(
        &gateway,
        "INSERT INTO spool
             (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
              subject, plugin, size_bytes, has_attachments, recipients, smtputf8, opened_at, state,
              next_attempt_at, send_at)
         SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'ada@example.com',
                'bob@example.com', '{}', '{}', 'Hello', 'plugin_a', 1000, false,
                '{bob@example.com}', false, now(), 'deferred', '2200-01-01', '2200-01-01'
         FROM generate_series(1, 5000)",
    )
    .await;
    run(&gateway, "ANALYZE spool").await;
    let read: &'static str =
        "SELECT coalesce(sum(idx_tup_fetch), 0)::bigint + coalesce(sum(seq_tup_read), 0)::bigint
        FROM pg_stat_user_tables WHERE relname = 'spool'";
    let before = number(&gateway, read).await;
    for _ in 0..3 {
        let summary = owner.get("/queue").await.success(200);
        assert_eq!(summary["groups"][0]["messages"], 1);
        assert_eq!(
            owner.get("/logs?status=scheduled").await.success(200)["total"],
            0
        );
    }
    // The statistics come a little later; other readers are the worker and the gauges, by index.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let read = number(&gateway, read).await - before;
    assert!(read < 5_000, "{read} rows were read");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_groups_than_are_shown_are_not_complete() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    sqlx::query(
        "INSERT INTO spool
             (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
              subject, plugin, size_bytes, has_attachments, recipients, smtputf8, opened_at, state,
              next_attempt_at)
         SELECT gen_random_uuid(), $1, gen_random_uuid(), 'ada@example.com', 'bob@example.com', '{}',
                '{}', 'Hello', 'plugin_a', 1000, false, '{bob@example.com}', false, now(), 'deferred',
                '2200-01-01'
         FROM generate_series(1, 101)",
    )
    .bind(gateway.app.id.0)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    let summary = owner.get("/queue").await.success(200);
    assert_eq!(summary["groups"].as_array().unwrap().len(), 100);
    assert_eq!(summary["is_complete"], false);
    assert_eq!(summary["groups"][0]["email"], Value::Null);
    gateway.stop().await;
}
