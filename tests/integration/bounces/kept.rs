//! What the log and the statistics keep of bounces, and when it goes.

use chrono::TimeDelta;
use mailgate_types::bounce_type::BounceType::{Permanent, Temporary};
use mailgate_types::clock::Clock as _;
use serde_json::{Value, json};

use super::{bounce, log_id};
use crate::support::caller::{Caller, path};
use crate::support::gateway::{Gateway, OPERATOR};
use crate::support::retention::{kept_for, look_after};

async fn rows(gateway: &Gateway, table: &str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

async fn folded(gateway: &Gateway) {
    gateway
        .eventually("the adding up", async |gateway| {
            rows(gateway, "bounce_counter_changes").await == 0
        })
        .await;
}

/// Bounced ever, today and this month.
async fn stats(caller: &Caller<'_>) -> [Value; 3] {
    let stats = caller.get("/stats").await.success(200);
    [
        "total_emails_bounced",
        "emails_bounced_today",
        "emails_bounced_month",
    ]
    .map(|name| stats[name].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_counts_once_and_in_the_hour_in_which_it_was_sent() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let (_, sent) = gateway.send_to("bob@example.com").await;
    let (_, other) = gateway.send_to("carol@example.com").await;
    let day = gateway.clock.now().date_naive();
    gateway.clock.advance(TimeDelta::days(1));
    bounce(&gateway, log_id(&sent), "bob@example.com", Temporary).await;
    assert_eq!(stats(&caller).await[0], 0);
    bounce(&gateway, log_id(&sent), "bob@example.com", Permanent).await;
    bounce(&gateway, log_id(&sent), "eve@example.com", Permanent).await;
    for is_folded in [false, true] {
        if is_folded {
            folded(&gateway).await;
        }
        let [all, today, _] = stats(&caller).await;
        assert_eq!((all, today), (json!(1), json!(0)), "{is_folded}");
        let days = caller.get("/email-stats?period=day").await.success(200);
        let data = days["data"].as_array().unwrap();
        let of_day = data
            .iter()
            .find(|it| it["date"] == day.to_string())
            .unwrap();
        assert_eq!(
            (&of_day["sent"], &of_day["bounced"]),
            (&json!(2), &json!(1))
        );
        let months = caller.get("/email-stats").await.success(200);
        assert_eq!(months["summary"]["bounced_12months"], 1);
        for (query, expected) in [
            ("bounced=true", vec![&sent]),
            ("bounced=false", vec![&other]),
            ("bounced=true&status=sent", vec![&sent]),
            ("bounced=true&status=failed_perm", vec![]),
            ("bounced=true&plugin=plugin_b_alt", vec![]),
            ("bounced=false&plugin=plugin_a", vec![&other]),
        ] {
            let page = caller.get(&format!("/logs?{query}")).await.success(200);
            assert_eq!(page["total"], expected.len(), "{query}");
            let ids: Vec<&Value> = (page["logs"].as_array().unwrap().iter())
                .map(|log| &log["id"])
                .collect();
            let expected: Vec<&Value> = expected.iter().map(|sent| &sent["log_id"]).collect();
            assert_eq!(ids, expected, "{query}");
        }
    }
    let wrong = caller.get("/logs?bounced=yes").await;
    assert_eq!(wrong.wrong_fields(), ["bounced"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_comes_before_its_message_is_sent_counts_when_it_is() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let (status, waiting) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202);
    let log = log_id(&waiting);
    bounce(&gateway, log, "tempfail@example.com", Permanent).await;
    let show = async || caller.get(&format!("/logs/{log}")).await.success(200);
    let before = show().await;
    assert_eq!(before["bounced"], false);
    assert_eq!(before["bounces"].as_array().unwrap().len(), 1);
    gateway.daemon.mailboxes.mark_bounced().await.unwrap();
    assert_eq!(
        (stats(&caller).await[0].clone(), &show().await["bounced"]),
        (json!(0), &json!(false))
    );
    sqlx::query("UPDATE email_logs SET status = 'sent'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    for _ in 0..2 {
        gateway.daemon.mailboxes.mark_bounced().await.unwrap();
        assert_eq!(show().await["bounced"], true);
        assert_eq!(stats(&caller).await[0], 1);
    }
    let waits = rows(&gateway, "bounces WHERE awaits_sent").await;
    assert_eq!(waits, 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn they_go_with_their_app() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let (_, first) = gateway.send_to("bob@example.com").await;
    let (_, second) = gateway.send_to("bob@example.com").await;
    bounce(&gateway, log_id(&first), "bob@example.com", Permanent).await;
    folded(&gateway).await;
    // One is added up when the app goes, the other one isn't.
    bounce(&gateway, log_id(&second), "carol@example.com", Permanent).await;
    assert_eq!(stats(&caller).await, [json!(2), json!(2), json!(2)]);
    let deleted = gateway
        .daemon
        .mailboxes
        .delete_app(gateway.app.id, OPERATOR);
    assert!(deleted.await.unwrap());
    assert_eq!(stats(&caller).await, [json!(0), json!(0), json!(0)]);
    let page = caller.get("/logs?bounced=true").await.success(200);
    assert_eq!(page["total"], 0);
    gateway
        .eventually("the removal", async |gateway| {
            rows(gateway, "bounces").await + rows(gateway, "bounced_messages").await == 0
        })
        .await;
    folded(&gateway).await;
    assert_eq!(rows(&gateway, "suppressions").await, 0);
    assert_eq!(stats(&caller).await, [json!(0), json!(0), json!(0)]);
    gateway.stop().await;
}

/// The statements that the release before deletes an app and adds up with.
#[tokio::test(flavor = "multi_thread")]
async fn the_release_before_counts_right() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let (_, sent) = gateway.send_to("bob@example.com").await;
    bounce(&gateway, log_id(&sent), "bob@example.com", Permanent).await;
    folded(&gateway).await;
    assert_eq!(stats(&caller).await[0], 1);
    let mut database = gateway.database().await;
    // It knows the old columns alone.
    sqlx::query(
        "INSERT INTO email_counters AS counter
             (owner_id, unit, start, plugin_a_sent, plugin_a_failed_temp, plugin_a_failed_perm,
              plugin_b_sent, plugin_b_failed_temp, plugin_b_failed_perm)
         SELECT owner_id, unit, start, 1, 0, 0, 0, 0, 0 FROM email_counters
         ON CONFLICT (owner_id, unit, start) DO UPDATE
         SET plugin_a_sent = counter.plugin_a_sent + EXCLUDED.plugin_a_sent",
    )
    .execute(&mut database)
    .await
    .unwrap();
    let both = caller.get("/stats").await.success(200);
    assert_eq!(
        (&both["total_emails_sent"], &both["total_emails_bounced"]),
        (&json!(2), &json!(1))
    );
    for statement in [
        "UPDATE email_counters AS counter SET plugin_a_sent = counter.plugin_a_sent - its.plugin_a_sent
         FROM email_counters AS its, apps
         WHERE its.owner_id = apps.id AND counter.unit = its.unit AND counter.start = its.start
           AND counter.owner_id = apps.subscriber_id",
        "DELETE FROM apps",
    ] {
        sqlx::query(statement).execute(&mut database).await.unwrap();
    }
    let none = caller.get("/stats").await.success(200);
    assert_eq!(
        (&none["total_emails_sent"], &none["total_emails_bounced"]),
        (&json!(0), &json!(0))
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn they_go_with_the_log_and_statistics_stay() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let (_, sent) = gateway.send_to("bob@example.com").await;
    bounce(&gateway, log_id(&sent), "bob@example.com", Permanent).await;
    folded(&gateway).await;
    gateway.clock.advance(TimeDelta::days(40));
    let (_, later) = gateway.send_to("carol@example.com").await;
    bounce(&gateway, log_id(&later), "carol@example.com", Permanent).await;
    look_after(&gateway, kept_for(30)).await;
    assert_eq!(rows(&gateway, "bounces").await, 1);
    assert_eq!(rows(&gateway, "bounced_messages").await, 1);
    let page = caller.get("/logs?bounced=true").await.success(200);
    assert_eq!(page["total"], 1);
    assert_eq!(page["logs"][0]["id"], later["log_id"]);
    assert_eq!(stats(&caller).await[0], 2);
    // The first suppression has expired meanwhile; it is removed.
    let suppressions = format!("{}/suppressions", path(&gateway.app));
    let list = caller.get(&suppressions).await.success(200);
    assert_eq!(list["total"], 1);
    gateway.daemon.accounts.forget_suppressions().await.unwrap();
    assert_eq!(rows(&gateway, "suppressions").await, 1);
    gateway.stop().await;
}
