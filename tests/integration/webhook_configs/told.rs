//! Apps that come and go and keys that are renewed: who is told, and that every event of the catalogue is
//! what the description says of it.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use chrono::TimeDelta;
use mailgate_storage::webhook_messages;
use mailgate_types::bounce_type::BounceType;
use mailgate_types::clock::Clock;
use mailgate_types::event::{Emission, Event, MailboxEvent};
use mailgate_types::event_name::EventName;
use mailgate_types::ids::LogId;
use mailgate_types::metadata::Metadata;
use mailgate_types::moment::iso8601;
use serde_json::{Value, json};

use super::{arrived, builder, create, events, hook, is_signed, next_attempt, renew, settled};
use crate::support::caller::{Caller, path, text};
use crate::support::gateway::Gateway;
use crate::support::receiver::{Received, Receiver, Reply};

/// The UUID of an app.
async fn uuid(gateway: &Gateway, app: &Value) -> String {
    let id: uuid::Uuid = sqlx::query_scalar("SELECT id FROM apps WHERE pushable_key = $1")
        .bind(text(app, "pushable_key"))
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    id.to_string()
}

/// Asserts that a request tells of just this.
fn tells(request: &Received, event: &str, app_id: &str, data: &Value) {
    let body = request.json();
    let expected = json!({ "event": event, "app_id": app_id, "timestamp": body["timestamp"],
                           "data": data });
    assert_eq!(body, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_told_of_its_own_beginning_and_end() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let (own, listing, other) = (
        Receiver::start().await,
        Receiver::start().await,
        Receiver::start().await,
    );
    let body = json!({ "name": "My \u{1f4e8} app", "webhook_url": own.url("/own") });
    let app = caller.post("/apps", &body).await.success(201);
    let (id, secret) = (uuid(&gateway, &app).await, text(&app, "webhook_secret"));
    let requests = arrived(&gateway, &own, 1).await;
    tells(
        &requests[0],
        "app.created",
        &id,
        &json!({ "app_id": id, "name": body["name"] }),
    );
    is_signed(&requests[0], secret);
    assert_eq!(requests[0].path, "/own");

    let path = format!("/apps/{}", text(&app, "pushable_key"));
    let hooks = format!("{path}/webhooks");
    let given = json!({ "url": listing.url("/"), "events": ["app.deleted", "send_key.renewed"] });
    let webhook = caller.post(&hooks, &given).await.success(201);
    let given = json!({ "url": other.url("/"), "events": ["app.created", "email.sent"] });
    caller.post(&hooks, &given).await.success(201);
    let paused = json!({ "url": other.url("/"), "events": ["app.deleted"], "is_active": false });
    caller.post(&hooks, &paused).await.success(201);

    caller
        .reset(&format!("{path}/reset-send-key"))
        .await
        .success(200);
    let requests = arrived(&gateway, &listing, 1).await;
    tells(
        &requests[0],
        "send_key.renewed",
        &id,
        &json!({ "app_id": id }),
    );
    is_signed(&requests[0], text(&webhook, "secret"));
    let requests = arrived(&gateway, &own, 2).await;
    tells(
        &requests[1],
        "send_key.renewed",
        &id,
        &json!({ "app_id": id }),
    );
    is_signed(&requests[1], secret);

    // The end is told as the app was called then, and again if it must be, though nothing is left of it.
    caller
        .put(&path, &json!({ "name": "Renamed" }))
        .await
        .success(200);
    settled(&gateway).await;
    own.then([Reply::Status(503, "")]);
    listing.then([Reply::Status(503, "")]);
    caller.delete(&path).await.success(200);
    arrived(&gateway, &own, 3).await;
    arrived(&gateway, &listing, 2).await;
    settled(&gateway).await;
    for table in ["apps WHERE name = 'Renamed'", "webhook_configs"] {
        let left: i64 =
            sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap();
        assert_eq!(left, 0, "{table}");
    }
    gateway.clock.advance(TimeDelta::seconds(10));
    let data = json!({ "app_id": id, "name": "Renamed" });
    let requests = arrived(&gateway, &own, 4).await;
    tells(&requests[3], "app.deleted", &id, &data);
    is_signed(&requests[3], secret);
    assert_eq!(
        requests[2].header("webhook-id"),
        requests[3].header("webhook-id")
    );
    let requests = arrived(&gateway, &listing, 3).await;
    tells(&requests[2], "app.deleted", &id, &data);
    is_signed(&requests[2], text(&webhook, "secret"));
    settled(&gateway).await;
    assert_eq!((own.count(), listing.count(), other.count()), (4, 3, 0));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_done_is_not_told() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let names = EventName::ALL.map(EventName::as_str);
    create(&caller, &receiver.url("/"), &names).await;
    let stranger = Caller::another(&gateway, "Stranger").await;
    let app = path(&gateway.app);
    stranger.delete(&app).await;
    stranger.reset(&format!("{app}/reset-send-key")).await;
    caller
        .reset(&format!("{app}/reset-pushable-key"))
        .await
        .success(200);
    caller.create("Another").await;
    settled(&gateway).await;
    let told: i64 = sqlx::query_scalar("SELECT count(*) FROM webhook_messages")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!((told, receiver.count()), (0, 0));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_moment_of_a_configuration() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    receiver.then([Reply::Status(500, ""), Reply::Status(500, "")]);
    let webhook = create(
        &caller,
        &receiver.url("/"),
        &["send_key.renewed", "app.deleted"],
    )
    .await;
    renew(&caller).await;
    renew(&caller).await;
    caller.delete(&hook(&gateway, &webhook)).await.success(204);
    renew(&caller).await;
    caller.delete(&path(&gateway.app)).await.success(200);
    arrived(&gateway, &receiver, 2).await;
    next_attempt(&gateway).await;
    gateway.clock.advance(TimeDelta::seconds(10));
    let requests = arrived(&gateway, &receiver, 4).await;
    settled(&gateway).await;
    assert_eq!(events(&receiver.received()), ["send_key.renewed"; 4]);
    let ids: BTreeSet<&str> = requests.iter().map(|it| it.header("webhook-id")).collect();
    assert_eq!(
        ids.len(),
        2,
        "the two from before its end, each of them twice"
    );
    gateway.stop().await;
}

/// Has an independent validator compare bodies and headers with what the description says.
fn validate(document: &Value, requests: &[Received]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/validate_webhooks.py");
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/python/bin/python");
    assert!(
        python.is_file(),
        "{} is missing: run tests/peers/install",
        python.display()
    );
    let requests: Vec<Value> = requests
        .iter()
        .map(|request| {
            let headers = ["webhook-id", "webhook-timestamp", "webhook-signature"];
            let headers = headers.map(|name| (name.to_owned(), json!(request.header(name))));
            let headers = serde_json::Map::from_iter(headers);
            json!({ "headers": headers, "body": String::from_utf8(request.body.to_vec()).unwrap() })
        })
        .collect();
    let input = json!({ "document": document, "requests": requests });
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_are_as_described() {
    let gateway = builder().set("SENDING__RETRY_SECONDS", "60").start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let names = EventName::ALL.map(EventName::as_str);
    create(&caller, &receiver.url("/"), &names).await;
    let body = json!({ "name": "Another", "webhook_url": receiver.url("/") });
    caller.post("/apps", &body).await.success(201);
    for to in [
        "bob@example.com",
        "tempfail@example.com",
        "permfail@example.com",
    ] {
        gateway.send_to(to).await;
    }
    let connected = gateway.connect(
        None,
        mailgate_types::plugin::Plugin::B,
        "eve@sandbox.example",
    );
    let connected = connected.await.credential;
    let credential = format!("{}/credentials/{connected}", path(&gateway.app));
    caller.delete(&credential).await.success(200);
    // Replies and bounces are found by IMAP, which the sandbox hasn't.
    let reply = Event::EmailReply {
        message_id: "<m@example.com>".to_owned(),
        from_address: "bob@example.com".to_owned(),
        to_address: "ada@sandbox.example".to_owned(),
        subject: "Re: Hello".to_owned(),
        metadata: Metadata::default(),
    };
    let mut connection = gateway.database().await;
    let bounced = Event::EmailBounced {
        log_id: LogId::at(gateway.clock.now()),
        message_id: None,
        from_address: "ada@sandbox.example".to_owned(),
        to_address: "bob@example.com".to_owned(),
        subject: "Hello".to_owned(),
        plugin: mailgate_types::plugin::Plugin::A,
        bounce_type: BounceType::Temporary,
        status: Some("4.4.1".to_owned()),
        diagnostic: None,
        bounced_at: iso8601(gateway.clock.now()),
        metadata: Metadata::default(),
    };
    let mailbox = MailboxEvent {
        credential_id: connected,
        email: "eve@sandbox.example".to_owned(),
        plugin: mailgate_types::plugin::Plugin::B,
    };
    let recovered = Event::MailboxRecovered(mailbox.clone());
    let degraded = Event::MailboxDegraded {
        mailbox,
        error: "AUTHENTICATIONFAILED Invalid credentials".to_owned(),
    };
    let found =
        [reply, bounced, degraded, recovered].map(|event| Emission::of(gateway.app.id, event));
    webhook_messages::emit(&mut connection, &found, gateway.clock.now())
        .await
        .unwrap();
    renew(&caller).await;
    caller.delete(&path(&gateway.app)).await.success(200);
    let requests = arrived(&gateway, &receiver, names.len()).await;
    let told: BTreeSet<String> = events(&requests).into_iter().collect();
    assert_eq!(told, names.iter().map(|name| (*name).to_owned()).collect());
    let url = format!("{}/openapi.json", gateway.daemon.base_url);
    let document = gateway
        .http
        .get(url)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    validate(&document, &requests);
    gateway.stop().await;
}
