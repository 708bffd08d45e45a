//! Headers that a caller adds, and those that it would like to forge.

use mail_parser::MessageParser;
use serde_json::{Map, Value, json};

use super::{send, start, take};
use crate::support::gateway::Gateway;

/// The value of a header as readers show it.
fn text(raw: &[u8], name: &str) -> String {
    let parser = MessageParser::new().header_text(name.to_owned());
    let message = parser.parse(raw).unwrap();
    let value = message.header(name.to_owned()).unwrap();
    value.as_text().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_arrive_as_they_were_given() {
    let gateway = start().await;
    // gromox#360: an Outlook id has 80 characters and more, and a thread dozens of them.
    let many_ids: Vec<String> = (0..60)
        .map(|number| format!("<{number}.{}@example.com>", "x".repeat(80)))
        .collect();
    let address = format!("<https://example.com/u?t={}>", "0123456789".repeat(60));
    let values = json!({
        "In-Reply-To": many_ids[11],
        "References": many_ids.join(" "),
        "List-Unsubscribe": format!("{address}, <mailto:unsubscribe@example.com>"),
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        "List-Id": "Our news <news.example.com>",
        "Auto-Submitted": "auto-generated",
        "Precedence": "bulk",
        "Importance": "high",
        "X-Tag": "a: b; c=\"d\"  e",
        "x-greeting": "Grüße aus Köln 🎉",
        "X-Encoded": "=?utf-8?q?no?=",
        "X-Long": "y".repeat(998),
        "X-Words": "several words ".repeat(500).trim_end(),
        "X-Json": json!({ "k": "v".repeat(500) }).to_string(),
    });
    let answer = send(&gateway, json!({ "headers": values })).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let raw = take(&gateway).await;
    assert!(raw.is_ascii());
    for (name, value) in values.as_object().unwrap() {
        let found = text(&raw, name);
        assert_eq!(found, value.as_str().unwrap(), "{name}");
    }
    let raw = String::from_utf8(raw).unwrap();
    assert!(raw.lines().all(|line| line.len() <= 998), "{raw}");
    assert!(raw.contains(&address), "cut within the address: {raw}");
    for id in &many_ids {
        assert!(raw.contains(id.as_str()), "cut within {id}: {raw}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_forges_what_the_gateway_says() {
    let gateway = start().await;
    for name in [
        "From",
        "FROM",
        "Sender",
        "Reply-To",
        "To",
        "Cc",
        "cc",
        "Bcc",
        "BCC",
        "Subject",
        "Date",
        "Message-ID",
        "message-id",
        "Received",
        "Return-Path",
        "Delivered-To",
        "Resent-From",
        "Resent-Bcc",
        "resent-anything",
        "MIME-Version",
        "Content-Type",
        "Content-Transfer-Encoding",
        "CONTENT-DISPOSITION",
        "DKIM-Signature",
        "ARC-Seal",
        "ARC-Message-Signature",
        "ARC-Authentication-Results",
        "Authentication-Results",
        "Idempotency-Key",
        "X-Mailgate-Id",
        "",
        "X Tag",
        "X-Tag:",
        "X-Tag: x\r\nBcc",
        "X-Tag\r\nBcc",
        "X-Tag\0",
        "Bcc ",
        " Bcc",
        "\tBcc",
        "X-Täg",
        "Вcc",
    ] {
        let answer = send(&gateway, json!({ "headers": { name: "x" } })).await;
        assert_eq!(answer.wrong_fields(), [format!("headers.{name}")]);
    }
    for value in [
        "",
        " ",
        "a\r\nBcc: eve@example.com",
        "a\nBcc: eve@example.com",
        "a\rBcc: eve@example.com",
        "a\r\n b",
        "\r\n\r\nA body of its own",
        "a\0b",
        "a\tb",
        "a\u{7f}b",
        "a\u{85}b",
        &"x".repeat(999),
    ] {
        let answer = send(&gateway, json!({ "headers": { "X-Tag": value } })).await;
        assert_eq!(answer.wrong_fields(), ["headers.X-Tag"], "{value:?}");
    }
    let answer = send(
        &gateway,
        json!({ "headers": { "References": "<ü@x.org>" } }),
    )
    .await;
    assert_eq!(answer.wrong_fields(), ["headers.References"]);
    let twice = json!({ "headers": { "X-Tag": "a", "x-tag": "b" } });
    let answer = send(&gateway, twice).await;
    assert_eq!(answer.wrong_fields().len(), 1);
    // A name is repeated in the answer, but not all of a long one.
    let long = json!({ "headers": { "y".repeat(10_000): "a" } });
    let answer = send(&gateway, long).await;
    assert!(answer.wrong_fields()[0].len() < 100);
    assert_eq!(gateway.sandbox.inbox.count(), 0);
    assert_eq!(gateway.logged().await, []);
    gateway.stop().await;
}

/// Fifty headers as long as they may be.
fn headers(count: usize) -> Value {
    let header = |number| (format!("X-Tag-{number}"), json!("🎉".repeat(998)));
    Value::Object((0..count).map(header).collect::<Map<String, Value>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn there_may_be_fifty_headers() {
    let gateway = Gateway::start().await;
    let answer = send(&gateway, json!({ "headers": headers(50) })).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let raw = take(&gateway).await;
    assert_eq!(text(&raw, "X-Tag-49"), "🎉".repeat(998));
    for count in [51, 20_000] {
        let many: Map<String, Value> = (0..count)
            .map(|number| (format!("X-{number}"), json!("x")))
            .collect();
        let answer = send(&gateway, json!({ "headers": many })).await;
        assert_eq!(answer.wrong_fields(), ["headers"]);
    }
    for (count, status) in [(4, 200), (5, 422)] {
        let long: Map<String, Value> = (0..count)
            .map(|number| {
                (
                    format!("X-{number}"),
                    json!("fifteen octets ".repeat(1_066).trim()),
                )
            })
            .collect();
        let answer = send(&gateway, json!({ "headers": long })).await;
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    gateway.stop().await;
}
