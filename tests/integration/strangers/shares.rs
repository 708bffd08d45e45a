//! Room for messages: taken as they come, and no subscriber has more of it than its share, whatever the number of its
//! apps.

use serde_json::json;

use super::raw::{Raw, first_of};
use crate::support::caller::{Caller, text};
use crate::support::gateway::{Builder, Gateway, MAILBOX, connect, create_app};
use crate::support::smtp_client::SmtpClient;
use mailgate_domain::accounts::CreatedApp;
use mailgate_types::plugin::Plugin;

/// Room for 40 messages, a quarter of it for one subscriber.
fn small() -> Builder {
    Gateway::builder()
        .set("LIMITS__MESSAGE_BYTES", 100_000)
        .set("LIMITS__IN_FLIGHT_BYTES", 4_000_000)
        .set("LIMITS__REQUESTS_BURST", 1_000)
}

/// `POST /send` of the gateway's app, of which the body is still to come.
pub async fn begin(gateway: &Gateway, fields: &str) -> Raw {
    begin_with(gateway, gateway.app.send_key.expose(), fields).await
}

/// As [`begin`], of the app with this key.
async fn begin_with(gateway: &Gateway, key: &str, fields: &str) -> Raw {
    let mut client = Raw::to(gateway).await;
    let fields = format!("X-Send-Key: {key}\r\nContent-Type: application/json\r\n{fields}");
    client.begin("POST", "/send", &fields).await;
    client
}

/// The mailbox of another app.
pub const OTHER: &str = "other@sandbox.example";

/// Another app, which has a mailbox.
pub async fn another(gateway: &Gateway) -> CreatedApp {
    let (daemon, sandbox) = (&gateway.daemon, &gateway.sandbox);
    let (_, other) = create_app(daemon, "Other").await;
    connect(daemon, sandbox, other.id, None, Plugin::A, OTHER).await;
    other
}

/// An SMTP connection of this app.
pub async fn authenticated(gateway: &Gateway, app: &CreatedApp) -> SmtpClient {
    let mut client = SmtpClient::encrypted(gateway).await;
    let plain = format!("\0{}\0{}", app.slug, app.send_key.expose());
    let plain = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, plain);
    let reply = client.command(&format!("AUTH PLAIN {plain}")).await;
    assert!(reply.starts_with("235 "), "{reply}");
    client
}

/// Another app sends by both doors.
async fn another_sends(gateway: &Gateway) {
    let other = another(gateway).await;
    let body = json!({ "pk": other.pushable_key.expose(), "to": "bob@example.com",
                       "subject": "Hello", "body": "x".repeat(60_000) });
    let request = gateway
        .http
        .post(format!("{}/send", gateway.daemon.base_url))
        .header("x-send-key", other.send_key.expose());
    let response = request.json(&body).send().await.unwrap();
    assert_eq!(response.status(), 200, "by REST");
    let mut client = authenticated(gateway, &other).await;
    let message = format!(
        "From: {OTHER}\r\nSubject: Hello\r\n\r\n{}",
        "x\r\n".repeat(20_000)
    );
    let reply = client.submit("bob@example.com", message.as_bytes()).await;
    assert!(reply.starts_with("250 2.0.0 "), "by SMTP: {reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_has_not_come_takes_no_room() {
    let gateway = small().start().await;
    let mut waiting = Vec::new();
    for _ in 0..100 {
        waiting.push(begin(&gateway, "Transfer-Encoding: chunked\r\n").await);
        waiting.push(begin(&gateway, "Content-Length: 90000\r\n").await);
    }
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    another_sends(&gateway).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_stalls_leaves_room_for_others() {
    let gateway = small().start().await;
    let part = format!("15F90\r\n{}", "x".repeat(80_000));
    let mut stalled = Vec::new();
    for _ in 0..30 {
        let mut client = begin(&gateway, "Transfer-Encoding: chunked\r\n").await;
        drop(client.try_write(&part).await);
        stalled.push(client);
    }
    // Its own share is used up: five of them have room.
    let refused = first_of(&mut stalled, 20).await;
    assert_eq!(refused.len(), 20);
    for answered in refused.into_iter().flatten() {
        assert_eq!(answered.problem(), (503, "overloaded"));
    }
    another_sends(&gateway).await;
    let (status, body) = gateway.send_to("bob@example.com").await;
    assert!(matches!(status, 200 | 503), "{body}");
    drop(stalled);
    gateway
        .eventually("room again", async |gateway| {
            let fields =
                json!({ "to": "bob@example.com", "subject": "Large", "body": "x".repeat(90_000) });
            gateway.send(fields).await.0 == 200
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_apps_of_one_subscriber_have_one_share() {
    let gateway = small().start().await;
    let part = format!("15F90\r\n{}", "x".repeat(80_000));
    let owner = Caller::owner(&gateway).await;
    let mut stalled = Vec::new();
    for number in 0..6 {
        let app = owner.create(&format!("App {number}")).await;
        for _ in 0..5 {
            let fields = "Transfer-Encoding: chunked\r\n";
            let mut client = begin_with(&gateway, text(&app, "send_key"), fields).await;
            drop(client.try_write(&part).await);
            stalled.push(client);
        }
    }
    let refused = first_of(&mut stalled, 20).await;
    assert_eq!(
        refused.len(),
        20,
        "ten have room, or some more of which a part has come"
    );
    for answered in refused.into_iter().flatten() {
        assert_eq!(answered.problem(), (503, "overloaded"));
    }
    another_sends(&gateway).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_data_counts_as_it_comes_and_against_the_same_share() {
    let gateway = small().start().await;
    let head = format!("From: {MAILBOX}\r\nTo: bob@example.com\r\nSubject: Hello\r\n\r\n");
    let body = "x\r\n".repeat(30_000);
    let mut stalled = Vec::new();
    for _ in 0..15 {
        let mut client = SmtpClient::authenticated(&gateway).await;
        client.begin_data("bob@example.com").await;
        client.write(head.as_bytes()).await;
        client.write(body.as_bytes()).await;
        stalled.push(client);
    }
    gateway
        .eventually("a share that is used up", async |gateway| {
            let fields =
                json!({ "to": "bob@example.com", "subject": "Large", "body": "x".repeat(90_000) });
            gateway.send(fields).await.0 == 503
        })
        .await;
    another_sends(&gateway).await;
    let mut refused = 0;
    for mut client in stalled {
        client.write(b".\r\n").await;
        let reply = client.reply().await;
        let no_room = reply.starts_with("451 4.3.1 ");
        assert!(no_room || reply.starts_with("250 2.0.0 "), "{reply}");
        refused += usize::from(no_room);
    }
    assert!((1..15).contains(&refused), "{refused} were refused");
    gateway.stop().await;
}
