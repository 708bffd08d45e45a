//! Bounces of what a mailbox has sent, to the app's event: Postfix's own, read by IMAP, and those of Gmail and Graph in
//! the shapes of their stand-ins.

use serde_json::{Value, json};

use crate::peers_end_to_end::ADA;
use crate::replies;
use crate::support::gateway::Gateway;
use crate::support::gmail_stand_in::{FULL_SCOPE, GmailStandIn};
use crate::support::graph_stand_in::{self, GraphStandIn, READ_WRITE};
use crate::support::stand_in;

/// After any moment that is asked for.
const LATE: i64 = 4_000_000_000;

/// The data of the events about bounces.
async fn bounces(gateway: &Gateway) -> Vec<Value> {
    let bodies: Vec<String> = sqlx::query_scalar(
        "SELECT body FROM webhook_messages WHERE event = 'email.bounced' ORDER BY id",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap();
    let event = |body: &String| -> Value { serde_json::from_str(body).unwrap() };
    (bodies.iter())
        .map(|body| event(body)["data"].take())
        .collect()
}

async fn told(gateway: &Gateway, count: usize) -> Vec<Value> {
    gateway
        .eventually("the bounces", async |gateway| {
            bounces(gateway).await.len() >= count
        })
        .await;
    bounces(gateway).await
}

/// The app wants to be told.
async fn listen(gateway: &Gateway) {
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn postfix_refuses_one_recipient_and_delays_another() {
    let (provider, gateway) = replies::start().await;
    let refused = replies::submit(&gateway, ADA, "bounced@provider.test", "refused", "").await;
    let delayed = replies::submit(&gateway, ADA, "delayed@provider.test", "delayed", "").await;
    provider.wait_for_messages(ADA, 2).await;
    let mut told = told(&gateway, 2).await;
    told.sort_by_key(|event| event["bounce_type"].to_string());
    let facts: Vec<[&str; 4]> = (told.iter())
        .map(|event| {
            ["message_id", "to_address", "bounce_type", "status"]
                .map(|name| event[name].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        facts,
        [
            [&*refused, "bounced@provider.test", "permanent", "5.1.1"],
            [&*delayed, "delayed@provider.test", "temporary", "4.4.1"],
        ]
    );
    assert_eq!(told[0]["diagnostic"], "There is no such mailbox any more");
    assert_eq!(told[1]["diagnostic"], "The host is out to lunch");
    assert!(told.iter().all(|event| event["from_address"] == ADA));
    // Postfix tries the delayed one again all the while, and tells of it once.
    let found: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM webhook_messages WHERE event IN ('email.bounced', 'email.reply')",
    )
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    assert_eq!(found, 2);
    gateway.stop().await;
}

/// A report about `recipient` that returns `header`.
fn report(from: &str, recipient: &str, header: &str) -> String {
    format!(
        "Return-Path: <>\r\nFrom: {from}\r\nSubject: Undeliverable\r\nMessage-ID: <{recipient}.b@provider.example>\r\n\
         Content-Type: multipart/report; boundary=\"b\"; report-type=delivery-status\r\n\r\n\
         --b\r\n\r\nNobody there\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; provider.example\r\n\r\nFinal-Recipient: rfc822; {recipient}\r\nAction: failed\r\n\
         Status: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 no\r\n\r\n--b\r\nContent-Type: text/rfc822-headers\r\n\r\n\
         {header}\r\n--b--\r\n"
    )
}

/// The header by which a message is recognized whose Message-ID the provider has replaced.
fn own_header(sent: &[u8]) -> String {
    let text = String::from_utf8_lossy(sent);
    let line = text
        .lines()
        .find(|line| line.starts_with("X-Mailgate-Id: "));
    format!(
        "Message-ID: <another@provider.example>\r\n{}",
        line.unwrap()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn gmail_returns_what_it_has_renamed() {
    let builder = Gateway::builder().set("MAILBOXES__REPLIES_SECONDS", 1);
    let (stand_in, gateway) = GmailStandIn::with(builder, FULL_SCOPE).await;
    listen(&gateway).await;
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    let header = own_header(&stand_in.sent()[0].raw);
    let from = "Mail Delivery Subsystem <mailer-daemon@googlemail.com>";
    let bounce = report(from, "bob@example.com", &header);
    stand_in.receive_raw("SPAM", bounce.as_bytes(), LATE);
    // Nobody's: told of to nobody.
    let other = report(from, "eve@example.com", "Message-ID: <other@example.com>");
    stand_in.receive_raw("INBOX", other.as_bytes(), LATE);
    let told = told(&gateway, 1).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["log_id"], answer["log_id"]);
    assert_eq!(told[0]["to_address"], "bob@example.com");
    assert_eq!(told[0]["bounce_type"], "permanent");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn graph_returns_what_exchange_has_renamed() {
    let builder = Gateway::builder().set("MAILBOXES__REPLIES_SECONDS", 1);
    let (stand_in, gateway) = GraphStandIn::with(READ_WRITE, builder).await;
    listen(&gateway).await;
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    let from = "Microsoft Outlook <postmaster@outlook.com>";
    let header = own_header(&stand_in.sent()[0].mime);
    let bounce = report(from, "bob@example.com", &header);
    stand_in.set_whole("AAMk/1=", bounce.as_bytes());
    stand_in.receive_junk(json!({
        "@odata.etag": "W/\"CQAAABYAAAB\"",
        "id": "AAMk/1=",
        "receivedDateTime": "2096-01-02T03:04:05Z",
        "subject": "Undeliverable",
        "internetMessageId": "<b@outlook.com>",
        "from": {"emailAddress": {"name": "Microsoft Outlook", "address": "postmaster@outlook.com"}},
        "toRecipients": [{"emailAddress": {"address": graph_stand_in::ADDRESS}}],
        "internetMessageHeaders": [
            {"name": "Content-Type", "value": "multipart/report; report-type=delivery-status; boundary=\"b\""},
        ],
    }));
    let told = told(&gateway, 1).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["log_id"], answer["log_id"]);
    assert_eq!(told[0]["to_address"], "bob@example.com");
    gateway.stop().await;
}
