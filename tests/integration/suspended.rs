//! Subscribers whom the operator suspends: nothing of them leaves any gateway, and what waits does so until they are
//! resumed.

use std::time::Duration;

use mailgate_types::clock::Clock;
use reqwest::Method;
use serde_json::{Value, json};

use crate::operator::{answered, subscriber};
use crate::portal::visitor::Visitor;
use crate::support::caller::{Answer, Caller, anonymous, path};
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::StandIn;

const REASON: &str = "Spam complaints, see <ticket 17>";

/// Suspends the gateway's subscriber in another process.
async fn suspend(gateway: &Gateway, reason: &str) -> Value {
    let id = gateway.subscriber.to_string();
    let url = &gateway.database_url;
    answered(url, &["suspend", &id, "--reason", reason]).await
}

async fn resume(gateway: &Gateway) -> Value {
    let id = gateway.subscriber.to_string();
    answered(&gateway.database_url, &["resume", &id]).await
}

/// `POST /send` at one of the gateways that share the subscriber.
async fn send(at: &Gateway, of: &Gateway, fields: Value, key: Option<&str>) -> Answer {
    let mut body = json!({
        "pk": of.app.pushable_key.expose(), "to": "bob@example.com", "subject": "Hello", "body": "Hi",
    });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    let request = anonymous(at, Method::POST, "/send").json(&body);
    let request = request.header("x-send-key", of.app.send_key.expose());
    let request = key.into_iter().fold(request, |request, key| {
        request.header("idempotency-key", key)
    });
    Answer::to(request).await
}

