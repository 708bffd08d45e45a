//! Subscribers whom the operator has deleted: for a week nothing of them opens anything, on any gateway, and all of it
//! does again once they are restored.

use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use reqwest::Method;
use serde_json::{Value, json};

use crate::connecting::grants;
use crate::operator::answered;
use crate::portal::visitor::{Visitor, api_secret};
use crate::support::caller::{Answer, Caller, anonymous, path, text};
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::StandIn;

/// Deletes the gateway's subscriber in another process.
async fn delete(gateway: &Gateway) -> Value {
    let id = gateway.subscriber.to_string();
    let arguments = ["delete", &id, "--yes", "--label", "Demo"];
    answered(&gateway.database_url, &arguments).await
}

async fn restore(gateway: &Gateway) {
    let id = gateway.subscriber.to_string();
    let told = answered(&gateway.database_url, &["restore", &id]).await;
    assert_eq!(told["changed"], true, "{told}");
}

/// `POST /send` at one of the gateways that share the subscriber.
async fn send(at: &Gateway, of: &Gateway, key: &str) -> Answer {
    let body = json!({
        "pk": of.app.pushable_key.expose(), "to": "bob@example.com", "subject": "Hello", "body": "Hi",
        "plugin": "plugin_b",
    });
    let request = anonymous(at, Method::POST, "/send").json(&body);
    Answer::to(request.header("x-send-key", key)).await
}

/// `GET /me` at one of them.
async fn me(at: &Gateway, secret: &str) -> u16 {
    let request = anonymous(at, Method::GET, "/me").header("x-api-secret", secret);
    Answer::to(request).await.status
}

const MESSAGE: &[u8] = b"From: ada@sandbox.example\r\nSubject: s\r\n\r\nHi\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn no_key_opens_anything_until_the_account_is_restored() {
    let stand_in = StandIn::start().await;
    let gateway = Gateway::builder().plugins(stand_in.plugins()).start().await;
    stand_in.connect(&gateway).await;
    let replica = gateway.replica().plugins(stand_in.plugins());
    let other = replica.start().await;
    let owner = Caller::owner(&gateway).await;
    let main_secret = api_secret(&gateway).await;
    let body = json!({ "name": "Reports", "scopes": ["me:read"] });
    let additional = owner.post("/me/api-secrets", &body).await.success(201);
    let additional = text(&additional, "api_secret");
    let way = path(&gateway.app);
    let (name, none) = (json!({ "name": "Shop" }), json!({}));
    let key = owner.post(&format!("{way}/send-keys"), &name).await;
    let key = key.success(201);
    let send_keys = [gateway.app.send_key.expose(), text(&key, "send_key")];
    let session = owner.post(&format!("{way}/connect-sessions"), &none).await;
    let session = session.success(201);
    let links = [
        format!(
            "{}{}",
            gateway.daemon.base_url,
            way.replace("/apps", "/connect")
        ),
        text(&session, "url").to_owned(),
    ];
    let visitor = Visitor::signed_in(&gateway).await;
    // Every one is known to both.
    for at in [&gateway, &other] {
        for key in send_keys {
            send(at, &gateway, key).await.success(200);
        }
        for secret in [&main_secret, additional] {
            assert_eq!(me(at, secret).await, 200);
        }
    }
    let mut open = SmtpClient::authenticated(&gateway).await;
    let arrived = || stand_in.submission.messages().len();
    let sent = arrived();

    delete(&gateway).await;
    for at in [&gateway, &other] {
        for key in send_keys {
            assert_eq!(
                send(at, &gateway, key).await.problem(),
                (401, "invalid_send_key")
            );
        }
        for secret in [&main_secret, additional] {
            assert_eq!(me(at, secret).await, 401);
        }
    }
    let reply = open.submit("bob@example.com", MESSAGE).await;
    assert!(
        reply.starts_with("535 ") || reply.starts_with("421 "),
        "{reply}"
    );
    for link in &links {
        let page = reqwest::get(link).await.unwrap();
        assert_eq!(page.status(), 404, "{link}");
    }
    assert_eq!(visitor.get("/portal").await.status, 303);
    let mut again = Visitor::new(&gateway.daemon.base_url);
    assert_eq!(again.sign_in(&main_secret).await.status, 401);
    assert_eq!(arrived(), sent);

    restore(&gateway).await;
    for at in [&gateway, &other] {
        for key in send_keys {
            send(at, &gateway, key).await.success(200);
        }
        for secret in [&main_secret, additional] {
            assert_eq!(me(at, secret).await, 200);
        }
    }
    assert_eq!(arrived(), sent + 4);
    for link in &links {
        assert_eq!(reqwest::get(link).await.unwrap().status(), 200, "{link}");
    }
    assert_eq!(visitor.get("/portal").await.status, 303, "it has ended");
    assert_eq!(again.sign_in(&main_secret).await.status, 303);
    other.stop_daemon().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_held_and_leaves_after_the_restore() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let later = gateway.clock.now() + TimeDelta::minutes(10);
    let body = json!({
        "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "Hello", "body": "Hi",
        "send_at": later.to_rfc3339(),
    });
    let request = anonymous(&gateway, Method::POST, "/send").json(&body);
    let request = request.header("x-send-key", gateway.app.send_key.expose());
    let scheduled = Answer::to(request).await.success(202);
    delete(&gateway).await;
    let sent = gateway.sandbox.inbox.count();
    gateway.clock.advance(TimeDelta::minutes(11));
    gateway
        .eventually("the postponement", async |gateway| {
            let waits =
                "SELECT count(*) FROM spool WHERE state = 'deferred' AND awaits_subscription";
            let waits = sqlx::query_scalar::<_, i64>(waits);
            waits
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap()
                == 1
        })
        .await;
    gateway.clock.advance(TimeDelta::hours(20));
    assert_eq!(gateway.spooled().await, 1);
    assert_eq!(gateway.sandbox.inbox.count(), sent);

    restore(&gateway).await;
    gateway
        .eventually("the message", async |gateway| gateway.spooled().await == 0)
        .await;
    assert_eq!(gateway.sandbox.inbox.count(), sent + 1);
    let log = format!("/logs/{}", text(&scheduled, "log_id"));
    assert_eq!(owner.get(&log).await.success(200)["status"], "sent");
    gateway.stop().await;
}

