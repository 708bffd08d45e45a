//! Whom a message goes to, and who is told of whom.

use serde_json::{Value, json};

use super::{parsed, send, start, take};
use crate::support::gateway::Gateway;

/// The envelope of the one message that arrived.
fn envelope(gateway: &Gateway) -> Vec<String> {
    let arrived = gateway.sandbox.inbox.list(2);
    assert_eq!(arrived.len(), 1);
    arrived[0].envelope_to.clone()
}

fn addresses(header: Option<&mail_parser::Address<'_>>) -> Vec<String> {
    header
        .into_iter()
        .flat_map(mail_parser::Address::iter)
        .filter_map(|address| address.address().map(str::to_owned))
        .collect()
}

/// `to_address`, `cc_addresses` and `bcc_addresses` of the newest log row.
async fn logged(gateway: &Gateway) -> (String, Vec<String>, Vec<String>) {
    sqlx::query_as(
        "SELECT to_address, cc_addresses, bcc_addresses FROM email_logs ORDER BY id DESC LIMIT 1",
    )
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_go_to_everybody_once_and_bcc_is_nobodys_business() {
    let gateway = start().await;
    let answer = send(
        &gateway,
        json!({
            "cc": ["carol@example.com", "BOB@example.com", "\"dan d\"@example.com"],
            "bcc": ["eve@example.com", "Carol@example.com", "EVE@example.com", "frank@example.com"],
            "reply_to": "support@example.com",
        }),
    )
    .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["to"], "bob@example.com");
    let everybody = [
        "bob@example.com",
        "carol@example.com",
        "\"dan d\"@example.com",
        "eve@example.com",
        "frank@example.com",
    ];
    assert_eq!(envelope(&gateway), everybody);
    let raw = take(&gateway).await;
    let message = parsed(&raw);
    assert_eq!(addresses(message.to()), ["bob@example.com"]);
    let cc = addresses(message.cc());
    assert_eq!(cc.len(), 2, "{cc:?}");
    assert_eq!(cc[0], "carol@example.com");
    assert_eq!(addresses(message.reply_to()), ["support@example.com"]);
    let text = String::from_utf8(raw).unwrap().to_ascii_lowercase();
    assert!(text.contains("\"dan d\"@example.com"), "{text}");
    for secret in ["bcc", "eve@", "frank@"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let (to, cc, bcc) = logged(&gateway).await;
    assert_eq!(to, everybody[0]);
    assert_eq!(cc, everybody[1..3]);
    assert_eq!(bcc, everybody[3..]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_internationalized_copy_arrives() {
    let gateway = start().await;
    for field in ["cc", "bcc"] {
        let answer = send(&gateway, json!({ field: ["jörg@example.com"] })).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(envelope(&gateway), ["bob@example.com", "jörg@example.com"]);
        let text = String::from_utf8(take(&gateway).await).unwrap();
        assert_eq!(text.contains("Cc: jörg@example.com\r\n"), field == "cc");
        assert_eq!(text.is_ascii(), field == "bcc", "{text}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_must_be_one_address() {
    let gateway = start().await;
    for wrong in [
        "",
        "carol",
        "Carol <carol@example.com>",
        "carol@example.com, eve@example.com",
        "carol@example.com\r\nBcc: eve@example.com",
    ] {
        for field in ["cc", "bcc"] {
            let list = json!(["good@example.com", wrong]);
            let answer = send(&gateway, json!({ field: list })).await;
            assert_eq!(answer.wrong_fields(), [format!("{field}[1]")], "{wrong}");
        }
        let answer = send(&gateway, json!({ "reply_to": wrong })).await;
        assert_eq!(answer.wrong_fields(), ["reply_to"], "{wrong}");
    }
    assert_eq!(gateway.sandbox.inbox.count(), 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recipients_are_counted_together() {
    let gateway = Gateway::builder()
        .set("LIMITS__RECIPIENTS", 4)
        .start()
        .await;
    let many = |count: usize| -> Value {
        (0..count)
            .map(|number| format!("{number}@example.com"))
            .collect()
    };
    for (cc, bcc, expected) in [
        (3, 0, None),
        (0, 3, None),
        (2, 1, None),
        (4, 0, Some("cc")),
        (0, 4, Some("bcc")),
        (2, 2, Some("bcc")),
        (50_000, 0, Some("cc")),
    ] {
        let answer = send(&gateway, json!({ "cc": many(cc), "bcc": many(bcc) })).await;
        match expected {
            None => assert_eq!(answer.status, 200, "{cc} {bcc}: {}", answer.body),
            Some(field) => assert_eq!(answer.wrong_fields(), [field], "{cc} {bcc}"),
        }
    }
    assert_eq!(gateway.sandbox.inbox.count(), 3);
    gateway.stop().await;
}
