//! From a notification in a mailbox to the app: read by IMAP in Dovecot's mailboxes.

use std::fmt::Write as _;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::peers::Provider;
use crate::peers_end_to_end::ADA;
use crate::replies::{BOB, events, looked, reading, start, submit};
use crate::support::caller::{Caller, path};
use crate::support::gateway::Gateway;

/// A notification of RFC 3464 with these recipients (address, action, status), about the message with this Message-ID.
fn notification(id: &str, original: &str, recipients: &[(&str, &str, &str)]) -> String {
    let mut fields = String::new();
    for (address, action, status) in recipients {
        let _ = write!(
            fields,
            "Final-Recipient: rfc822; {address}\r\nAction: {action}\r\nStatus: {status}\r\n\
             Diagnostic-Code: smtp; 550 {status} no\r\n\r\n"
        );
    }
    format!(
        "Return-Path: <>\r\nFrom: MAILER-DAEMON@provider.test\r\nTo: {ADA}\r\n\
         Message-ID: <{id}@provider.test>\r\nSubject: Undelivered\r\nMIME-Version: 1.0\r\n\
         Auto-Submitted: auto-replied\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain\r\n\r\nIt did not arrive.\r\n\
         --b\r\nContent-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; mx.provider.test\r\n\r\n{fields}\
         --b\r\nContent-Type: text/rfc822-headers\r\n\r\n\
         Message-ID: {original}\r\nFrom: {ADA}\r\nSubject: x\r\n\r\n--b--\r\n"
    )
}

async fn bounced(gateway: &Gateway) -> Vec<Value> {
    events(gateway, "email.bounced").await
}

async fn told(gateway: &Gateway, count: usize) -> Vec<Value> {
    gateway
        .eventually("the bounces", async |gateway| {
            bounced(gateway).await.len() >= count
        })
        .await;
    bounced(gateway).await
}

fn put(provider: &Provider, messages: &[String]) {
    provider.put(ADA, "INBOX", messages, SystemTime::now());
}

