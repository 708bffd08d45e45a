//! Files that go with a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail_parser::{MessagePart, MimeHeaders, PartType};
use serde_json::{Value, json};

use super::{parsed, send, start, take};
use crate::support::gateway::Gateway;

/// The smallest PNG image.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async fn logged_with_attachments(gateway: &Gateway) -> bool {
    sqlx::query_scalar("SELECT has_attachments FROM email_logs ORDER BY id DESC LIMIT 1")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

fn essence(part: &MessagePart<'_>) -> String {
    let content_type = part.content_type().unwrap();
    format!(
        "{}/{}",
        content_type.ctype(),
        content_type.subtype().unwrap_or_default()
    )
}

fn disposition<'a>(part: &'a MessagePart<'_>) -> &'a str {
    part.content_disposition().unwrap().ctype()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_images_arrive_in_their_places() {
    let gateway = start().await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let answer = send(
        &gateway,
        json!({
            "html": "<p><img src=\"cid:logo@x\"></p>",
            "attachments": [
                { "filename": "every byte.bin", "content": STANDARD.encode(&every_byte) },
                {
                    "filename": "logo.png", "content": PNG,
                    "content_type": "image/png", "content_id": "logo@x",
                },
                {
                    "filename": "Übersicht \"für\" 日本語.csv",
                    "content": "YSxiDQoxLDINCg==",
                    "content_type": "text/csv; charset=utf-8; header=present",
                },
                { "filename": "empty", "content": "", "content_type": null, "content_id": null },
            ],
        }),
    )
    .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(logged_with_attachments(&gateway).await);
    let raw = take(&gateway).await;
    assert!(raw.is_ascii());
    let message = parsed(&raw);
    let types: Vec<String> = message.parts.iter().map(essence).collect();
    assert_eq!(
        types,
        [
            "multipart/mixed",
            "multipart/alternative",
            "text/plain",
            "multipart/related",
            "text/html",
            "image/png",
            "application/octet-stream",
            "text/csv",
            "application/octet-stream",
        ]
    );
    assert_eq!(message.body_text(0).unwrap().trim_end(), "It works.");
    let image = &message.parts[5];
    assert_eq!(disposition(image), "inline");
    assert_eq!(image.content_id(), Some("logo@x"));
    assert_eq!(image.attachment_name(), Some("logo.png"));
    assert_eq!(image.contents(), STANDARD.decode(PNG).unwrap());
    for (part, name, content) in [
        (6, "every byte.bin", every_byte.as_slice()),
        (7, "Übersicht \"für\" 日本語.csv", b"a,b\r\n1,2\r\n"),
        (8, "empty", b""),
    ] {
        let part = &message.parts[part];
        assert_eq!(disposition(part), "attachment", "{name}");
        assert_eq!(part.attachment_name(), Some(name));
        assert_eq!(part.contents(), content, "{name}");
        assert_eq!(part.content_id(), None, "{name}");
    }
    let table = message.parts[7].content_type().unwrap();
    assert_eq!(table.attribute("header"), Some("present"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_html_shows_is_no_attachment() {
    let gateway = start().await;
    let image = json!({ "filename": "a.png", "content": PNG, "content_id": "a", "content_type": "image/png" });
    let html = json!({ "body": null, "html": "<img src=\"cid:a\">", "attachments": [image] });
    let answer = send(&gateway, html).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!logged_with_attachments(&gateway).await);
    let message = parsed(&take(&gateway).await);
    assert_eq!(essence(&message.parts[0]), "multipart/related");
    // Without HTML there is nothing to show it.
    let answer = send(&gateway, json!({ "attachments": [image] })).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(logged_with_attachments(&gateway).await);
    let message = parsed(&take(&gateway).await);
    assert_eq!(essence(&message.parts[0]), "multipart/mixed");
    assert_eq!(disposition(&message.parts[2]), "attachment");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_ten_megabytes_arrives() {
    let gateway = start().await;
    let content: Vec<u8> = (0..10_000_000_u32)
        .map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    let in_lines = STANDARD
        .encode(&content)
        .as_bytes()
        .chunks(76)
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect::<Vec<_>>()
        .join("\r\n");
    for encoded in [STANDARD.encode(&content), in_lines] {
        let file = json!({ "filename": "large.bin", "content": encoded });
        let answer = send(&gateway, json!({ "attachments": [file] })).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let message = parsed(&take(&gateway).await);
        let part = message.attachment(0).unwrap();
        assert!(matches!(part.body, PartType::Binary(_)));
        assert!(part.contents() == content, "other bytes");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_file_is_named() {
    let gateway = start().await;
    let long = "x".repeat(256);
    for (field, wrong) in [
        ("content", "SGVsbG8"),
        ("content", "SGVsbG8=="),
        ("content", "SGVs bG8="),
        ("content", "-_-_"),
        ("content", "data:;base64,SGVsbG8="),
        ("content", "ü"),
        ("filename", ""),
        ("filename", "../passwd"),
        ("filename", "C:\\x"),
        ("filename", "a\r\nContent-Type: text/html"),
        ("filename", "a\0"),
        ("filename", &long),
        ("content_type", ""),
        ("content_type", "pdf"),
        ("content_type", "text/html\r\nX-Forged: yes"),
        ("content_type", "text/html; charset"),
        ("content_type", "multipart/mixed; boundary=x"),
        ("content_type", "message/rfc822"),
        ("content_type", &long),
        ("content_id", ""),
        ("content_id", "<logo>"),
        ("content_id", "a b"),
        ("content_id", "a>\r\nX-Forged: yes"),
        ("content_id", "ü"),
        ("content_id", &long),
    ] {
        let mut file = json!({ "filename": "a", "content": "SGVsbG8=" });
        file[field] = json!(wrong);
        let good = json!({ "filename": "a", "content": "" });
        let answer = send(&gateway, json!({ "attachments": [good, file] })).await;
        let expected = format!("attachments[1].{field}");
        assert_eq!(answer.wrong_fields(), [expected], "{wrong:?}");
    }
    let file = json!({ "filename": "a", "content": "", "content_id": "same" });
    let answer = send(&gateway, json!({ "attachments": [file, file] })).await;
    assert_eq!(answer.wrong_fields(), ["attachments[1].content_id"]);
    for missing in ["filename", "content"] {
        let mut file = json!({ "filename": "a", "content": "" });
        file[missing] = Value::Null;
        let answer = send(&gateway, json!({ "attachments": [file] })).await;
        let expected = format!("attachments[0].{missing}");
        assert_eq!(answer.wrong_fields(), [expected]);
    }
    assert_eq!(gateway.sandbox.inbox.count(), 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_have_their_limits() {
    let gateway = Gateway::builder()
        .set("LIMITS__MESSAGE_BYTES", 100_000)
        .start()
        .await;
    let files = |count: usize, bytes: usize| -> Value {
        let file = json!({ "filename": "a", "content": STANDARD.encode(vec![b'x'; bytes]) });
        (0..count).map(|_| file.clone()).collect()
    };
    for (count, bytes, expected) in [
        (100, 10, (200, "")),
        (101, 10, (422, "invalid_request")),
        (1_000, 10, (422, "invalid_request")),
        (1, 70_000, (200, "")),
        // Not in its base64 alone, but with its line ends and headers.
        (1, 74_500, (413, "message_too_large")),
        (1, 80_000, (413, "message_too_large")),
        (2, 40_000, (413, "message_too_large")),
        (1, 200_000, (413, "payload_too_large")),
    ] {
        let answer = send(&gateway, json!({ "attachments": files(count, bytes) })).await;
        assert_eq!(
            answer.problem(),
            expected,
            "{count} {bytes}: {}",
            answer.body
        );
    }
    assert_eq!(gateway.sandbox.inbox.count(), 2);
    gateway.stop().await;
}
