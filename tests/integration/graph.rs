//! Mail through Microsoft Graph, which a stand-in of the tests' own plays: what leaves, what its
//! answers mean, and what is read.

mod account;
mod faults;
mod interrupted;
mod large;
mod reading;
mod sending;

use chrono::{DateTime, Utc};
use mailgate_types::clock::Clock;
use serde_json::{Value, json};
use sqlx::Row;

use crate::support::gateway::Gateway;
use crate::support::graph_stand_in::ADDRESS;
use crate::support::smtp_client::SmtpClient;

/// The usual message by REST.
async fn send(gateway: &Gateway) -> (u16, Value) {
    gateway
        .send(json!({
            "to": "bob@example.com", "subject": "Hello", "body": "It works.", "plugin": "plugin_b"
        }))
        .await
}

/// A message by SMTP to several recipients; answers the reply to it.
async fn submit(gateway: &Gateway, recipients: &[&str], content: &str) -> String {
    let mut client = SmtpClient::authenticated(gateway).await;
    let mut commands = vec![format!("MAIL FROM:<{ADDRESS}>")];
    commands.extend(recipients.iter().map(|to| format!("RCPT TO:<{to}>")));
    commands.push("DATA".to_owned());
    for command in commands {
        let reply = client.command(&command).await;
        assert!(reply.starts_with(['2', '3']), "{command}: {reply}");
    }
    client.write(content.as_bytes()).await;
    client.write(b"\r\n.\r\n").await;
    client.reply().await
}

/// When the only message in the spool is tried again.
async fn next_attempt(gateway: &Gateway) -> DateTime<Utc> {
    sqlx::query("SELECT next_attempt_at FROM spool WHERE state = 'deferred'")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
        .get(0)
}

/// Moves the clock to the next attempt of the only message in the spool, and waits for its end.
async fn try_again(gateway: &Gateway) {
    let at = next_attempt(gateway).await;
    gateway.clock.advance(at - gateway.clock.now());
    gateway
        .eventually("the end of the message", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
}
