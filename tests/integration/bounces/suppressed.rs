//! `suppress_bounced`: messages to recipients that have bounced are refused, at both doors.

use chrono::TimeDelta;
use mailgate_types::bounce_type::BounceType::Permanent;
use reqwest::Method;
use serde_json::{Value, json};

use super::{bounce, log_id};
use crate::support::caller::{Answer, Caller, anonymous, path};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

/// A gateway at which bob@example.com has bounced, and whose app refuses such.
async fn start() -> Gateway {
    let gateway = Gateway::start().await;
    let (_, sent) = gateway.send_to("bob@example.com").await;
    bounce(&gateway, log_id(&sent), "bob@example.com", Permanent).await;
    choose(&gateway, true).await;
    gateway
}

async fn choose(gateway: &Gateway, suppress: bool) {
    let caller = Caller::owner(gateway).await;
    let change = json!({ "suppress_bounced": suppress });
    caller.put(&path(&gateway.app), &change).await.success(200);
    let app = caller.get(&path(&gateway.app)).await.success(200);
    assert_eq!(app["suppress_bounced"], suppress);
}

fn wrong_fields(answer: &Value) -> Vec<&str> {
    assert_eq!(answer["code"], "recipient_suppressed", "{answer}");
    let errors = answer["errors"].as_array().unwrap().iter();
    errors
        .map(|error| error["field"].as_str().unwrap())
        .collect()
}