const REFUSED: (u16, &str) = (402, "subscriber_suspended");

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_accepted_by_any_gateway_until_the_account_is_resumed() {
    let stand_in = StandIn::start().await;
    let gateway = Gateway::builder().plugins(stand_in.plugins()).start().await;
    let mailbox = stand_in.connect(&gateway).await;
    let replica = gateway.replica().plugins(stand_in.plugins());
    let other = replica.start().await;
    let arrived = || stand_in.submission.messages().len();
    let (mut open, mut idle) = (
        SmtpClient::authenticated(&gateway).await,
        SmtpClient::authenticated(&gateway).await,
    );
    let at_b = json!({ "plugin": "plugin_b" });
    let first = send(&other, &gateway, at_b.clone(), Some("order 1")).await;
    let first = first.success(200);
    send(&gateway, &gateway, at_b.clone(), None)
        .await
        .success(200);
    let message = format!("From: {}\r\nSubject: s\r\n\r\nHi\r\n", mailbox.email);
    let reply = open.submit("bob@example.com", message.as_bytes()).await;
    assert!(reply.starts_with("250 "), "{reply}");

    let told = suspend(&gateway, REASON).await;
    assert_eq!(told["status"], "suspended", "{told}");
    assert_eq!(told["changed"], true);
    let sent = arrived();
    // Both remember the app from before.
    for at in [&gateway, &other] {
        let refused = send(at, &gateway, at_b.clone(), None).await;
        assert_eq!(refused.problem(), REFUSED);
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(REASON), "{detail}");
        assert!(detail.contains("operator"), "{detail}");
    }
    // A message with its own body, and one that is to leave later.
    let later = gateway.clock.now() + Duration::from_hours(1);
    let scheduled = json!({ "plugin": "plugin_b", "send_at": later.to_rfc3339() });
    let refused = send(&other, &gateway, scheduled, None).await;
    assert_eq!(refused.problem(), REFUSED);
    let message = format!(
        "From: {}\r\nSubject: s\r\n\r\nHi\r\n",
        crate::support::gateway::MAILBOX
    );
    for client in [&mut open, &mut idle] {
        let reply = client.submit("bob@example.com", message.as_bytes()).await;
        assert!(reply.starts_with("451 4.7.1 "), "{reply}");
        assert!(reply.contains("Spam complaints"), "{reply}");
    }
    // A repeated request has its answer, and sends nothing.
    let again = send(&gateway, &gateway, at_b.clone(), Some("order 1")).await;
    assert_eq!(again.success(200)["log_id"], first["log_id"]);
    assert_eq!(arrived(), sent);

    let told = resume(&gateway).await;
    assert_eq!(told["status"], "active", "{told}");
    for at in [&gateway, &other] {
        send(at, &gateway, at_b.clone(), None).await.success(200);
    }
    assert_eq!(arrived(), sent + 2);
    other.stop_daemon().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_leaves_after_the_resume() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let later = gateway.clock.now() + Duration::from_mins(10);
    let scheduled = json!({ "send_at": later.to_rfc3339() });
    let scheduled = send(&gateway, &gateway, scheduled, None).await;
    let scheduled = scheduled.success(202);
    suspend(&gateway, REASON).await;
    let sent = gateway.sandbox.inbox.count();
    gateway.clock.advance(chrono::TimeDelta::minutes(11));
    let id = scheduled["log_id"].as_str().unwrap().to_owned();
    let waits = "SELECT count(*) FROM spool WHERE state = 'deferred' AND awaits_subscription";
    gateway
        .eventually("the postponement", async |gateway| {
            let mut database = gateway.database().await;
            let waiting: i64 = sqlx::query_scalar(waits)
                .fetch_one(&mut database)
                .await
                .unwrap();
            waiting == 1
        })
        .await;
    let shown = owner.get(&format!("/logs/{id}")).await.success(200);
    assert!(
        shown["error_message"].as_str().unwrap().contains(REASON),
        "{shown}"
    );
    let retried = owner.post(&format!("/logs/{id}/retry"), &json!({})).await;
    assert_eq!(retried.problem(), REFUSED);
    // Nothing of the payment provider's resumes it.
    sqlx::query("UPDATE subscribers SET subscription_status = 'trialing'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway.clock.advance(chrono::TimeDelta::hours(2));
    let retried = owner.post(&format!("/logs/{id}/retry"), &json!({})).await;
    assert_eq!(retried.problem(), REFUSED);
    assert_eq!(gateway.sandbox.inbox.count(), sent);
    assert_eq!(gateway.spooled().await, 1);

    resume(&gateway).await;
    gateway
        .eventually("the message", async |gateway| gateway.spooled().await == 0)
        .await;
    assert_eq!(gateway.sandbox.inbox.count(), sent + 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_stays_readable_and_can_end_what_it_has() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let mut visitor = Visitor::signed_in(&gateway).await;
    let me = owner.get("/me").await.success(200);
    assert_eq!(
        (&me["status"], &me["suspension_reason"], &me["suspended_at"]),
        (&json!("active"), &Value::Null, &Value::Null)
    );
    suspend(&gateway, REASON).await;
    let me = owner.get("/me").await.success(200);
    assert_eq!(me["status"], "suspended");
    assert_eq!(me["suspension_reason"], REASON);
    assert!(me["suspended_at"].is_string(), "{me}");
    assert_eq!(me["subscription_status"], "active", "it is paid as before");

    let page = visitor.get("/portal").await;
    assert_eq!(page.status, 200);
    assert!(
        page.text.contains("is suspended by the operator"),
        "{}",
        page.text
    );
    assert!(page.text.contains("&lt;ticket 17&gt;"), "{}", page.text);
    let app = [("name", "Another")];
    assert_eq!(visitor.post("/portal/apps", &app).await.status, 402);
    let created = owner.post("/apps", &json!({ "name": "Another" })).await;
    assert_eq!(created.problem(), REFUSED);
    let way = path(&gateway.app);
    let session = owner
        .post(&format!("{way}/connect-sessions"), &json!({}))
        .await;
    assert_eq!(session.problem(), REFUSED);
    // What ends something, or guards the account, goes on.
    let key = owner.reset(&format!("{way}/reset-send-key")).await;
    key.success(200);
    let name = json!({ "label": "Renamed" });
    let renamed = Answer::to(owner.request(Method::PATCH, "/me").json(&name)).await;
    let renamed = renamed.success(200);
    assert_eq!(renamed["status"], "suspended");
    let secret = owner.reset("/me/reset-api-secret").await.success(200);
    let owner = Caller {
        gateway: &gateway,
        secret: secret["api_secret"].as_str().unwrap().to_owned(),
    };
    let users = owner.get(&way).await.success(200);
    assert!(users.to_string().contains("sandbox.example"), "{users}");
    owner.delete(&way).await.success(200);
    // Somebody who signs in now reads it too.
    let page = visitor.sign_in(&owner.secret).await;
    assert_eq!(page.status, 303, "{page:?}");
    let page = visitor.get("/portal/settings").await;
    assert!(
        page.text.contains("is suspended by the operator"),
        "{}",
        page.text
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_reason_takes_the_place_of_the_first_one() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    suspend(&gateway, REASON).await;
    let since = owner.get("/me").await.body["suspended_at"].clone();
    gateway.clock.advance(chrono::TimeDelta::hours(1));
    let again = suspend(&gateway, REASON).await;
    assert_eq!(again["changed"], false, "{again}");
    let other = suspend(&gateway, "Chargebacks").await;
    assert_eq!(other["changed"], true, "{other}");
    let me = owner.get("/me").await.success(200);
    assert_eq!(me["suspension_reason"], "Chargebacks");
    assert_eq!(me["suspended_at"], since, "it is suspended since then");
    let refused = send(&gateway, &gateway, json!({}), None).await;
    assert!(
        refused.body.to_string().contains("Chargebacks"),
        "{}",
        refused.body
    );
    let listed = answered(&gateway.database_url, &["list"]).await;
    let listed = &listed["subscribers"][0];
    assert_eq!(listed["status"], "suspended");
    assert_eq!(listed["suspension_reason"], "Chargebacks");
    resume(&gateway).await;
    assert_eq!(resume(&gateway).await["changed"], false);

    // Each change is recorded, and told by mail.
    let rows: Vec<(String, Value)> = sqlx::query_as(
        "SELECT action, details->'reason' FROM audit_entries
         WHERE action LIKE 'subscriber.%ed' AND action <> 'subscriber.created' ORDER BY id",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap();
    let change = |from: Option<&str>, to: Option<&str>| json!({ "from": from, "to": to });
    let expected = [
        ("subscriber.suspended", change(None, Some(REASON))),
        (
            "subscriber.suspended",
            change(Some(REASON), Some("Chargebacks")),
        ),
        ("subscriber.resumed", change(Some("Chargebacks"), None)),
    ];
    let expected = expected.map(|(action, change)| (action.to_owned(), change));
    assert_eq!(rows, expected);
    let told: Vec<String> = sqlx::query_scalar("SELECT kind FROM billing_notices ORDER BY id")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(
        told,
        ["account_suspended", "account_suspended", "account_resumed"]
    );
    gateway.stop().await;
}

#[tokio::test]
async fn a_reason_that_is_none_is_refused() {
    let url = crate::support::database::create().await;
    let unknown = "sub_01h2xcejqtf2nbrexx3vqjhp41";
    let long = "x".repeat(251);
    for (arguments, word) in [
        (vec!["suspend", unknown, "--reason", " "], "--reason"),
        (vec!["suspend", unknown, "--reason", "a\nb"], "--reason"),
        (vec!["suspend", unknown, "--reason", &long], "--reason"),
        (vec!["suspend", unknown, "--reason", "Spam"], unknown),
        (vec!["resume", unknown], unknown),
        (vec!["resume", "cred_01h2xcejqtf2nbrexx3vqjhp41"], "cred_"),
    ] {
        let finished = subscriber(&url, &arguments).await;
        finished.fails(1, &[word]);
        assert_eq!(finished.stdout, "", "{arguments:?}");
    }
}
