//! The sandbox's mailboxes by interfaces like Gmail's and Microsoft Graph's, as settings of `mailgate dev` choose
//! them: what is sent arrives as it does by SMTP.

use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};

use crate::support::gateway::Gateway;

async fn send(gateway: &Gateway, plugin: &str, to: &str) -> (u16, Value) {
    let message = json!({
        "to": to, "bcc": ["dan@example.com"], "subject": "Hello", "body": "It works.", "plugin": plugin,
    });
    gateway.send(message).await
}

#[tokio::test(flavor = "multi_thread")]
async fn both_send_as_the_real_ones_do() {
    let builder = Gateway::builder()
        .set("SANDBOX__PLUGIN_A", "gmail_api")
        .set("SANDBOX__PLUGIN_B", "graph");
    let gateway = builder.start().await;
    gateway
        .connect(None, Plugin::B, "bea@sandbox.example")
        .await;
    for (number, (plugin, sender)) in [
        ("plugin_a", "ada@sandbox.example"),
        ("plugin_b", "bea@sandbox.example"),
    ]
    .into_iter()
    .enumerate()
    {
        let (status, answer) = send(&gateway, plugin, "bob@example.com").await;
        assert_eq!(
            (status, &answer["status"]),
            (200, &json!("sent")),
            "{answer}"
        );
        assert_eq!(answer["from"], sender);
        let arrived = gateway.arrived().await;
        assert_eq!(arrived.len(), number + 1);
        let newest = gateway.sandbox.inbox.list(1).remove(0);
        assert_eq!(newest.mailbox, sender);
        let mut recipients = newest.envelope_to.clone();
        recipients.sort();
        assert_eq!(recipients, ["bob@example.com", "dan@example.com"]);
        let raw = gateway.sandbox.inbox.raw(&newest.id).await.unwrap();
        let raw = String::from_utf8(raw.unwrap()).unwrap();
        assert!(!raw.contains("dan@example.com"), "{raw}");
        // Gmail's own Message-ID is the one that is told.
        let id = answer["message_id"].as_str().unwrap();
        assert!(
            raw.contains(&format!("Message-ID: {id}\r\n")),
            "{id}: {raw}"
        );
        assert_eq!(id.ends_with("@mail.sandbox.example>"), plugin == "plugin_a");

        for (to, expected) in [
            ("permfail@example.com", 502),
            ("limit@example.com", 502),
            ("tempfail@example.com", 202),
            // Nothing leaves for hours after that.
            ("quota@example.com", 202),
        ] {
            let (status, answer) = send(&gateway, plugin, to).await;
            assert_eq!(status, expected, "{plugin} {to}: {answer}");
        }
        assert_eq!(gateway.arrived().await.len(), number + 1);
    }
    gateway.stop().await;
}

/// Otherwise the page of a website whose name leads to this machine reads the mail.
#[tokio::test(flavor = "multi_thread")]
async fn it_answers_to_its_own_names() {
    let gateway = Gateway::builder()
        .set("HTTP__BASE_URL", "http://gateway.example:8080")
        .start()
        .await;
    let port = gateway.sandbox.address.port();
    for path in [
        "/",
        "/messages",
        "/messages/x/raw",
        "/oauth/authorize",
        "/oauth/userinfo",
        "/gmail/v1/users/me/profile",
        "/graph/v1.0/me",
        "/payprov",
        "/payprov/steering",
        "/nothing",
    ] {
        for (host, is_own) in [
            ("evil.example".to_owned(), false),
            (format!("evil.example:{port}"), false),
            (format!("127.0.0.1.evil.example:{port}"), false),
            (format!("localhost.evil.example:{port}"), false),
            (format!("192.0.2.1:{port}"), false),
            (format!("127.0.0.1:{port}"), true),
            (format!("LOCALHOST.:{port}"), true),
            ("evil.localhost".to_owned(), true),
            ("[::1]".to_owned(), true),
            (format!("gateway.example:{port}"), true),
        ] {
            let url = format!("{}{path}", gateway.sandbox.url());
            let request = gateway.http.get(url).header("host", &host);
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status() != 421, is_own, "{host} {path}");
            if !is_own {
                let words = answer.text().await.unwrap();
                assert!(words.contains("http.base_url"), "{words}");
            }
        }
    }
    gateway.stop().await;
}

/// What Graph's document requires, and an HTTP client may leave out.
#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_not_sent_without_a_length() {
    let gateway = Gateway::builder()
        .set("SANDBOX__PLUGIN_B", "graph")
        .start()
        .await;
    let address = format!("{}/graph/v1.0/me/messages/any/send", gateway.sandbox.url());
    let status = async |length: Option<&str>| {
        let mut request = gateway.http.post(&address).bearer_auth("no-token");
        if let Some(length) = length {
            request = request.header("content-length", length);
        }
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!((status(None).await, status(Some("0")).await), (411, 401));
    gateway.stop().await;
}