fn arrived(gateway: &Gateway) -> usize {
    gateway.sandbox.inbox.list(usize::MAX).len()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_message_is_refused_and_the_recipients_are_named() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let (_, sent) = gateway.send_to("bob@example.com").await;
    bounce(&gateway, log_id(&sent), "bob@example.com", Permanent).await;
    // An app that doesn't choose it sends on; by default none does.
    let app = caller.get(&path(&gateway.app)).await.success(200);
    assert_eq!(app["suppress_bounced"], false);
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    // What is remembered of the app holds no longer from the answer on.
    choose(&gateway, true).await;
    let (status, answer) = gateway.send_to("BOB@example.com").await;
    assert_eq!((status, wrong_fields(&answer)), (422, vec!["to"]));
    let before = arrived(&gateway);
    let fields = json!({
        "to": "carol@example.com", "cc": ["dave@example.com", "bob@Example.com"],
        "bcc": ["bob@example.com"], "subject": "Hello", "body": "Hi.",
    });
    let (status, answer) = gateway.send(fields).await;
    assert_eq!(
        (status, wrong_fields(&answer)),
        (422, vec!["cc[1]", "bcc[0]"])
    );

    let mut client = SmtpClient::authenticated(&gateway).await;
    let content = format!("From: {MAILBOX}\r\nTo: carol@example.com\r\nSubject: x\r\n\r\nHi\r\n");
    // A blind copy by the envelope alone.
    let reply = client.submit("Bob@example.com", content.as_bytes()).await;
    assert!(reply.starts_with("550 5.1.1 "), "{reply}");
    assert!(reply.contains("bob@example.com"), "{reply}");
    assert_eq!(arrived(&gateway), before, "nobody got anything");
    assert_eq!(gateway.send_to("carol@example.com").await.0, 200);

    let refusals = format!("{}/refusals", path(&gateway.app));
    let report = caller.get(&refusals).await.success(200);
    let last = report["refusals"].as_array().unwrap().iter();
    let reasons: Vec<(&str, &str)> = last
        .map(|refusal| {
            let field = |name: &str| refusal[name].as_str().unwrap();
            (field("door"), field("reason"))
        })
        .collect();
    let reason = "recipient_suppressed";
    assert_eq!(
        reasons,
        [("smtp", reason), ("rest", reason), ("rest", reason)]
    );
    choose(&gateway, false).await;
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_days_or_until_it_is_deleted() {
    let gateway = start().await;
    let caller = Caller::owner(&gateway).await;
    let suppressions = format!("{}/suppressions", path(&gateway.app));
    let (_, sent) = gateway.send_to("carol@example.com").await;
    bounce(&gateway, log_id(&sent), "carol@example.com", Permanent).await;
    let list = caller.get(&suppressions).await.success(200);
    assert_eq!(
        (&list["total"], &list["has_more"]),
        (&json!(2), &json!(false))
    );
    assert_eq!(list["suppressions"][0]["to_address"], "carol@example.com");
    let page = caller
        .get(&format!("{suppressions}?limit=1"))
        .await
        .success(200);
    assert_eq!(page["has_more"], true);
    let one = caller
        .get(&format!("{suppressions}?to_address=BOB@example.com"))
        .await
        .success(200);
    assert_eq!(one["total"], 1);
    for wrong in ["to_address=bob", "limit=0", "limit=101", "offset=-1"] {
        let answer = caller.get(&format!("{suppressions}?{wrong}")).await;
        assert_eq!(answer.wrong_fields().len(), 1, "{wrong}");
    }
    // A slip must not delete all of them.
    let slip = caller
        .delete(&format!("{suppressions}?adress=bob@example.com"))
        .await;
    assert_eq!(slip.wrong_fields(), ["adress"]);
    let nobody = Caller::another(&gateway, "Other").await;
    assert_eq!(nobody.get(&suppressions).await.status, 404);
    assert_eq!(nobody.delete(&suppressions).await.status, 404);

    let delete = |address: &str| format!("{suppressions}?to_address={address}");
    let deleted = caller.delete(&delete("Bob@example.com")).await.success(200);
    assert_eq!(deleted, json!({ "deleted": 1 }));
    let again = caller.delete(&delete("bob@example.com")).await.success(200);
    assert_eq!(again, json!({ "deleted": 0 }));
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    assert_eq!(gateway.send_to("carol@example.com").await.0, 422);
    gateway
        .clock
        .advance(TimeDelta::days(30) - TimeDelta::minutes(1));
    assert_eq!(gateway.send_to("carol@example.com").await.0, 422);
    gateway.clock.advance(TimeDelta::minutes(2));
    assert_eq!(caller.get(&suppressions).await.success(200)["total"], 0);
    let (status, answer) = gateway.send_to("carol@example.com").await;
    assert_ne!(status, 422, "{answer}");

    let (_, sent) = gateway.send_to("dave@example.com").await;
    if sent["log_id"].is_string() {
        bounce(&gateway, log_id(&sent), "dave@example.com", Permanent).await;
    }
    let all = caller.delete(&suppressions).await.success(200);
    assert_eq!(all, json!({ "deleted": 1 }));
    let trail = caller
        .get("/audit?action=suppressions.deleted")
        .await
        .success(200);
    let details: Vec<&Value> = (trail["entries"].as_array().unwrap().iter())
        .map(|entry| &entry["details"])
        .collect();
    assert_eq!(
        details,
        [
            &json!({ "to_address": null, "deleted": 1 }),
            &json!({ "to_address": "bob@example.com", "deleted": 1 }),
        ]
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_before_keeps_its_answer() {
    let gateway = Gateway::start().await;
    choose(&gateway, true).await;
    let send = async |key: &str| {
        let body = json!({
            "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "Hello",
            "body": "It works.",
        });
        let request = anonymous(&gateway, Method::POST, "/send")
            .header("x-send-key", gateway.app.send_key.expose())
            .header("idempotency-key", key)
            .json(&body);
        Answer::to(request).await
    };
    let first = send("one").await.success(200);
    bounce(&gateway, log_id(&first), "bob@example.com", Permanent).await;
    let again = send("one").await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(again.success(200)["log_id"], first["log_id"]);
    assert_eq!(send("two").await.problem(), (422, "recipient_suppressed"));
    // A refusal leaves the key free.
    let caller = Caller::owner(&gateway).await;
    let suppressions = format!("{}/suppressions", path(&gateway.app));
    caller.delete(&suppressions).await.success(200);
    assert_eq!(send("two").await.status, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_has_its_newest_ones() {
    let gateway = Gateway::start().await;
    let mut database = gateway.database().await;
    sqlx::query(
        "INSERT INTO suppressions (app_id, address, log_id, bounced_at)
         SELECT $1, 'user' || number || '@example.com', $1, now() - number * interval '1 second'
         FROM generate_series(1, 102500) AS number",
    )
    .bind(gateway.app.id.0)
    .execute(&mut database)
    .await
    .unwrap();
    gateway.daemon.accounts.forget_suppressions().await.unwrap();
    let (left, oldest): (i64, i64) = sqlx::query_as(
        "SELECT count(*), max(substring(address FROM '[0-9]+')::bigint) FROM suppressions",
    )
    .fetch_one(&mut database)
    .await
    .unwrap();
    assert_eq!((left, oldest), (100_000, 100_000));
    gateway.stop().await;
}
