//! `POST /send`, through the sandbox.

use serde_json::json;

use crate::support::gateway::{Gateway, MAILBOX};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_out_and_is_logged() {
    let gateway = Gateway::start().await;
    let (status, answer) = gateway
        .send(json!({ "to": "bob@example.com", "subject": "Grüße", "body": "Hallo\nWelt" }))
        .await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["status"], "sent");
    assert_eq!(answer["from"], MAILBOX);
    assert_eq!(answer["to"], "bob@example.com");
    assert_eq!(answer["plugin"], "plugin_a");
    let arrived = gateway.arrived().await;
    assert_eq!(arrived.len(), 1);
    let text = String::from_utf8_lossy(&arrived[0]).into_owned();
    let message_id = answer["message_id"].as_str().unwrap();
    assert!(
        text.contains(&format!("Message-ID: {message_id}\r\n")),
        "{text}"
    );
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    assert_eq!(gateway.spooled().await, 0);
    gateway.stop().await;
}
