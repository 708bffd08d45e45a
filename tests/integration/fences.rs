//! Processes that sleep past their lease, or whose clocks differ: whoever takes over what they had in hand may
//! rely on it that they neither write nor send any more.

mod abandoned;
mod clock_set;
mod clocks;
pub mod held_line;
mod leases;
mod panics;
mod stopped;
mod upgraded;
mod verified;
mod wrong_clock;

use serde_json::{Value, json};

use crate::command_line::process::{Running, http_client};
use crate::support::gateway::Gateway;

/// Who has the only message of the spool in hand.
async fn holder(gateway: &Gateway) -> Option<uuid::Uuid> {
    sqlx::query_scalar("SELECT gateway_id FROM spool")
        .fetch_optional(&mut gateway.database().await)
        .await
        .unwrap()
        .flatten()
}

/// `POST /send` at a child, as the app of `gateway`.
pub async fn send(gateway: &Gateway, http: std::net::SocketAddr, to: &str) -> (u16, Value) {
    let request = http_client()
        .post(format!("http://{http}/send"))
        .header("x-send-key", gateway.app.send_key.expose())
        .json(&json!({
            "pk": gateway.app.pushable_key.expose(),
            "to": to,
            "subject": "Hello",
            "body": "It works.",
        }));
    let response = request.send().await.expect("an answer comes");
    let status = response.status().as_u16();
    (status, response.json().await.expect("a JSON answer"))
}

/// The end of a process that another one has ended: it says why, and its supervisor sees that it failed.
async fn ends_as_failed(child: &mut Running) {
    let status = child.end(crate::command_line::process::END).await;
    assert_eq!(status.code(), Some(1), "{}", child.stderr());
    let told = child.stderr();
    assert!(
        told.contains("another gateway has ended this one"),
        "{told}"
    );
    assert!(!told.contains("panicked"), "{told}");
}
