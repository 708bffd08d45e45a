//! What a field may hold, and how a caller is told of all that is wrong at once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{builder, create, hook, hooks};
use crate::support::caller::{Caller, text};
use crate::support::gateway::Gateway;

/// A gateway as customers have it.
async fn start() -> Gateway {
    builder()
        .set("WEBHOOKS__ALLOW_PRIVATE", false)
        .start()
        .await
}

fn encoded(bytes: usize) -> String {
    format!("whsec_{}", STANDARD.encode(vec![7; bytes]))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_field_is_named() {
    let gateway = start().await;
    let caller = Caller::owner(&gateway).await;
    let created = create(&caller, "https://app.example/hook", &["email.sent"]).await;
    let (hooks, hook) = (hooks(&gateway), hook(&gateway, &created));
    let before = caller.get(&hooks).await.success(200);
    let mut wrong: Vec<(&str, Value, &str)> = Vec::new();
    let too_long = format!("https://example.com/{}", "x".repeat(2_029));
    for url in [
        json!(""),
        json!("http://example.com/"),
        json!("http://localhost:3000/"),
        json!("https://localhost/"),
        json!("https://a.localhost:8443/"),
        json!("https://127.0.0.1/"),
        json!("https://2130706433/"),
        json!("https://0x7f.1/"),
        json!("https://10.1.2.3/"),
        json!("https://100.64.0.1/"),
        json!("https://172.16.0.1/"),
        json!("https://192.168.1.1:8443/hook"),
        json!("https://169.254.169.254/latest/meta-data"),
        json!("https://0.0.0.0/"),
        json!("https://[::1]/"),
        json!("https://[::ffff:10.0.0.1]/"),
        json!("https://[fd00::1]/"),
        json!("https://[fe80::1]/"),
        json!("https://user@example.com/"),
        json!("https://user:password@example.com/"),
        json!(too_long),
        json!("ftp://example.com/"),
        json!("/relative"),
        json!("example.com"),
        json!("https://"),
        json!("https://exa mple.com/"),
        json!("https://example.com/\r\nX: y"),
        json!(7),
        json!(true),
        json!(["https://example.com/"]),
        json!({}),
    ] {
        wrong.push(("url", url, "url"));
    }
    for (events, field) in [
        (json!([]), "events"),
        (json!("email.sent"), "events"),
        (json!({ "email.sent": true }), "events"),
        (json!(7), "events"),
        (json!(vec!["email.sent"; 101]), "events"),
        (json!(["email.read"]), "events[0]"),
        (json!(["email.sent", "test"]), "events[1]"),
        (json!(["email.sent", "email.sent", "*"]), "events[2]"),
        (json!(["EMAIL.SENT"]), "events[0]"),
        (json!(["email.sent "]), "events[0]"),
        (json!([7]), "events[0]"),
        (json!(["email.sent", null]), "events[1]"),
        (json!([["email.sent"]]), "events[0]"),
    ] {
        wrong.push(("events", events, field));
    }
    for flag in [json!("true"), json!(1), json!([]), json!({})] {
        wrong.push(("is_active", flag, "is_active"));
    }
    for (field, value, named) in wrong {
        let mut body = json!({ "url": "https://app.example/", "events": ["email.sent"] });
        body[field] = value;
        let answer = caller.post(&hooks, &body).await;
        assert_eq!(answer.wrong_fields(), [named], "POST {body}");
        let answer = caller.put(&hook, &body).await;
        assert_eq!(answer.wrong_fields(), [named], "PUT {body}");
    }
    for (body, named) in [
        (json!({}), vec!["events", "url"]),
        (
            json!({ "url": null, "events": null }),
            vec!["events", "url"],
        ),
        (
            json!({ "url": 7, "events": ["x", "email.sent", 7], "secret": "", "is_active": 0 }),
            vec!["events[0]", "events[2]", "is_active", "secret", "url"],
        ),
    ] {
        let answer = caller.post(&hooks, &body).await;
        assert_eq!(answer.wrong_fields(), named, "{body}");
        for error in answer.body["errors"].as_array().unwrap() {
            assert!(!text(error, "detail").is_empty(), "{error}");
        }
    }
    assert_eq!(caller.get(&hooks).await.success(200), before);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_within_their_bounds() {
    let gateway = start().await;
    let caller = Caller::owner(&gateway).await;
    let hooks = hooks(&gateway);
    for (secret, taken) in [
        (json!(encoded(23)), true),
        (json!(encoded(24)), true),
        (json!(encoded(64)), true),
        (json!(encoded(65)), true),
        (json!("whsec_this is no base64, though long enough"), true),
        (json!("whsec_fifteen bytes -"), false),
        (json!("x".repeat(15)), false),
        (json!("x".repeat(16)), true),
        (json!("é".repeat(64)), true),
        (json!("x".repeat(128)), true),
        (json!("x".repeat(129)), false),
        (json!(7), false),
        (json!([]), false),
        (json!(null), true),
    ] {
        let body =
            json!({ "url": "https://app.example/", "events": ["email.sent"], "secret": secret });
        let answer = caller.post(&hooks, &body).await;
        if taken {
            let created = answer.success(201);
            assert!(secret.is_null() || created["secret"] == secret);
            let standard = [json!(null), json!(encoded(24)), json!(encoded(64))];
            let encoding = if standard.contains(&secret) {
                "base64"
            } else {
                "raw"
            };
            assert_eq!(created["secret_encoding"], encoding, "{secret}");
        } else {
            assert_eq!(answer.wrong_fields(), ["secret"], "{secret}");
            // It may be nearly right, and so must not stand in an answer that somebody logs.
            let told = answer.body.to_string();
            assert!(!secret.as_str().is_some_and(|secret| told.contains(secret)));
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_just_within_the_limits_is_taken() {
    let gateway = start().await;
    let caller = Caller::owner(&gateway).await;
    let longest = format!("https://example.com/{}", "x".repeat(2_028));
    let all = [
        "email.sent",
        "email.failed_temp",
        "email.failed_perm",
        "email.bounced",
        "email.reply",
        "user.connected",
        "user.disconnected",
        "mailbox.degraded",
        "mailbox.recovered",
        "app.created",
        "app.deleted",
        "send_key.renewed",
    ];
    for body in [
        json!({ "url": longest, "events": all }),
        json!({ "url": "https://8.8.8.8:8443/a@b?c=d#e", "events": vec!["email.sent"; 100] }),
        json!({ "url": "https://[2606:4700:4700::1111]/", "events": ["email.sent"], "is_active": false }),
        json!({ "url": "https://app.example/", "events": ["email.sent"], "id": "wconf_mine", "app_id": 7,
                "secret": null, "is_active": null, "": [] }),
    ] {
        let created = caller.post(&hooks(&gateway), &body).await.success(201);
        assert_eq!(created["url"], body["url"]);
        assert_eq!(
            created["is_active"],
            body["is_active"].as_bool().unwrap_or(true)
        );
        let mut events: Vec<&str> = Vec::new();
        for event in body["events"].as_array().unwrap() {
            let event = event.as_str().unwrap();
            if !events.contains(&event) {
                events.push(event);
            }
        }
        assert_eq!(created["events"], json!(events));
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_for_development() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    for (url, taken) in [
        ("http://127.0.0.1:3000/", true),
        ("http://localhost/", true),
        ("http://receiver:3000/hook", true),
        ("https://10.0.0.1/", true),
        ("http://user@localhost/", false),
        ("ftp://localhost/", false),
    ] {
        let body = json!({ "url": url, "events": ["email.sent"] });
        let answer = caller.post(&hooks(&gateway), &body).await;
        if taken {
            answer.success(201);
        } else {
            assert_eq!(answer.wrong_fields(), ["url"], "{url}");
        }
        // The app's own endpoint is one too.
        let answer = caller
            .post("/apps", &json!({ "name": "x", "webhook_url": url }))
            .await;
        if taken {
            answer.success(201);
        } else {
            assert_eq!(answer.wrong_fields(), ["webhook_url"], "{url}");
        }
    }
    gateway.stop().await;
}
