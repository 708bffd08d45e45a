//! The message that the gateway makes of a request, as a mail reader sees it.

use mail_parser::MimeHeaders;
use serde_json::json;

use super::{parsed, send, take};
use crate::support::gateway::{Gateway, MAILBOX};

fn content_type(part: &impl MimeHeaders<'static>) -> String {
    let content_type = part.content_type().unwrap();
    let charset = content_type.attribute("charset").unwrap_or_default();
    format!(
        "{}/{} {charset}",
        content_type.ctype(),
        content_type.subtype().unwrap_or_default()
    )
    .to_ascii_lowercase()
}

/// One gateway for all of these, each with an empty inbox.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_becomes_the_message_that_it_describes() {
    let gateway = Gateway::start().await;
    text_html_or_both(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    headers_are_those_of_the_mailbox_and_the_answer(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    what_goes_in_comes_out(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    an_internationalized_recipient_gets_it(&gateway).await;
}

async fn text_html_or_both(gateway: &Gateway) {
    for (changes, expected) in [
        (json!({ "body": "plain" }), vec!["text/plain utf-8"]),
        (
            json!({ "body": "plain", "html": "" }),
            vec!["text/plain utf-8"],
        ),
        (
            json!({ "body": null, "html": "<p>rich</p>" }),
            vec!["text/html utf-8"],
        ),
        (
            json!({ "body": "plain", "html": "<p>rich</p>" }),
            vec![
                "multipart/alternative ",
                "text/plain utf-8",
                "text/html utf-8",
            ],
        ),
    ] {
        let answer = send(gateway, changes.clone()).await;
        assert_eq!(answer.status, 200, "{changes}: {}", answer.body);
        let message = parsed(&take(gateway).await);
        let types: Vec<String> = message.parts.iter().map(content_type).collect();
        assert_eq!(types, expected, "{changes}");
        for part in &message.parts {
            match content_type(part).as_str() {
                "text/plain utf-8" => assert_eq!(part.text_contents().unwrap().trim_end(), "plain"),
                "text/html utf-8" => {
                    assert_eq!(part.text_contents().unwrap().trim_end(), "<p>rich</p>");
                }
                _ => {}
            }
        }
    }
}

async fn headers_are_those_of_the_mailbox_and_the_answer(gateway: &Gateway) {
    let answer = send(gateway, json!({ "subject": "Grüße" })).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let raw = take(gateway).await;
    let text = String::from_utf8_lossy(&raw).into_owned();
    let headers = text.split("\r\n\r\n").next().unwrap();
    for name in [
        "From",
        "To",
        "Subject",
        "Date",
        "Message-ID",
        "MIME-Version",
    ] {
        let count = headers
            .lines()
            .filter(|line| {
                line.to_ascii_lowercase()
                    .starts_with(&format!("{}:", name.to_ascii_lowercase()))
            })
            .count();
        assert_eq!(count, 1, "{name}: {headers}");
    }
    let message = parsed(&raw);
    let address = |header: Option<&mail_parser::Address<'_>>| {
        header
            .and_then(|addresses| addresses.first()?.address().map(str::to_owned))
            .unwrap()
    };
    assert_eq!(address(message.from()), MAILBOX);
    assert_eq!(address(message.to()), "bob@example.com");
    assert_eq!(message.subject(), Some("Grüße"));
    let message_id = format!("<{}>", message.message_id().unwrap());
    assert_eq!(answer.body["message_id"], message_id);
    let age = chrono::Utc::now().timestamp() - message.date().unwrap().to_timestamp();
    assert!((0..60).contains(&age), "{age} seconds old");
    assert!(headers.is_ascii(), "{headers}");
}

async fn what_goes_in_comes_out(gateway: &Gateway) {
    let long_line = "word ".repeat(400) + &"x".repeat(3_000);
    let long_subject = "Überraschung ".repeat(40);
    for (subject, body) in [
        ("Grüße aus Köln", "Hallo Jörg,\nviele Grüße\n"),
        ("日本語の件名 🎉", "本文です。\n🎉🎉🎉\n"),
        ("a=b?c_d =?utf-8?q?no?=", "=3D = _ ? =?utf-8?q?x?=\n"),
        (
            "Re: \"quoted\" <not@an.address>",
            ".\n..\n.leading dot\nFrom here\n",
        ),
        ("  ", "trailing space \n\ttab\t\n\n\nend\n"),
        (long_subject.trim_end(), long_line.as_str()),
        (&"x".repeat(998), "a subject of one word\n"),
        (&format!("=?{}", "ü".repeat(900)), "a long subject\n"),
        ("", "an empty subject\n"),
        ("line ends", "one\r\ntwo\nthree\n"),
    ] {
        let answer = send(
            gateway,
            json!({ "subject": subject, "body": body, "html": format!("<p>{body}</p>") }),
        )
        .await;
        assert_eq!(answer.status, 200, "{subject}: {}", answer.body);
        let raw = take(gateway).await;
        assert!(
            raw.split(|byte| *byte == b'\n')
                .all(|line| line.len() <= 999),
            "{subject}: a line is longer than RFC 5322 allows"
        );
        let message = parsed(&raw);
        assert_eq!(message.subject().unwrap_or_default().trim(), subject.trim());
        let unified = |text: &str| text.replace("\r\n", "\n").trim_end_matches('\n').to_owned();
        assert_eq!(
            unified(&message.body_text(0).unwrap()),
            unified(body),
            "{subject}"
        );
        assert_eq!(
            unified(&message.body_html(0).unwrap()),
            unified(&format!("<p>{body}</p>")),
            "{subject}"
        );
    }
}

async fn an_internationalized_recipient_gets_it(gateway: &Gateway) {
    let answer = send(gateway, json!({ "to": "jörg@example.com" })).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["to"], "jörg@example.com");
    let arrived = gateway.sandbox.inbox.list(2);
    assert_eq!(arrived.len(), 1);
    assert_eq!(arrived[0].envelope_to, ["jörg@example.com"]);
}
