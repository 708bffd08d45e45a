//! The addresses that a mailbox may send as beside its own: what the providers tell of them, and who may send as
//! which.

mod clash;
mod exchange;
mod gmail;
mod hostile;
mod random;
mod refreshed;

use serde_json::{Value, json};

use crate::support::caller::{Caller, path};
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;

/// What the app detail says that its first mailbox of `plugin_b` may send as.
async fn addresses(gateway: &Gateway) -> Vec<String> {
    let detail = Caller::owner(gateway).await.get(&path(&gateway.app)).await;
    let detail = detail.success(200);
    let users = detail["users"].as_array().unwrap();
    let user = users.iter().find(|user| user["plugin"] == "plugin_b");
    let addresses = user.expect("it is connected")["addresses"].as_array();
    let addresses = addresses.unwrap().iter();
    addresses
        .map(|address| address.as_str().unwrap().to_owned())
        .collect()
}

/// Waits until it may send as these and no others.
async fn until_they_are(gateway: &Gateway, expected: &[&str]) {
    gateway
        .eventually("the new addresses", async |gateway| {
            addresses(gateway).await == expected
        })
        .await;
}

/// The usual message by REST from this address.
async fn send(gateway: &Gateway, from: &str) -> (u16, Value) {
    gateway
        .send(json!({ "to": "bob@example.com", "subject": "s", "body": "b", "from": from }))
        .await
}

/// The usual message by SMTP; answers the reply to it.
async fn submit(gateway: &Gateway, from: &str) -> String {
    let content = format!("From: {from}\r\nTo: bob@example.com\r\nSubject: s\r\n\r\nb\r\n");
    let mut client = SmtpClient::authenticated(gateway).await;
    client.submit("bob@example.com", content.as_bytes()).await
}

/// Neither door lets a message out.
async fn is_refused(gateway: &Gateway, from: &str) {
    let (status, answer) = send(gateway, from).await;
    assert_eq!((status, &answer["code"]), (422, &json!("no_mailbox")));
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("recognised within a day"), "{detail}");
    let reply = submit(gateway, from).await;
    let expected = "550 5.7.1 From address not authorized: no connected mailbox";
    assert!(reply.starts_with(expected), "{reply}");
    assert!(reply.contains("recognised within a day"), "{reply}");
}

/// What the log says that its messages were sent as, oldest first.
async fn logged_senders(gateway: &Gateway) -> Vec<String> {
    sqlx::query_scalar("SELECT from_address FROM email_logs ORDER BY id")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}

/// The rows of further addresses.
async fn rows(gateway: &Gateway) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM mailbox_addresses")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

async fn execute(gateway: &Gateway, statement: &'static str) {
    sqlx::query(statement)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}