/// Recipients and types of a message's bounces.
fn shown(log: &Value) -> Vec<(&str, &str)> {
    let bounces = log["bounces"].as_array().unwrap();
    bounces
        .iter()
        .map(|bounce| {
            let field = |name: &str| bounce[name].as_str().unwrap();
            (field("to_address"), field("bounce_type"))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_recipient_of_each_notification_is_reported_once() {
    let (provider, gateway) = start().await;
    let caller = Caller::owner(&gateway).await;
    let original = submit(&gateway, ADA, BOB, "original", "").await;
    let delayed = notification("delayed", &original, &[(BOB, "delayed", "4.4.1")]);
    put(&provider, &[delayed]);
    let first = told(&gateway, 1).await;
    let data = &first[0]["data"];
    let log_id = data["log_id"].as_str().unwrap();
    assert_eq!(data["message_id"], original.as_str());
    assert_eq!(data["from_address"], ADA);
    assert_eq!(data["to_address"], BOB);
    assert_eq!(data["subject"], "<original@provider.test>");
    assert_eq!(data["plugin"], "plugin_b");
    assert_eq!(data["bounce_type"], "temporary");
    assert_eq!(data["status"], "4.4.1");
    let log = async || caller.get(&format!("/logs/{log_id}")).await.success(200);
    let waiting = log().await;
    assert_eq!(
        (&waiting["status"], &waiting["bounced"]),
        (&json!("sent"), &json!(false))
    );
    assert_eq!(shown(&waiting), [(BOB, "temporary")]);
    assert_eq!(waiting["explanation"], Value::Null, "it may still arrive");

    // Then it fails, for him and for the one that his mail is forwarded to.
    let failed = notification(
        "failed",
        &original,
        &[
            (BOB, "failed", "5.1.1"),
            ("forwarded@elsewhere.test", "failed", "5.7.1"),
        ],
    );
    put(&provider, std::slice::from_ref(&failed));
    assert_eq!(told(&gateway, 3).await.len(), 3);
    let final_one = log().await;
    assert_eq!(
        (&final_one["status"], &final_one["bounced"]),
        (&json!("sent"), &json!(true))
    );
    assert_eq!(
        shown(&final_one),
        [
            (BOB, "temporary"),
            (BOB, "permanent"),
            ("forwarded@elsewhere.test", "permanent")
        ]
    );
    let meaning = final_one["explanation"]["meaning"].as_str().unwrap();
    assert!(meaning.contains("does not exist"), "{meaning}");
    // Only whom it was sent to counts as one that mail doesn't reach.
    let suppressions = format!("{}/suppressions", path(&gateway.app));
    let list = caller.get(&suppressions).await.success(200);
    assert_eq!(list["total"], 1);
    assert_eq!(list["suppressions"][0]["to_address"], BOB);
    assert_eq!(list["suppressions"][0]["log_id"], log_id);
    let stats = caller.get("/stats").await.success(200);
    assert_eq!(stats["total_emails_sent"], 1);
    assert_eq!(stats["total_emails_bounced"], 1);

    // The same notification again, a replica, and a mailbox that is read from its beginning.
    let replica = reading(gateway.replica(), &provider).start().await;
    put(&provider, &[failed]);
    provider.number_anew(ADA, "INBOX", 4_711).await;
    looked(&gateway).await;
    assert_eq!(bounced(&gateway).await.len(), 3);
    assert_eq!(shown(&log().await).len(), 3);
    replica.stop().await;
    gateway.stop().await;
}

/// A server quotes an address, and writes its domain in ASCII, as it likes.
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_is_the_same_in_every_spelling() {
    let (provider, gateway) = start().await;
    let caller = Caller::owner(&gateway).await;
    let suppress = json!({ "suppress_bounced": true });
    caller
        .put(&path(&gateway.app), &suppress)
        .await
        .success(200);
    let send = async |to: &str| {
        let fields = json!({ "from": ADA, "to": to, "subject": "Hello", "body": "Hi." });
        gateway.send(fields).await
    };
    for (number, (given, reported)) in [
        ("try..this@provider.test", "\"try..this\"@provider.test"),
        ("\"a..b\"@provider.test", "a..b@provider.test"),
        ("\"plain\"@provider.test", "plain@provider.test"),
        ("carol@b\u{fc}cher.example", "carol@xn--bcher-kva.example"),
        ("dave@xn--bcher-kva.example", "dave@b\u{fc}cher.example"),
        ("Eve@B\u{dc}CHER.example", "eve@b\u{fc}cher.example"),
    ]
    .into_iter()
    .enumerate()
    {
        let (status, first) = send(given).await;
        assert_eq!(status, 200, "{given}: {first}");
        let original = first["message_id"].as_str().unwrap();
        let failed = [(reported, "failed", "5.1.1")];
        put(
            &provider,
            &[notification(&number.to_string(), original, &failed)],
        );
        let told = told(&gateway, number + 1).await;
        assert_eq!(
            told[number]["data"]["to_address"], given,
            "as the app wrote it"
        );
        for spelling in [given, reported] {
            let (status, answer) = send(spelling).await;
            assert_eq!(
                (status, &answer["code"]),
                (422, &json!("recipient_suppressed")),
                "{spelling}"
            );
            assert_eq!(answer["errors"][0]["field"], "to", "{answer}");
            let mut wanted = url::form_urlencoded::Serializer::new(String::new());
            wanted.append_pair("to_address", spelling);
            let list = format!("{}/suppressions?{}", path(&gateway.app), wanted.finish());
            assert_eq!(
                caller.get(&list).await.success(200)["total"],
                1,
                "{spelling}"
            );
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_one_is_about_the_forgers_own_mail_or_nothing() {
    let (provider, gateway) = start().await;
    let caller = Caller::owner(&gateway).await;
    let original = submit(&gateway, ADA, BOB, "original", "").await;
    // Bob's own message, which bounces in Ada's mailbox; one that nobody has sent.
    let other = submit(&gateway, BOB, ADA, "other", "").await;
    let failed = [(BOB, "failed", "5.1.1")];
    let to_ada = [(ADA, "failed", "5.1.1")];
    put(
        &provider,
        &[
            notification("1", &other, &to_ada),
            notification("2", "<nobody@provider.test>", &failed),
            notification("3", "", &failed),
        ],
    );
    // One that is genuine comes after them.
    put(&provider, &[notification("4", &original, &failed)]);
    let events = told(&gateway, 1).await;
    looked(&gateway).await;
    assert_eq!(bounced(&gateway).await.len(), 1, "{events:?}");
    assert_eq!(events[0]["data"]["message_id"], original.as_str());

    // However many there are of one message, so many are believed.
    let many: Vec<String> = (0..120)
        .map(|number| notification(&format!("many{number}"), &original, &failed))
        .collect();
    put(&provider, &many);
    told(&gateway, 100).await;
    looked(&gateway).await;
    looked(&gateway).await;
    assert_eq!(bounced(&gateway).await.len(), 100);
    let delayed = notification("delayed", &original, &[(BOB, "delayed", "4.4.1")]);
    put(&provider, &[delayed]);
    assert_eq!(told(&gateway, 101).await.len(), 101);
    let stats = caller.get("/stats").await.success(200);
    assert_eq!(stats["total_emails_bounced"], 1);
    let page = caller.get("/logs?bounced=true").await.success(200);
    assert_eq!(
        (&page["total"], &page["has_more"]),
        (&json!(1), &json!(false))
    );
    let others = caller.get("/logs?bounced=false").await.success(200);
    assert_eq!(others["logs"][0]["message_id"], other.as_str());
    assert_eq!(others["total"], 1);
    assert!(
        crate::replies::events(&gateway, "email.reply")
            .await
            .is_empty()
    );
    gateway.stop().await;
}
