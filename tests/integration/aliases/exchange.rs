//! `proxyAddresses` of Exchange's directory, by the stand-in of Microsoft Graph.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use serde_json::json;

use super::{addresses, is_refused, logged_senders, send, submit, until_they_are};
use crate::support::gateway::Gateway;
use crate::support::graph_stand_in::{ADDRESS, Call, Fault, GraphStandIn, READ_WRITE, SEND_ONLY};

const SALES: &str = "Sales@graph.example";

fn account(proxies: &[&str]) -> serde_json::Value {
    json!({ "mail": ADDRESS, "userPrincipalName": ADDRESS, "proxyAddresses": proxies })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_directory_tells_is_the_mailboxs_at_both_doors() {
    for scope in [READ_WRITE, SEND_ONLY] {
        let stand_in = GraphStandIn::start(scope).await;
        stand_in.set_account(account(&[
            "SMTP:Dora@graph.example",
            "smtp:Sales@graph.example",
            "smtp:sales@GRAPH.example",
            "X500:/o=Example/cn=dora",
            "sip:sip@graph.example",
            "smtp:no address",
            "spo@graph.example",
        ]));
        let gateway = stand_in.connected(Gateway::builder()).await;
        // The look-up of the account has told it already.
        assert_eq!(stand_in.count(Call::Account), 1);
        assert_eq!(addresses(&gateway).await, [ADDRESS, SALES]);
        let (status, answer) = send(&gateway, "Sales <sales@graph.example>").await;
        assert_eq!((status, &answer["from"]), (200, &json!(SALES)), "{answer}");
        let reply = submit(&gateway, "sales@graph.example").await;
        assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
        let sent = stand_in.sent();
        let mime = String::from_utf8_lossy(&sent[0].mime).into_owned();
        assert!(
            mime.contains("From: Sales <Sales@graph.example>\r\n"),
            "{mime}"
        );
        assert_eq!(logged_senders(&gateway).await, [SALES, SALES]);
        for from in ["sip@graph.example", "spo@graph.example", "x@graph.example"] {
            is_refused(&gateway, from).await;
        }
        assert_eq!(stand_in.count(Call::Account), 1);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_read_again_daily_and_after_send_as_denied() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    stand_in.set_account(account(&["smtp:Sales@graph.example"]));
    let gateway = stand_in.connected(Gateway::builder()).await;
    stand_in.set_account(account(&[
        "smtp:new@graph.example",
        "smtp:Sales@graph.example",
    ]));
    gateway.clock.advance(TimeDelta::hours(27));
    until_they_are(&gateway, &[ADDRESS, "new@graph.example", SALES]).await;

    stand_in.set_account(account(&["smtp:new@graph.example"]));
    gateway.clock.advance(TimeDelta::minutes(2));
    stand_in.once(Call::Send, Fault::error(403, "ErrorSendAsDenied"));
    let (status, answer) = send(&gateway, SALES).await;
    assert_eq!(
        (status, &answer["code"]),
        (502, &json!("provider_rejected"))
    );
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("ErrorSendAsDenied"), "{detail}");
    until_they_are(&gateway, &[ADDRESS, "new@graph.example"]).await;
    is_refused(&gateway, SALES).await;

    // What the directory doesn't tell any more isn't believed any longer.
    stand_in.leave_the_directory();
    gateway.clock.advance(TimeDelta::hours(27));
    until_they_are(&gateway, &[ADDRESS]).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_tells_nothing_or_nonsense_connects_all_the_same() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    let many: Vec<String> = (0..10_000)
        .map(|it| format!("smtp:a{it}@graph.example"))
        .collect();
    let gateway = Gateway::builder().plugins(stand_in.plugins()).start().await;
    for (proxies, expected) in [
        (json!(null), 1),
        (json!("smtp:a@graph.example"), 1),
        (
            json!([7, null, ["smtp:a@graph.example"], "smtp:b@graph.example"]),
            2,
        ),
        (
            json!([
                "smtp:a@graph.example\r\nBcc: eve@example.com",
                "smtp:\u{0}@x",
                "smtp:"
            ]),
            1,
        ),
        (json!(many), 201),
    ] {
        let mut account = account(&[]);
        account["proxyAddresses"] = proxies.clone();
        stand_in.set_account(account);
        stand_in.connect(&gateway).await;
        assert_eq!(addresses(&gateway).await.len(), expected);
    }
    // An answer that is too long is asked for once more, without them.
    let long = vec![format!("smtp:{}@graph.example", "a".repeat(1_000)); 5_000];
    let mut account = account(&[]);
    account["proxyAddresses"] = json!(long);
    stand_in.set_account(account);
    stand_in.connect(&gateway).await;
    assert_eq!(addresses(&gateway).await, [ADDRESS]);
    gateway.stop().await;
}

/// Such a message is put together from its fields, of which the sender is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_message_is_sent_as_what_it_says() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    stand_in.set_account(account(&["smtp:Sales@graph.example"]));
    let gateway = stand_in.connected(Gateway::builder()).await;
    let file = STANDARD.encode(vec![7; 4_000_000]);
    for (from, expected) in [
        ("Our Sales <sales@graph.example>", Some(SALES)),
        ("Dora <DORA@graph.example>", None),
    ] {
        let message = json!({
            "to": "bob@example.com", "subject": "s", "body": "b", "from": from,
            "attachments": [{ "filename": "a.bin", "content": file }],
        });
        let (status, answer) = gateway.send(message).await;
        assert_eq!(status, 200, "{answer}");
        let fields = stand_in.sent().pop().unwrap().fields;
        let address = fields["from"]["emailAddress"]["address"].as_str();
        assert_eq!(address, expected, "{fields}");
    }
    gateway.stop().await;
}
