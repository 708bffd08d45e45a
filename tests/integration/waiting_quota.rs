//! What may wait for one subscriber: so many messages and bytes, over all its apps and all replicas; what leaves at once
//! is not concerned, and neither is any other subscriber.

use mailgate_storage::spool::usage::{self, Most, Usage};
use mailgate_types::ids::AppId;
use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};

use crate::support::gateway::{self, Builder, Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::stand_in::{self, ADDRESS, StandIn};

const LATER: &str = "451 4.3.0 Later";

/// A gateway for whose apps so many messages may wait; the provider at `plugin_b` takes none now.
async fn start(settings: &[(&str, u64)]) -> (StandIn, Gateway) {
    let builder = (settings.iter()).fold(Gateway::builder(), |builder, (name, value)| {
        builder.set(name, value)
    });
    let (stand_in, gateway) = StandIn::with(builder).await;
    stand_in
        .submission
        .always(Stage::Rcpt, Answer::reply(LATER));
    (stand_in, gateway)
}

/// What is counted, and what is there.
async fn usage(gateway: &Gateway, app: AppId) -> Usage {
    let mut database = gateway.database().await;
    let counted = usage::of(&mut database, app).await.unwrap();
    let (messages, bytes): (i64, i64) = sqlx::query_as(
        "SELECT count(*), coalesce(sum(size_bytes), 0)::bigint FROM spool
         WHERE app_id = $1 AND is_logged",
    )
    .bind(app.0)
    .fetch_one(&mut database)
    .await
    .unwrap();
    assert_eq!(counted.usage, Usage { messages, bytes });
    counted.usage
}

/// Gives an app a mailbox at the stand-in.
async fn connect(gateway: &Gateway, app: AppId) {
    let connection = mailgate_domain::mailboxes::NewConnection {
        app,
        user_id: None,
        plugin: Plugin::B,
        code: "any",
        redirect_uri: "http://127.0.0.1:9/oauth/callback",
        code_verifier: "any",
    };
    gateway.daemon.mailboxes.connect(&connection).await.unwrap();
}

async fn app_of(gateway: &Gateway, pushable_key: &str) -> AppId {
    let id = sqlx::query_scalar("SELECT id FROM apps WHERE pushable_key = $1").bind(pushable_key);
    AppId(id.fetch_one(&mut gateway.database().await).await.unwrap())
}

async fn spooled(gateway: &Gateway, rows: i64) {
    gateway
        .eventually("what was refused is taken back", async |gateway| {
            gateway.spooled().await == rows
        })
        .await;
}

/// The usual message from the stand-in's mailbox; answers the status, the problem's code and Retry-After.
async fn refused(gateway: &Gateway) -> (u16, Value, String) {
    let body = json!({
        "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "Hello",
        "body": "It works.", "plugin": "plugin_b",
    });
    let response = gateway
        .http
        .post(format!("{}/send", gateway.daemon.base_url))
        .header("x-send-key", gateway.app.send_key.expose())
        .header("idempotency-key", "again")
        .json(&body)
        .send()
        .await
        .unwrap();
    let status = response.status().as_u16();
    let wait = response.headers().get("retry-after").cloned();
    let wait = wait.map_or(String::new(), |wait| wait.to_str().unwrap().to_owned());
    let body: Value = response.json().await.unwrap();
    (status, body["code"].clone(), wait)
}

#[tokio::test(flavor = "multi_thread")]
async fn past_the_quota_of_messages_only_what_leaves_at_once_is_taken() {
    let (stand_in, gateway) = start(&[("LIMITS__WAITING_MESSAGES_PER_APP", 2)]).await;
    for _ in 0..2 {
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{answer}");
    }
    let before = usage(&gateway, gateway.app.id).await;
    assert_eq!(before.messages, 2);
    // Both doors refuse, and keep nothing: neither rows nor the key.
    let expected = (429, json!("waiting_quota_full"), "60".to_owned());
    for _ in 0..2 {
        assert_eq!(refused(&gateway).await, expected);
        spooled(&gateway, 2).await;
    }
    let mut client = SmtpClient::authenticated(&gateway).await;
    let content = format!("From: {ADDRESS}\r\nSubject: x\r\n\r\nHi\r\n");
    let reply = client.submit("bob@example.com", content.as_bytes()).await;
    assert!(reply.starts_with("451 4.3.1 "), "{reply}");
    spooled(&gateway, 2).await;
    assert_eq!(usage(&gateway, gateway.app.id).await, before);
    assert_eq!(gateway.logged().await.len(), 2);
    // What leaves at once does, from another mailbox of the app.
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    let content = format!("From: {MAILBOX}\r\nSubject: x\r\n\r\nHi\r\n");
    let reply = client.submit("bob@example.com", content.as_bytes()).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    // The two leave in their turn, and there is room again.
    stand_in
        .submission
        .always(Stage::Rcpt, Answer::reply("250 2.1.5 OK"));
    gateway.clock.advance(chrono::TimeDelta::minutes(2));
    spooled(&gateway, 0).await;
    assert_eq!(usage(&gateway, gateway.app.id).await, Usage::default());
    stand_in
        .submission
        .always(Stage::Rcpt, Answer::reply(LATER));
    assert_eq!(refused(&gateway).await.0, 202);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_count_as_they_lie_there_and_another_subscriber_has_its_own() {
    let (_stand_in, gateway) = start(&[
        ("LIMITS__WAITING_BYTES_PER_APP", 300_000),
        ("LIMITS__MESSAGE_BYTES", 200_000),
    ])
    .await;
    let large = json!({
        "to": "bob@example.com", "subject": "x", "body": "x".repeat(120_000), "plugin": "plugin_b",
    });
    assert_eq!(gateway.send(large.clone()).await.0, 202);
    assert_eq!(gateway.send(large.clone()).await.0, 202);
    let (status, answer) = gateway.send(large.clone()).await;
    assert_eq!(
        (status, &answer["code"]),
        (429, &json!("waiting_quota_full"))
    );
    // A small one still finds room.
    assert_eq!(stand_in::send(&gateway, "bob@example.com").await.0, 202);
    let used = usage(&gateway, gateway.app.id).await;
    assert!(
        used.messages == 3 && (240_000..300_000).contains(&used.bytes),
        "{used:?}"
    );
    spooled(&gateway, 3).await;

    let (_, other) = gateway::create_app(&gateway.daemon, "Other").await;
    connect(&gateway, other.id).await;
    let mut body = large;
    body["pk"] = json!(other.pushable_key.expose());
    let response = gateway
        .http
        .post(format!("{}/send", gateway.daemon.base_url))
        .header("x-send-key", other.send_key.expose())
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 202);
    assert_eq!(usage(&gateway, other.id).await.messages, 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_apps_of_a_subscriber_share_its_quota() {
    const QUOTA: usize = 4;
    let name = "LIMITS__WAITING_MESSAGES_PER_SUBSCRIBER";
    let (stand_in, gateway) = start(&[(name, QUOTA as u64)]).await;
    let replica = gateway.replica().plugins(stand_in.plugins());
    let replica = replica.set(name, QUOTA).start().await;
    let owner = crate::support::caller::Caller::owner(&gateway).await;
    let mut keys = Vec::new();
    for number in 0..3 {
        let app = owner.create(&format!("App {number}")).await;
        let text = |name: &str| app[name].as_str().unwrap().to_owned();
        connect(&gateway, app_of(&gateway, &text("pushable_key")).await).await;
        keys.push((text("pushable_key"), text("send_key")));
    }
    let send = async |(pk, key): &(String, String), base_url: &str| {
        let body = json!({
            "pk": pk, "to": "bob@example.com", "subject": "x", "body": "x", "plugin": "plugin_b",
        });
        let request = gateway.http.post(format!("{base_url}/send"));
        let request = request.header("x-send-key", key).json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    let urls = [&gateway.daemon.base_url, &replica.daemon.base_url];
    let sends = (0..2).flat_map(|_| keys.iter().flat_map(|key| urls.map(|url| send(key, url))));
    let statuses = futures_util::future::join_all(sends).await;
    let count = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!(
        (count(202), count(429)),
        (QUOTA, 12 - QUOTA),
        "{statuses:?}"
    );
    // Another subscriber isn't concerned.
    let (_, other) = gateway::create_app(&gateway.daemon, "Other").await;
    connect(&gateway, other.id).await;
    let key = (
        other.pushable_key.expose().to_owned(),
        other.send_key.expose().to_owned(),
    );
    assert_eq!(send(&key, urls[0]).await, 202);
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_the_quota_to_the_message() {
    const QUOTA: usize = 5;
    const EACH: usize = 12;
    let (stand_in, gateway) = start(&[("LIMITS__WAITING_MESSAGES_PER_APP", QUOTA as u64)]).await;
    let replica: Builder = gateway
        .replica()
        .plugins(stand_in.plugins())
        .set("LIMITS__WAITING_MESSAGES_PER_APP", QUOTA);
    let replica = replica.start().await;
    let send = async |base_url: &str| {
        let body = json!({
            "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "x",
            "body": "x", "plugin": "plugin_b",
        });
        let request = gateway
            .http
            .post(format!("{base_url}/send"))
            .header("x-send-key", gateway.app.send_key.expose());
        request.json(&body).send().await.unwrap().status().as_u16()
    };
    let sends = (0..EACH).flat_map(|_| [&gateway, &replica].map(|one| send(&one.daemon.base_url)));
    let statuses = futures_util::future::join_all(sends).await;
    let count = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!(
        (count(202), count(429)),
        (QUOTA, 2 * EACH - QUOTA),
        "{statuses:?}"
    );
    spooled(&gateway, 5).await;
    assert_eq!(usage(&gateway, gateway.app.id).await.messages, 5);
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_added_up_is_what_is_there() {
    let (_stand_in, gateway) = start(&[]).await;
    let fold = async || {
        let mut database = gateway.database().await;
        let folded = usage::fold(&mut database, 2).await.unwrap();
        assert!(folded <= 2);
        usage::forget_empty(&mut database).await.unwrap();
        folded
    };
    for _ in 0..5 {
        assert_eq!(stand_in::send(&gateway, "bob@example.com").await.0, 202);
        usage(&gateway, gateway.app.id).await;
        fold().await;
        assert_eq!(
            usage(&gateway, gateway.app.id).await.messages,
            gateway.spooled().await
        );
    }
    while fold().await > 0 {}
    let mut database = gateway.database().await;
    let used = usage(&gateway, gateway.app.id).await;
    let most = Most {
        messages: 4 * used.messages,
        bytes: 2 * used.bytes,
        least_bytes: 1,
    };
    let largest = usage::largest(&mut database, &most, 10).await.unwrap();
    assert_eq!(largest.messages, [(gateway.subscriber, used.messages)]);
    assert_eq!(largest.shares, [(gateway.subscriber, 0.5)]);
    // An app that goes takes its waiting mail with it.
    let deleted = crate::support::caller::Caller::owner(&gateway).await;
    let path = crate::support::caller::path(&gateway.app);
    deleted.delete(&path).await.success(200);
    assert_eq!(usage(&gateway, gateway.app.id).await, Usage::default());
    while fold().await > 0 {}
    let largest = usage::largest(&mut database, &most, 10).await.unwrap();
    assert_eq!((largest.messages.len(), largest.shares.len()), (0, 0));
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM spool_usage")
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert_eq!(rows, 0);
    gateway.stop().await;
}
