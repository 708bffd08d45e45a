//! Outgoing webhooks: who is told, what is sent, and what becomes of it.

mod delivery;
mod hostile;
mod long_snapshot;
mod processes;
mod retries;
mod traces;
mod verifiers;

use chrono::Utc;
use mailgate_domain::webhooks::secret_context;
use mailgate_storage::webhook_messages;
use mailgate_types::event::{DisconnectReason, Emission, Event, MailboxEvent};
use mailgate_types::ids::{AppId, CredentialId, EndpointId, LogId, WebhookConfigId};
use mailgate_types::metadata::Metadata;
use mailgate_types::plugin::Plugin;
use mailgate_types::seal::SealKeys;
use sqlx::FromRow;
use uuid::Uuid;

use crate::support::gateway::{Builder, Gateway, SEAL_KEY};
use crate::support::receiver::Receiver;

/// A secret of the standard's form, and the key in it.
pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A gateway that may call this machine.
fn gateway() -> Builder {
    Gateway::builder().set("WEBHOOKS__ALLOW_PRIVATE", true)
}

/// A configuration as the REST interface would write it.
async fn configure(
    gateway: &Gateway,
    app: AppId,
    url: &str,
    events: &[&str],
    secret: &str,
) -> WebhookConfigId {
    let now = Utc::now();
    let id = WebhookConfigId::at(now);
    let keys = SealKeys::parse([SEAL_KEY]).unwrap();
    let sealed = keys.seal(&secret_context(app, EndpointId::from(id)), secret);
    sqlx::query(
        "INSERT INTO webhook_configs
             (id, app_id, url, events, is_active, secret_sealed, created_at, updated_at)
         VALUES ($1, $2, $3, $4, true, $5, $6, $6)",
    )
    .bind(id.0)
    .bind(app.0)
    .bind(url)
    .bind(
        events
            .iter()
            .map(|event| (*event).to_owned())
            .collect::<Vec<_>>(),
    )
    .bind(sealed.unwrap())
    .bind(now)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    id
}

async fn set_own_url(gateway: &Gateway, url: &str) {
    sqlx::query("UPDATE apps SET webhook_url = $1 WHERE id = $2")
        .bind(url)
        .bind(gateway.app.id.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

/// An endpoint of the gateway's app that is told when mailboxes are connected.
async fn listener(gateway: &Gateway) -> Receiver {
    let receiver = Receiver::start().await;
    let url = receiver.url("/");
    configure(gateway, gateway.app.id, &url, &["user.connected"], SECRET).await;
    receiver
}

/// Something that happens to the app, as a transaction of the product's writes it.
async fn happen(gateway: &Gateway, emissions: &[Emission]) {
    use mailgate_types::clock::Clock;
    let mut transaction = gateway.daemon.pool.begin().await.unwrap();
    webhook_messages::emit(&mut transaction, emissions, gateway.clock.now())
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

fn connected(app: AppId) -> Emission {
    Emission::of(app, Event::UserConnected(mailbox()))
}

fn disconnected(app: AppId) -> Emission {
    let reason = DisconnectReason::Removed;
    let mailbox = mailbox();
    Emission::of(app, Event::UserDisconnected { mailbox, reason })
}

/// An event that tells of a message.
fn replied(app: AppId, log: LogId) -> Emission {
    let event = Event::EmailReply {
        message_id: "<a@example.com>".to_owned(),
        from_address: "bob@example.org".to_owned(),
        to_address: "ada@example.com".to_owned(),
        subject: "Re: Ünicode 📨 \u{2028}".to_owned(),
        metadata: Metadata::default(),
    };
    Emission {
        app,
        event,
        log: Some(log),
    }
}

fn mailbox() -> MailboxEvent {
    MailboxEvent {
        credential_id: CredentialId::at(Utc::now()),
        email: "ada@example.com".to_owned(),
        plugin: Plugin::A,
    }
}

#[derive(Debug, Clone, FromRow)]
struct DeliveryRow {
    id: Uuid,
    message_id: Uuid,
    endpoint_id: Uuid,
    attempt_number: i32,
    http_status: Option<i32>,
    response_body: String,
    success: bool,
    error_message: Option<String>,
}

/// All attempts, oldest first.
async fn deliveries(gateway: &Gateway) -> Vec<DeliveryRow> {
    sqlx::query_as("SELECT * FROM webhook_deliveries ORDER BY delivered_at, id")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}

/// Rows of the queue by state.
async fn queued(gateway: &Gateway) -> Vec<(String, i64)> {
    sqlx::query_as("SELECT state, count(*) FROM webhook_queue GROUP BY 1 ORDER BY 1")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}

/// Waits until so many attempts are recorded.
async fn attempted(gateway: &Gateway, number: usize) -> Vec<DeliveryRow> {
    let what = format!("{number} attempts");
    gateway
        .eventually(&what, async |gateway| {
            deliveries(gateway).await.len() >= number
        })
        .await;
    let deliveries = deliveries(gateway).await;
    assert_eq!(deliveries.len(), number, "{deliveries:?}");
    deliveries
}