/// When a mailbox is next due for whatever it is asked.
async fn dues(gateway: &Gateway) -> Vec<(Option<String>, Option<String>, Option<String>)> {
    sqlx::query_as(
        "SELECT replies_due_at::text, refresh_due_at::text, addresses_due_at::text FROM mailboxes ORDER BY id",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn its_mailboxes_are_asked_nothing_until_then() {
    let gateway = Gateway::start().await;
    gateway
        .eventually("the addresses", async |gateway| {
            dues(gateway)
                .await
                .iter()
                .all(|(_, _, addresses)| addresses.is_some())
        })
        .await;
    let before = dues(&gateway).await;
    delete(&gateway).await;
    let soon = "SELECT count(*) FROM mailboxes
                WHERE least(replies_due_at, refresh_due_at, addresses_due_at) < now() + interval '300 days'";
    let soon: i64 = sqlx::query_scalar(soon)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(soon, 0);
    restore(&gateway).await;
    assert_eq!(dues(&gateway).await, before);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_removed_after_a_week_and_not_before() {
    let gateway = Gateway::start().await;
    let there = async |gateway: &Gateway| {
        let counted = "SELECT (SELECT count(*) FROM subscribers WHERE id = $1)
                              + (SELECT count(*) FROM apps WHERE subscriber_id = $1)";
        sqlx::query_scalar::<_, i64>(counted)
            .bind(gateway.subscriber.0)
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap()
    };
    delete(&gateway).await;
    gateway
        .clock
        .advance(TimeDelta::days(7) - TimeDelta::minutes(2));
    let mailboxes = &gateway.daemon.mailboxes;
    let stop = tokio_util::sync::CancellationToken::new();
    mailboxes.delete_due_subscribers(&stop).await.unwrap();
    assert_eq!(there(&gateway).await, 2);
    // Its time comes, and it is restored before anybody has removed it, or while somebody does.
    restore(&gateway).await;
    gateway.clock.advance(TimeDelta::minutes(3));
    mailboxes.delete_due_subscribers(&stop).await.unwrap();
    assert_eq!(there(&gateway).await, 2);
    gateway.send_to("bob@example.com").await;
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);

    delete(&gateway).await;
    gateway
        .clock
        .advance(TimeDelta::days(7) + TimeDelta::minutes(1));
    gateway
        .eventually("the removal", async |gateway| there(gateway).await == 0)
        .await;
    gateway
        .eventually("the revoked grant", async |gateway| grants(gateway) == 0)
        .await;
    gateway.stop().await;
}
