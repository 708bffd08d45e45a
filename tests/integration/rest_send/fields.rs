//! The fields of a request: all that is wrong is told at once, and what nobody asked for is ignored.

use serde_json::{Value, json};

use super::{send, send_json, start};
use crate::support::gateway::Gateway;

/// One gateway for all of these, each with an empty inbox.
#[tokio::test(flavor = "multi_thread")]
async fn fields_are_checked_all_at_once() {
    let gateway = start().await;
    a_wrong_field_is_named(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    all_wrong_fields_are_named_at_once(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    unknown_fields_and_null_options_are_nothing(&gateway).await;
}

async fn a_wrong_field_is_named(gateway: &Gateway) {
    let long = "x".repeat(999);
    let cases = [
        (json!({ "to": null }), "to"),
        (json!({ "subject": null }), "subject"),
        (json!({ "body": null }), "body"),
        (json!({ "body": "", "html": "" }), "body"),
        (json!({ "to": "" }), "to"),
        (json!({ "to": "bob" }), "to"),
        (json!({ "to": "bob@" }), "to"),
        (json!({ "to": "Bob <bob@example.com>" }), "to"),
        (json!({ "to": "bob@example.com, eve@example.com" }), "to"),
        (
            json!({ "to": "bob@example.com\r\nBcc: eve@example.com" }),
            "to",
        ),
        (json!({ "to": "bob@example.com\n" }), "to"),
        (
            json!({ "subject": "Hi\r\nBcc: eve@example.com" }),
            "subject",
        ),
        (json!({ "subject": "Hi\nBcc: eve@example.com" }), "subject"),
        (json!({ "subject": "Hi\rBcc: eve@example.com" }), "subject"),
        (json!({ "subject": "Hi\r\n there" }), "subject"),
        (json!({ "subject": "Hi\n" }), "subject"),
        (json!({ "subject": "Hi\0" }), "subject"),
        (json!({ "subject": long }), "subject"),
        (json!({ "body": "\0" }), "body"),
        (json!({ "html": "\0" }), "html"),
        (json!({ "plugin": "plugin_b_alt" }), "plugin"),
        (json!({ "plugin": "plugin_c" }), "plugin"),
        (json!({ "plugin": "PLUGIN_A" }), "plugin"),
        (json!({ "plugin": "" }), "plugin"),
    ];
    for (changes, field) in cases {
        let answer = send(gateway, changes.clone()).await;
        assert_eq!(answer.wrong_fields(), [field], "{changes}");
        assert_eq!(answer.body["code"], "invalid_request", "{changes}");
    }
    for field in [
        "pk", "to", "subject", "body", "html", "user_id", "plugin", "from", "reply_to",
    ] {
        for wrong in [
            json!(1),
            json!(-1),
            json!(1.5),
            json!(true),
            json!(["x"]),
            json!({ "x": 1 }),
        ] {
            let answer = send(gateway, json!({ field: wrong })).await;
            assert_eq!(answer.wrong_fields(), [field], "{wrong}");
        }
    }
    for field in ["cc", "bcc", "attachments"] {
        for wrong in [json!(1), json!(true), json!("x"), json!({ "x": 1 })] {
            let answer = send(gateway, json!({ field: wrong })).await;
            assert_eq!(answer.wrong_fields(), [field], "{wrong}");
        }
        for wrong in [json!(1), json!(true), json!(null), json!([])] {
            let answer = send(gateway, json!({ field: [wrong] })).await;
            assert_eq!(answer.wrong_fields(), [format!("{field}[0]")], "{wrong}");
        }
    }
    for wrong in [json!(1), json!(true), json!("x"), json!(["x"])] {
        let answer = send(gateway, json!({ "headers": wrong })).await;
        assert_eq!(answer.wrong_fields(), ["headers"], "{wrong}");
    }
    for wrong in [json!(1), json!(true), json!(null), json!(["x"]), json!({})] {
        let answer = send(gateway, json!({ "headers": { "X-Tag": wrong } })).await;
        assert_eq!(answer.wrong_fields(), ["headers.X-Tag"], "{wrong}");
    }
    for field in ["filename", "content_type", "content", "content_id"] {
        for wrong in [json!(1), json!(true), json!(["x"]), json!({})] {
            let mut file = json!({ "filename": "a", "content": "" });
            file[field] = wrong.clone();
            let answer = send(gateway, json!({ "attachments": [file] })).await;
            let expected = format!("attachments[0].{field}");
            assert_eq!(answer.wrong_fields(), [expected], "{wrong}");
        }
    }
    assert_eq!(gateway.sandbox.inbox.count(), 0);
    assert_eq!(gateway.logged().await, []);
}

async fn all_wrong_fields_are_named_at_once(gateway: &Gateway) {
    for (body, expected) in [
        (json!({}), vec!["body", "pk", "subject", "to"]),
        (
            json!({ "pk": 1, "to": [], "subject": {}, "body": true, "html": 2, "user_id": 3, "plugin": 4 }),
            vec!["body", "html", "pk", "plugin", "subject", "to", "user_id"],
        ),
        (
            json!({ "pk": gateway.app.pushable_key.expose(), "to": "bob", "subject": "a\nb", "plugin": "x" }),
            vec!["body", "plugin", "subject", "to"],
        ),
        (
            json!({
                "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "x", "body": "x",
                "cc": ["carol@example.com", "carol", 3], "bcc": ["Dan <dan@example.com>"],
                "reply_to": "x", "from": "y",
                "headers": { "From": "z", "X-Good": "z", "X-Bad": "\n" },
                "attachments": [
                    { "filename": "a", "content": "" },
                    { "filename": "a/b", "content": "*", "content_type": "x", "content_id": "<x>" },
                    {},
                ],
            }),
            vec![
                "attachments[1].content",
                "attachments[1].content_id",
                "attachments[1].content_type",
                "attachments[1].filename",
                "attachments[2].content",
                "attachments[2].filename",
                "bcc[0]",
                "cc[1]",
                "cc[2]",
                "from",
                "headers.From",
                "headers.X-Bad",
                "reply_to",
            ],
        ),
    ] {
        let answer = send_json(gateway, &body).await;
        let mut named = answer.wrong_fields();
        named.sort_unstable();
        assert_eq!(named, expected, "{body}");
    }
}

async fn unknown_fields_and_null_options_are_nothing(gateway: &Gateway) {
    let pk = gateway.app.pushable_key.expose();
    let usual = json!({ "pk": pk, "to": "bob@example.com", "subject": "Hello" });
    for more in [
        json!({ "body": "text", "html": null, "user_id": null, "plugin": null }),
        json!({
            "body": null, "html": "<p>text</p>", "cc": null, "bcc": null, "reply_to": null,
            "from": null, "headers": null, "attachments": null,
        }),
        json!({ "body": "text", "cc": [], "bcc": [], "headers": {}, "attachments": [] }),
        json!({ "body": "text", "user_id": "whoever", "plugin": "plugin_a" }),
        json!({ "body": "text", "colour": "blue", "nested": { "to": [1, { "deep": null }] } }),
        json!({ "body": "text", "PK": "pk_other", "From": "eve@example.com" }),
    ] {
        let mut body: Value = usual.clone();
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let answer = send_json(gateway, &body).await;
        assert_eq!(answer.status, 200, "{more}: {}", answer.body);
    }
    assert_eq!(gateway.sandbox.inbox.count(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused() {
    let gateway = Gateway::builder()
        .set("LIMITS__MESSAGE_BYTES", 4_096)
        .start()
        .await;
    for (length, expected) in [(1_000, 200), (4_090, 413), (10_000, 413), (1 << 20, 413)] {
        let answer = send(&gateway, json!({ "body": "x".repeat(length) })).await;
        assert_eq!(answer.status, expected, "{length}: {}", answer.body);
        if expected == 413 {
            let detail = answer.body["detail"].as_str().unwrap();
            assert!(detail.contains("must not exceed"), "{detail}");
        }
    }
    assert_eq!(gateway.sandbox.inbox.count(), 1);
    assert_eq!(gateway.logged().await.len(), 1);
}
