//! What goes out: which of the two addresses a message takes, and whom its headers name.

use serde_json::json;

use super::{large, submit};
use crate::support::gateway::Gateway;
use crate::support::gmail_stand_in::{FULL_SCOPE, GmailStandIn, SEND_SCOPE};
use crate::support::stand_in::{self, ADDRESS, StandIn};

/// Reads headers, and no more.
const METADATA: &str = "https://www.googleapis.com/auth/gmail.metadata";

/// The message less what the gateway puts before it: a Bcc header for the provider, and one Received
/// header.
fn without_own_headers(raw: &[u8]) -> (Option<String>, Vec<u8>) {
    let text = String::from_utf8(raw.to_vec()).unwrap();
    let mut headers = Vec::new();
    let mut rest = text.as_str();
    while rest.starts_with("Bcc:") || (rest.starts_with("Received:") && headers.len() < 2) {
        let end = (1..rest.len())
            .find(|at| {
                rest.as_bytes()[at - 1] == b'\n' && !matches!(rest.as_bytes()[*at], b' ' | b'\t')
            })
            .unwrap();
        headers.push(rest[..end].to_owned());
        rest = &rest[end..];
        if headers.last().unwrap().starts_with("Received:") {
            break;
        }
    }
    assert!(headers.last().unwrap().starts_with("Received: by "));
    // The gateway's, where the client gave none.
    for own in ["X-Mailgate-Id: log_", "Date: ", "Message-ID: <log_"] {
        if rest.starts_with(own) {
            rest = rest.split_once('\n').unwrap().1;
        }
    }
    let bcc = (headers.len() == 2).then(|| headers[0].clone());
    (bcc, rest.as_bytes().to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_message_goes_out_within_json() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), SEND_SCOPE).await;
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["from"], ADDRESS);
    let sent = stand_in.sent();
    assert_eq!(sent.len(), 1);
    assert!(!sent[0].uploaded);
    assert_eq!(sent[0].content_type, "application/json");
    assert_eq!(sent[0].token, "access-1");
    let raw = String::from_utf8(sent[0].raw.clone()).unwrap();
    for line in [
        format!("From: {ADDRESS}\r\n"),
        "To: bob@example.com\r\n".to_owned(),
        format!("Message-ID: {}\r\n", answer["message_id"].as_str().unwrap()),
    ] {
        assert!(raw.contains(&line), "{raw}");
    }
    assert!(!raw.contains("Bcc"), "{raw}");
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    assert_eq!(gateway.spooled().await, 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_message_id_that_gmail_gave_is_told_where_it_may_be_read() {
    for (scope, is_read) in [(FULL_SCOPE, true), (METADATA, true), (SEND_SCOPE, false)] {
        let scopes = format!("{SEND_SCOPE} {scope}");
        let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), &scopes).await;
        stand_in.rename_message_ids();
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 200, "{scope}: {answer}");
        let told = answer["message_id"].as_str().unwrap();
        let is_gmails = told == "<CAF-0@mail.gmail.example>";
        assert_eq!(is_gmails, is_read, "{scope}: {told}");
        let logged: Vec<Option<String>> = sqlx::query_scalar("SELECT message_id FROM email_logs")
            .fetch_all(&mut gateway.database().await)
            .await
            .unwrap();
        assert_eq!(logged, [Some(told.to_owned())]);
        // What can't be read is no failure.
        if is_read {
            stand_in.fail_reading(500, json!({}));
            let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
            assert_eq!((status, &answer["status"]), (200, &json!("sent")));
        }
        assert_eq!(gateway.spooled().await, 0);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blind_copies_go_by_smtp_where_that_is_granted() {
    for (scope, by_smtp) in [(FULL_SCOPE, true), (SEND_SCOPE, false)] {
        let servers = StandIn::start().await;
        let stand_in = GmailStandIn::start().await;
        let mut plugins = stand_in.plugins(scope);
        let plugin = plugins["plugin_b"].as_table_mut().unwrap();
        let with_smtp = servers.plugins();
        for name in ["smtp_host", "smtp_port", "ca_file"] {
            plugin.insert(name.to_owned(), with_smtp["plugin_b"][name].clone());
        }
        let gateway = Gateway::builder().plugins(plugins).start().await;
        stand_in.connect(&gateway).await;
        for bcc in [vec![], vec!["dan@example.com"]] {
            let message = json!({
                "to": "bob@example.com", "bcc": bcc, "subject": "Hello", "body": "It works.",
                "plugin": "plugin_b",
            });
            let (status, answer) = gateway.send(message).await;
            assert_eq!(status, 200, "{answer}");
        }
        let submitted = servers.submission.messages();
        if by_smtp {
            assert_eq!((submitted.len(), stand_in.sent().len()), (1, 1));
            let content = String::from_utf8_lossy(&submitted[0].content).into_owned();
            assert!(!content.contains("dan@example.com"), "{content}");
            assert_eq!(
                submitted[0].recipients,
                ["RCPT TO:<bob@example.com>", "RCPT TO:<dan@example.com>"]
            );
        } else {
            assert_eq!((submitted.len(), stand_in.sent().len()), (0, 2));
        }
        // One message in a transaction for each recipient, as ticket systems and relays submit it.
        let content = format!(
            "From: {ADDRESS}\r\nTo: bob@example.com, eve@example.com\r\nSubject: s\r\n\r\nHi\r\n"
        );
        for recipient in ["bob@example.com", "eve@example.com"] {
            let reply = submit(&gateway, &[recipient], content.as_bytes()).await;
            let expected = if by_smtp { "250 2.0.0" } else { "554 5.6.0" };
            assert!(reply.starts_with(expected), "{reply}");
        }
        let submitted = servers.submission.messages();
        if by_smtp {
            assert_eq!(submitted.len(), 3);
            assert_eq!(submitted[1].recipients, ["RCPT TO:<bob@example.com>"]);
            assert_eq!(submitted[2].recipients, ["RCPT TO:<eve@example.com>"]);
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_message_is_uploaded_as_it_is() {
    let builder = Gateway::builder().set("LIMITS__MESSAGE_BYTES", 40_000_000);
    let (stand_in, gateway) = GmailStandIn::with(builder, SEND_SCOPE).await;
    // About the bound between the two, and well above it.
    for (bytes, uploaded) in [
        (3_490_000, false),
        (3_510_000, true),
        (20_000_000, true),
        (30_000_000, true),
    ] {
        let content = large(bytes);
        let reply = submit(&gateway, &["bob@example.com"], &content).await;
        assert!(reply.starts_with("250 2.0.0"), "{reply}");
        let sent = stand_in.sent().pop().unwrap();
        assert_eq!(sent.uploaded, uploaded, "{bytes}");
        let expected = if uploaded {
            "message/rfc822"
        } else {
            "application/json"
        };
        assert_eq!(sent.content_type, expected);
        let (bcc, rest) = without_own_headers(&sent.raw);
        assert_eq!(bcc, None);
        assert!(
            rest == [&content[..], b"\r\n"].concat(),
            "it arrives as it was"
        );
    }
    assert_eq!(stand_in.sent().len(), 4);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_gmail_takes_in_no_way_is_not_sent() {
    let builder = Gateway::builder().set("LIMITS__MESSAGE_BYTES", 40_000_000);
    let (stand_in, gateway) = GmailStandIn::with(builder, SEND_SCOPE).await;
    let reply = submit(&gateway, &["bob@example.com"], &large(36_700_160)).await;
    assert!(reply.starts_with("554 5.3.4 "), "{reply}");
    assert!(reply.contains("36700160"), "{reply}");
    assert!(stand_in.asked().is_empty());
    assert_eq!(gateway.logged().await[0].0, "failed_perm");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_the_envelope_alone_gets_it_by_bcc() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), SEND_SCOPE).await;
    let content = format!(
        "From: {ADDRESS}\r\nBcc: dan@example.com,\r\n  zoe@example.com\r\n\
         To: Bob <BOB@example.com>\r\nCc: g: carol@example.com;\r\nSubject: s\r\n\r\nBcc: body"
    );
    let envelope = [
        "bob@example.com",
        "carol@example.com",
        "dan@example.com",
        "eve@example.com",
    ];
    let reply = submit(&gateway, &envelope, content.as_bytes()).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let sent = stand_in.sent();
    assert_eq!(sent.len(), 1);
    let (bcc, rest) = without_own_headers(&sent[0].raw);
    assert_eq!(
        bcc.as_deref(),
        Some("Bcc: dan@example.com,\r\n eve@example.com\r\n")
    );
    let rest = String::from_utf8(rest).unwrap();
    assert_eq!(
        rest,
        format!(
            "From: {ADDRESS}\r\nTo: Bob <BOB@example.com>\r\nCc: g: carol@example.com;\r\n\
             Subject: s\r\n\r\nBcc: body\r\n"
        )
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blind_copies_of_the_rest_interface_go_by_bcc() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), SEND_SCOPE).await;
    let (status, answer) = gateway
        .send(json!({
            "to": "Bob@example.com",
            "cc": ["carol@example.com"],
            "bcc": ["dan@example.com"],
            "subject": "Hello",
            "body": "It works.",
            "plugin": "plugin_b",
        }))
        .await;
    assert_eq!(status, 200, "{answer}");
    let raw = String::from_utf8(stand_in.sent()[0].raw.clone()).unwrap();
    let rest = raw.strip_prefix("Bcc: dan@example.com\r\n").expect(&raw);
    assert!(
        !rest.contains("Bcc") && !rest.contains("dan@example.com"),
        "{raw}"
    );
    assert!(rest.contains("To: Bob@example.com\r\n"), "{raw}");
    assert!(rest.contains("Cc: carol@example.com\r\n"), "{raw}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_the_headers_alone_gets_nothing() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), SEND_SCOPE).await;
    let content = format!(
        "From: {ADDRESS}\r\nTo: bob@example.com, carol@example.com\r\nSubject: s\r\n\r\nHi"
    );
    let reply = submit(&gateway, &["bob@example.com"], content.as_bytes()).await;
    assert!(reply.starts_with("554 5.6.0 "), "{reply}");
    assert!(reply.contains("carol@example.com"), "{reply}");
    assert!(stand_in.asked().is_empty());
    // All at once it goes.
    let both = ["bob@example.com", "carol@example.com"];
    let reply = submit(&gateway, &both, content.as_bytes()).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    assert_eq!(stand_in.sent().len(), 1);
    gateway.stop().await;
}
