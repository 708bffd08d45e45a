//! What a provider's list of addresses may be, and a mailbox is connected all the same.

use serde_json::{Value, json};

use super::{addresses, rows, send};
use crate::support::gateway::Gateway;
use crate::support::gmail_stand_in::{FULL_SCOPE, GmailStandIn, error};
use crate::support::stand_in::ADDRESS;

fn list(addresses: &[String]) -> String {
    let entry = |address: &String| json!({ "sendAsEmail": address, "verificationStatus": "accepted", "signature": "x" });
    let entries: Vec<Value> = addresses.iter().map(entry).collect();
    json!({ "sendAs": entries }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_answered_the_mailbox_is_connected() {
    let stand_in = GmailStandIn::start().await;
    let builder = Gateway::builder().plugins(stand_in.plugins(FULL_SCOPE));
    let gateway = builder.start().await;
    let refused = |code, reason: &str| {
        let body = error(code, reason, "Not so.", "PERMISSION_DENIED");
        (code, body.to_string())
    };
    let many: Vec<String> = (0..10_000)
        .map(|it| format!("a{it}@stand-in.example"))
        .collect();
    let odd = [
        "",
        "sales",
        "sales@",
        "Sales <sales@stand-in.example>",
        "sales@stand-in.example, eve@stand-in.example",
        "sales@stand-in.example\r\nBcc: eve@stand-in.example",
        "sa\u{0}les@stand-in.example",
        "\u{202e}sales@stand-in.example",
        "good@stand-in.example",
        "GOOD@stand-in.example",
        "Carol@Stand-In.example",
    ]
    .map(str::to_owned);
    for (fault, expected) in [
        (refused(403, "insufficientPermissions"), 1),
        (refused(403, "accessNotConfigured"), 1),
        (refused(401, "authError"), 1),
        (refused(404, "notFound"), 1),
        (refused(429, "rateLimitExceeded"), 1),
        (refused(500, "backendError"), 1),
        ((200, String::new()), 1),
        ((200, "<html>".to_owned()), 1),
        ((200, "[]".to_owned()), 1),
        ((200, r#"{"sendAs":{"a":1}}"#.to_owned()), 1),
        ((200, "{}".to_owned()), 1),
        ((200, list(&many)), 201),
        ((200, list(&odd)), 2),
        // What passes takes nothing away, and what is no longer granted does.
        ((200, list(&["x".repeat(5_000_000)])), 2),
        ((302, String::new()), 2),
        (refused(429, "rateLimitExceeded"), 2),
        (refused(500, "backendError"), 2),
        ((200, "{}".to_owned()), 2),
        (refused(403, "insufficientPermissions"), 1),
    ] {
        let named = format!("{} {:.60}", fault.0, fault.1);
        stand_in.fail_send_as(Some(fault));
        stand_in.connect(&gateway).await;
        let told = addresses(&gateway).await;
        assert_eq!(told.len(), expected, "{named}");
        assert_eq!(told[0], ADDRESS);
        assert_eq!(rows(&gateway).await, i64::try_from(expected - 1).unwrap());
        assert!(
            !told
                .iter()
                .any(|address| address.contains(char::is_control))
        );
    }
    let (status, answer) = send(&gateway, ADDRESS).await;
    assert_eq!(status, 200, "{answer}");
    gateway.stop().await;
}
