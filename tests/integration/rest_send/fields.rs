//! The fields of a request: all that is wrong is told at once, and what nobody asked for is ignored.

use serde_json::{Value, json};

use super::{send, send_json};
use crate::support::gateway::Gateway;

/// One gateway for all of these, each with an empty inbox.
#[tokio::test(flavor = "multi_thread")]
async fn fields_are_checked_all_at_once() {
    let gateway = Gateway::start().await;
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
    for field in ["pk", "to", "subject", "body", "html", "user_id", "plugin"] {
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
        json!({ "body": null, "html": "<p>text</p>" }),
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
    assert_eq!(gateway.sandbox.inbox.count(), 5);
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
            assert!(detail.contains("bytes at most"), "{detail}");
        }
    }
    assert_eq!(gateway.sandbox.inbox.count(), 1);
    assert_eq!(gateway.logged().await.len(), 1);
}
