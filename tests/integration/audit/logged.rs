//! The line that a change leaves in the log of a real process.

use serde_json::json;

use super::*;
use crate::command_line::process::http_client;
use crate::command_line::serve::replica;

/// The lines of the trail that a process writes while keys and mailboxes change.
async fn lines(addresses: &str) -> (String, Vec<Value>, Gateway) {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let mut serve = replica(&gateway)
        .set("LOG__ADDRESSES", addresses)
        .set("HTTP__TRUSTED_PROXIES", "127.0.0.1")
        .start();
    let http = serve.ready().await.http;
    let app = gateway.app.pushable_key.expose();
    let credential = gateway.mailbox.credential;
    for (method, path) in [
        ("POST", format!("/apps/{app}/reset-send-key")),
        ("DELETE", format!("/apps/{app}/credentials/{credential}")),
        // This one changes nothing.
        ("DELETE", format!("/apps/{app}/credentials/{credential}")),
    ] {
        let request = http_client()
            .request(method.parse().unwrap(), format!("http://{http}{path}"))
            .header("x-forwarded-for", "192.0.2.7")
            .header("x-api-secret", &owner.secret);
        request.send().await.unwrap();
    }
    serve.terminate().await;
    let text = serve.stderr();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["message"] == "audit")
        .collect();
    (text, lines, gateway)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_holds_ids_and_the_address() {
    let (text, lines, gateway) = lines("plain").await;
    let [renewed, disconnected] = lines.as_slice() else {
        panic!("{text}");
    };
    for (line, action, target) in [
        (renewed, "send_key.renewed", json!(null)),
        (
            disconnected,
            "user.disconnected",
            json!(gateway.mailbox.credential.to_string()),
        ),
    ] {
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["action"], action);
        assert_eq!(line["actor"], "subscriber");
        assert_eq!(line["subscriber_id"], gateway.subscriber.to_string());
        assert_eq!(line["app_id"], gateway.app.id.to_string());
        assert_eq!(line["target_id"], target);
        assert_eq!(line["client_address"], "192.0.2.7");
        let id = crate::support::caller::text(line, "audit_id");
        assert!(id.starts_with("audit_"), "{id}");
    }
    assert!(!text.contains("ada@sandbox.example"), "{text}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clients_address_is_hashed_where_addresses_are() {
    let (text, lines, gateway) = lines("hashed").await;
    let addresses: Vec<_> = lines.iter().map(|line| &line["client_address"]).collect();
    assert_eq!(addresses.len(), 2, "{text}");
    assert_eq!(addresses[0], addresses[1]);
    let hashed = addresses[0].as_str().unwrap();
    assert!(hashed.starts_with("address:"), "{hashed}");
    assert!(!text.contains("192.0.2.7"), "{text}");
    gateway.stop().await;
}
