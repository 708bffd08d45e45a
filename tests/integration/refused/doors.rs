//! What the doors take: no text of a stranger's reaches the database that it can't hold.

use reqwest::Method;
use serde_json::{Value, json};

use super::log;
use crate::support::caller::{Caller, anonymous, path};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

fn message(headers: &str) -> String {
    format!("From: {MAILBOX}\r\nSubject: x\r\n{headers}\r\nHi\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_id_is_as_long_as_a_line_at_most() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let random = |length: usize| -> String {
        (0..length)
            .map(|_| char::from(b'a' + rand::random::<u8>() % 26))
            .collect()
    };
    let folded = format!("<{}\r\n {}@x>", "a".repeat(600), "b".repeat(600));
    for (id, taken) in [
        (format!("<{}@x>", random(994)), true),
        (format!("<{}@x>", random(995)), false),
        (format!("<{}@x>", random(4_000)), false),
        (random(4_000), false),
        (folded, false),
        (format!("<a@x> <{}@x>", random(2_000)), false),
    ] {
        let content = message(&format!("Message-ID: {id}\r\n"));
        let reply = client.submit("bob@example.com", content.as_bytes()).await;
        let expected = if taken { "250 2.0.0" } else { "550 5.6.0" };
        assert!(reply.starts_with(expected), "{id}: {reply}");
    }
    assert_eq!(log(&gateway).await.len(), 1);
    assert_eq!(
        (gateway.spooled().await, gateway.arrived().await.len()),
        (0, 1)
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_log_has_of_a_message_is_bounded() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let many: Vec<String> = (0..5_000)
        .map(|number| format!("u{number}@example.com"))
        .collect();
    let long = "字".repeat(20_000);
    for headers in [
        format!("To: {}\r\n", many.join(",\r\n ")),
        format!("Cc: {}\r\n", many.join(",\r\n ")),
        format!(
            "To: {}@example.com\r\nCc: {long}@example.com\r\n",
            "x".repeat(50_000)
        ),
        format!("To: \"{long}\" <bob@example.com>\r\nSubject: {long}\r\n"),
    ] {
        let reply = client
            .submit("bob@example.com", message(&headers).as_bytes())
            .await;
        assert!(reply.starts_with("250 2.0.0"), "{reply}");
    }
    let longest: Vec<(i32, i32, i32)> = sqlx::query_as(
        "SELECT octet_length(to_address), octet_length(array_to_string(cc_addresses, '')),
                octet_length(subject)
         FROM email_logs",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap();
    assert_eq!(longest.len(), 4);
    for (to, cc, subject) in longest {
        assert!(
            to <= 70_000 && cc <= 70_000 && subject <= 4_000,
            "{to} {cc} {subject}"
        );
    }
    gateway.stop().await;
}

/// NUL, which Postgres holds nowhere, and half of a surrogate pair, which is no JSON.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_text_is_never_asked_of_the_database() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let app = path(&gateway.app);
    let usual = json!({
        "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "x", "body": "x",
    });
    for field in [
        "pk", "to", "subject", "body", "html", "user_id", "plugin", "from", "reply_to",
    ] {
        let mut body = usual.clone();
        body[field] = json!("a\0b");
        let request = anonymous(&gateway, Method::POST, "/send")
            .header("x-send-key", gateway.app.send_key.expose());
        let status = request.json(&body).send().await.unwrap().status();
        assert!(status == 403 || status == 422, "{field}: {status}");
        let text = usual
            .to_string()
            .replacen('{', &format!("{{\"{field}\":\"\\ud800\","), 1);
        let request = anonymous(&gateway, Method::POST, "/send")
            .header("x-send-key", gateway.app.send_key.expose())
            .header("content-type", "application/json");
        assert_eq!(
            request.body(text).send().await.unwrap().status(),
            400,
            "{field}"
        );
    }
    for (place, body) in [
        ("/apps".to_owned(), json!({ "name": "a\0" })),
        (
            "/apps".to_owned(),
            json!({ "name": "a", "webhook_url": "https://a/\0" }),
        ),
        (
            "/apps".to_owned(),
            json!({ "name": "a", "logo_url": "https://a/\0" }),
        ),
        (
            "/apps".to_owned(),
            json!({ "name": "a", "callback_url": "https://a/\0" }),
        ),
        (
            format!("{app}/webhooks"),
            json!({ "url": "https://a.example/\0", "events": ["email.sent"] }),
        ),
        (
            format!("{app}/webhooks"),
            json!({ "url": "https://a.example/", "events": ["\0"] }),
        ),
        (
            "/payprov/checkout-setup".to_owned(),
            json!({ "portal_url": "https://a/\0" }),
        ),
    ] {
        let answer = owner.post(&place, &body).await;
        let (status, _) = answer.problem();
        assert!((400..500).contains(&status), "{place} {body}: {status}");
    }
    for place in [
        "/apps/%00",
        "/apps/pk_%00",
        "/logs/%00",
        "/logs?app_id=%00",
        "/logs?app_id=a%00",
        "/logs?from_date=%00",
        "/logs?from_date=99999-01-01",
        "/logs?offset=99999999999999999999",
        "/logs?limit=-1",
        "/email-stats?app_id=%00",
        "/email-stats?period=%00",
        "/apps?limit=%00",
        "/apps?offset=18446744073709551616",
    ] {
        let answer = owner.get(place).await;
        let (status, _) = answer.problem();
        assert!((400..500).contains(&status), "{place}: {status}");
    }
    for place in [
        "/connect/%00".to_owned(),
        format!("/connect/{}%00", gateway.app.pushable_key.expose()),
        format!("/connect/{}?user_id=%00", gateway.app.pushable_key.expose()),
        format!(
            "/connect/{}?plugin=plugin_a&login_hint=%00",
            gateway.app.pushable_key.expose()
        ),
        "/oauth/callback?state=%00&code=%00".to_owned(),
    ] {
        let answer = anonymous(&gateway, Method::GET, &place)
            .send()
            .await
            .unwrap();
        assert!(
            answer.status().is_client_error(),
            "{place}: {}",
            answer.status()
        );
    }
    let (status, answer): (u16, Value) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    gateway.stop().await;
}
