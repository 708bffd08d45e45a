//! What a field may hold, and how a caller is told of all that is wrong at once.

use serde_json::{Value, json};

use super::{Caller, path, text, unlimited};
use crate::support::gateway::Gateway;

const ADDRESSES: [&str; 3] = ["logo_url", "webhook_url", "callback_url"];

/// One field that is wrong, in a new app and in a change.
#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_field_is_named() {
    let gateway = unlimited().await;
    let caller = Caller::owner(&gateway).await;
    let path = path(&gateway.app);
    let before = caller.get(&path).await.success(200);
    let mut wrong: Vec<(&str, Value)> = Vec::new();
    for name in [
        json!(""),
        json!("  \u{a0}"),
        json!("\u{200b}"),
        json!(" \u{2060}\u{3164}"),
        json!("\u{200b}\u{7}"),
        json!("x".repeat(256)),
        json!("é".repeat(256)),
        json!("a\u{0}b"),
        json!("a\nb"),
        json!("a\u{7f}"),
        json!("a\u{85}"),
        json!(7),
        json!(7.5),
        json!(true),
        json!([]),
        json!(["x"]),
        json!({ "x": 1 }),
    ] {
        wrong.push(("name", name));
    }
    let too_long = format!("https://example.com/{}", "x".repeat(2_029));
    for field in ADDRESSES {
        for address in [
            json!("http://example.com/"),
            json!("http://localhost:3000/"),
            json!("http://127.0.0.1/"),
            json!("https://user@example.com/"),
            json!("https://user:password@example.com/"),
            json!(too_long),
            json!("javascript:alert(1)"),
            json!("data:text/html,x"),
            json!("ftp://example.com/"),
            json!("/relative"),
            json!("//example.com/"),
            json!("example.com"),
            json!("https://"),
            json!("https://exa mple.com/"),
            json!("https://example.com/\r\nX: y"),
            json!(" "),
            json!(7),
            json!(false),
            json!([]),
            json!({}),
        ] {
            wrong.push((field, address));
        }
    }
    for address in ["https://127.0.0.1/", "https://10.0.0.1/", "https://[::1]/"] {
        wrong.push(("webhook_url", json!(address)));
    }
    for field in ["multiuser", "multilink"] {
        for flag in [json!("true"), json!(1), json!(""), json!([]), json!({})] {
            wrong.push((field, flag));
        }
    }
    for (field, value) in wrong {
        let mut body = json!({ "name": "Fine" });
        body[field] = value;
        let created = caller.post("/apps", &body).await;
        assert_eq!(created.wrong_fields(), [field], "POST {body}");
        let changed = caller.put(&path, &body).await;
        assert_eq!(changed.wrong_fields(), [field], "PUT {body}");
    }
    for body in [json!({}), json!({ "name": null })] {
        assert_eq!(caller.post("/apps", &body).await.wrong_fields(), ["name"]);
    }
    assert_eq!(caller.get(&path).await.success(200), before);
    let list = caller.get("/apps").await.success(200);
    assert_eq!(list["apps"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_wrong_is_told_at_once() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let body = json!({
        "name": "",
        "logo_url": "ftp://example.com/",
        "multiuser": "yes",
        "multilink": 1,
        "webhook_url": [],
        "callback_url": "relative",
    });
    let all = [
        "callback_url",
        "logo_url",
        "multilink",
        "multiuser",
        "name",
        "webhook_url",
    ];
    for answer in [
        caller.post("/apps", &body).await,
        caller.put(&path(&gateway.app), &body).await,
    ] {
        assert_eq!(answer.wrong_fields(), all);
        for error in answer.body["errors"].as_array().unwrap() {
            assert!(!text(error, "detail").is_empty(), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_just_within_the_limits_is_taken() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let longest = format!("https://example.com/{}", "x".repeat(2_028));
    assert_eq!(longest.len(), 2_048);
    for body in [
        json!({ "name": "é".repeat(255) }),
        // Joiners stay where they join something.
        json!({ "name": "x\u{200d}y" }),
        json!({ "name": "x", "logo_url": longest, "webhook_url": longest }),
        json!({ "name": "x", "logo_url": "", "webhook_url": "", "callback_url": "" }),
        json!({ "name": "x", "logo_url": null, "multiuser": null, "multilink": null }),
        json!({ "name": "x", "callback_url": "https://example.com/a?email=a@b.example" }),
        json!({ "name": "x", "app_id": "mine", "pushable_key": "pk_mine", "send_key": 7, "": [] }),
    ] {
        let created = caller.post("/apps", &body).await.success(201);
        assert_eq!(created["name"], body["name"]);
        assert_ne!(created["app_id"], "mine");
        let key = text(&created, "pushable_key");
        assert_ne!(key, "pk_mine");
        let detail = caller.get(&format!("/apps/{key}")).await.success(200);
        for field in ADDRESSES {
            let given = body[field].as_str().unwrap_or_default();
            assert_eq!(detail[field], given, "{field}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_this_machine_are_for_development() {
    let gateway = Gateway::builder()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .start()
        .await;
    let caller = Caller::owner(&gateway).await;
    for field in ADDRESSES {
        // Where webhooks go may be any machine of a private network too.
        let of_webhooks = field == "webhook_url";
        for (address, taken) in [
            ("http://localhost:3000/x", true),
            ("http://127.0.0.1/x", true),
            ("http://[::1]:80/", true),
            ("https://example.com/", true),
            ("http://10.0.0.1/", of_webhooks),
            ("http://example.com/", of_webhooks),
            ("http://localhost.example.com/", of_webhooks),
            ("http://user@localhost/", false),
        ] {
            let answer = caller
                .post("/apps", &json!({ "name": "x", field: address }))
                .await;
            if taken {
                answer.success(201);
            } else {
                assert_eq!(answer.wrong_fields(), [field], "{address}");
            }
        }
    }
}
