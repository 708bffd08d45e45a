//! What is told, to whom, and how it is signed.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use mailgate_types::ids::{AppId, LogId, WebhookMessageId};
use sha2::Sha256;

use super::{
    SECRET, attempted, configure, connected, disconnected, gateway, happen, queued, replied,
    set_own_url,
};
use crate::support::gateway::Gateway;
use crate::support::receiver::{Received, Receiver};

/// The signature worked out by hand.
fn signature(key: &[u8], received: &Received) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    let (id, timestamp) = (
        received.header("webhook-id"),
        received.header("webhook-timestamp"),
    );
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(&received.body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// With the endpoint's own secret, over the very bytes that came, just now.
fn assert_signed(receiver: &Receiver, key: &[u8]) {
    for request in receiver.received() {
        assert_eq!(
            request.header("webhook-signature"),
            signature(key, &request)
        );
        assert_eq!(request.header("content-type"), "application/json");
        assert!(request.header("user-agent").starts_with("mailgate/"));
        let timestamp: i64 = request.header("webhook-timestamp").parse().unwrap();
        assert!((0..60).contains(&(chrono::Utc::now().timestamp() - timestamp)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_listener_is_told_what_it_listens_to() {
    let gateway = gateway().start().await;
    let (own, listed, raw) = (
        Receiver::start().await,
        Receiver::start().await,
        Receiver::start().await,
    );
    let app = gateway.app.id;
    set_own_url(&gateway, &own.url("/own?x=1")).await;
    let config = configure(
        &gateway,
        app,
        &listed.url("/listed"),
        &["user.connected"],
        SECRET,
    )
    .await;
    configure(
        &gateway,
        app,
        &raw.url("/raw"),
        &["user.disconnected", "email.reply"],
        "a text of my own",
    )
    .await;
    let inactive = configure(&gateway, app, &raw.url("/off"), &["user.connected"], SECRET).await;
    sqlx::query("UPDATE webhook_configs SET is_active = false WHERE id = $1")
        .bind(inactive.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    happen(&gateway, &[connected(app), disconnected(app)]).await;
    let log = LogId::at(chrono::Utc::now());
    happen(&gateway, &[replied(app, log)]).await;

    let deliveries = attempted(&gateway, 6).await;
    assert!(
        deliveries
            .iter()
            .all(|delivery| delivery.success && delivery.attempt_number == 1)
    );
    assert!(deliveries.iter().all(|delivery| delivery.http_status == Some(200) && delivery.response_body == "thanks"));
    assert!(queued(&gateway).await.is_empty());
    assert_eq!((own.count(), listed.count(), raw.count()), (3, 1, 2));

    let own_key = gateway.app.webhook_secret.expose().as_bytes();
    let standard = STANDARD.decode(SECRET.trim_start_matches("whsec_"));
    for (receiver, key) in [
        (&own, own_key),
        (&listed, &standard.unwrap()),
        (&raw, b"a text of my own"),
    ] {
        assert_signed(receiver, key);
    }
    // One id for one event, whoever is told of it.
    let ids: HashSet<String> = own
        .received()
        .iter()
        .map(|received| received.header("webhook-id").to_owned())
        .collect();
    assert_eq!(ids.len(), 3);
    let received = &listed.received()[0];
    assert!(ids.contains(received.header("webhook-id")));
    assert!(
        received
            .header("webhook-id")
            .parse::<WebhookMessageId>()
            .is_ok()
    );
    assert_eq!(received.json()["event"], "user.connected");
    assert_eq!(received.json()["app_id"], app.to_string());
    let of_config = deliveries
        .iter()
        .find(|delivery| delivery.endpoint_id == config.0)
        .unwrap();
    assert_eq!(
        WebhookMessageId(of_config.message_id).to_string(),
        received.header("webhook-id")
    );
    assert_eq!(
        raw.received()
            .iter()
            .filter(|received| received.json()["data"]["subject"] == "Re: Ünicode 📨 \u{2028}")
            .count(),
        1
    );

    // The log's detail finds what was told of its message.
    let mut database = gateway.database().await;
    let of_log =
        mailgate_storage::webhook_deliveries::of_log(&mut database, log, log.moment().unwrap())
            .await
            .unwrap();
    assert_eq!(of_log.len(), 2);
    assert!(
        of_log
            .iter()
            .all(|delivery| delivery.event == "email.reply" && delivery.success)
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_is_told_and_nobody_else_hears_of_it() {
    let gateway = gateway().start().await;
    let (own, stranger) = (Receiver::start().await, Receiver::start().await);
    set_own_url(&gateway, &own.url("/")).await;
    let (_, other) = crate::support::gateway::create_app(&gateway.daemon, "Other").await;
    configure(
        &gateway,
        other.id,
        &stranger.url("/"),
        &["email.sent", "user.connected"],
        SECRET,
    )
    .await;
    let (_, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(answer["status"], "sent");
    attempted(&gateway, 1).await;
    assert_eq!(own.received()[0].json()["event"], "email.sent");
    assert_eq!(
        own.received()[0].json()["data"]["message_id"],
        answer["message_id"]
    );
    assert_eq!(stranger.count(), 0);
    gateway.stop().await;
}

/// The journal learns who is listened to from what the database says, not before it.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_begins_to_listen_is_told_of_what_is_just_being_sent() {
    let gateway = gateway().start().await;
    let receiver = Receiver::start().await;
    let app = gateway.app.id;
    // Nobody listens.
    let (_, first) = gateway.send_to("bob@example.com").await;
    assert_eq!(first["status"], "sent");
    // Begins while a message is with its provider.
    let hold = gateway.sandbox.slow.hold();
    let sending = gateway.send_to("slow@example.com");
    let listening = async {
        while count(&gateway, "SELECT count(*) FROM spool").await == 0 {
            tokio::task::yield_now().await;
        }
        let config = configure(&gateway, app, &receiver.url("/"), &["email.sent"], SECRET).await;
        drop(hold);
        config
    };
    let ((_, second), config) = tokio::join!(sending, listening);
    assert_eq!(second["status"], "sent");
    attempted(&gateway, 1).await;
    assert_eq!(
        receiver.received()[0].json()["data"]["log_id"],
        second["log_id"]
    );
    // Another one, which the journal expects to be listened to, and is.
    let (_, third) = gateway.send_to("bob@example.com").await;
    attempted(&gateway, 2).await;
    assert_eq!(
        receiver.received()[1].json()["data"]["log_id"],
        third["log_id"]
    );
    // And one that nobody listens to any more.
    sqlx::query("UPDATE webhook_configs SET is_active = false WHERE id = $1")
        .bind(config.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let (_, last) = gateway.send_to("bob@example.com").await;
    assert_eq!(last["status"], "sent");
    for (table, expected) in [("email_logs", 4), ("webhook_messages", 2), ("spool", 0)] {
        let counted = count(&gateway, &format!("SELECT count(*) FROM {table}")).await;
        assert_eq!(counted, expected, "{table}");
    }
    gateway.stop().await;
}

async fn count(gateway: &Gateway, query: &str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(query.to_owned()))
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_fails_tells_nothing() {
    let gateway = gateway().start().await;
    let own = Receiver::start().await;
    set_own_url(&gateway, &own.url("/")).await;
    let mut transaction = gateway.daemon.pool.begin().await.unwrap();
    let emissions = [connected(gateway.app.id)];
    mailgate_storage::webhook_messages::emit(&mut transaction, &emissions, chrono::Utc::now())
        .await
        .unwrap();
    transaction.rollback().await.unwrap();
    // Nobody listens to what happens to an app without endpoints.
    happen(&gateway, &[connected(AppId(uuid::Uuid::nil()))]).await;
    happen(&gateway, &[disconnected(gateway.app.id)]).await;
    attempted(&gateway, 1).await;
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM webhook_messages")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!((own.count(), kept), (1, 1));
    assert_eq!(own.received()[0].json()["event"], "user.disconnected");
    gateway.stop().await;
}
