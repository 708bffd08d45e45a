//! What is read of a mailbox: sent messages, and what the inbox's changes tell.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use mailgate_providers::mail::MailProviders;
use mailgate_providers::mail::reader::{MailReader, ReadError};
use mailgate_providers::mail::received::Received;
use mailgate_providers::mail::sent_copy::{Found, Sought};
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_types::clock::{MovedClock, SharedClock};
use mailgate_types::ids::{CredentialId, LogId};
use mailgate_types::plugin::Plugin;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::send;
use crate::support::automatic_answers::{BY_CALENDAR, answers};
use crate::support::gateway::SEAL_KEY;
use crate::support::graph_stand_in::{ADDRESS, Call, Fault, GraphStandIn, READ_WRITE};
use crate::support::patience::deadline;
use crate::support::sought;

pub fn reader(stand_in: &GraphStandIn) -> Arc<dyn MailReader> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut environment = vec![
        (
            "MAILGATE__DATABASE__URL".to_owned(),
            "postgres://nobody@localhost/none".to_owned(),
        ),
        ("MAILGATE__SEAL__KEYS".to_owned(), SEAL_KEY.to_owned()),
    ];
    let plugins = stand_in.plugins();
    for (name, value) in plugins["plugin_b"].as_table().unwrap() {
        let name = format!("MAILGATE__PLUGINS__PLUGIN_B__{}", name.to_uppercase());
        // The scopes are the defaults.
        if let Some(value) = value.as_str() {
            environment.push((name, value.to_owned()));
        }
    }
    let settings = mailgate_settings::load_operator(None, environment.into_iter())
        .unwrap_or_else(|error| panic!("{error}"));
    let clock: SharedClock = Arc::new(MovedClock::default());
    let providers =
        MailProviders::new(&settings.plugins, &settings.sending, "localhost", &clock).unwrap();
    Arc::clone(providers.get(Plugin::B).unwrap().reader.as_ref().unwrap())
}

pub fn account(stand_in: &GraphStandIn) -> MailboxAccess {
    MailboxAccess {
        credential: CredentialId::at(Utc::now()),
        address: ADDRESS.to_owned(),
        generation: 1,
        access_token: SecretString::from(stand_in.issue()),
        scopes: READ_WRITE.split(' ').map(str::to_owned).collect(),
    }
}

pub fn entry(number: usize) -> Value {
    json!({
        "@odata.etag": "W/\"CQAAABYAAAB\"",
        "id": format!("AAMk/{number}="),
        "receivedDateTime": format!("2026-01-02T03:{:02}:{:02}Z", number / 60, number % 60),
        "subject": format!("Re: {number}"),
        "internetMessageId": format!("<r{number}@example.org>"),
        "from": {"emailAddress": {"name": "Bob", "address": "bob@example.org"}},
        "toRecipients": [{"emailAddress": {"name": "Dora", "address": ADDRESS}}],
        "internetMessageHeaders": [
            {"name": "In-Reply-To", "value": format!("<m{number}@example.com>")},
        ],
    })
}

pub fn since() -> DateTime<Utc> {
    "2026-01-02T03:00:00Z".parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_read_once_page_after_page() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    let (reader, account) = (reader(&stand_in), account(&stand_in));
    let mut old = entry(0);
    old["receivedDateTime"] = "2025-12-31T23:59:59Z".into();
    stand_in.receive(old);
    stand_in.receive(json!({"id": "gone", "@removed": {"reason": "deleted"}}));
    for number in 1..=230 {
        stand_in.receive(entry(number));
    }
    let mut subjects = Vec::new();
    let mut cursor = None;
    let mut mores = Vec::new();
    for _ in 0..3 {
        let new = reader
            .new_mail(&account, cursor.as_deref(), since(), deadline())
            .await
            .unwrap();
        subjects.extend(new.messages.into_iter().map(|message| message.subject));
        mores.push(new.more);
        cursor = Some(new.cursor);
    }
    assert_eq!(mores, [true, false, false]);
    let expected: Vec<String> = (1..=230).map(|number| format!("Re: {number}")).collect();
    assert_eq!(subjects, expected);
    assert_eq!(stand_in.count(Call::Look), 0);

    // Headers that a change doesn't name are asked for.
    let mut bare = entry(231);
    bare["hidden"] = bare["internetMessageHeaders"].take();
    bare.as_object_mut()
        .unwrap()
        .remove("internetMessageHeaders");
    stand_in.receive(bare);
    let new = reader
        .new_mail(&account, cursor.as_deref(), since(), deadline())
        .await
        .unwrap();
    assert_eq!(new.messages.len(), 1);
    let message = &new.messages[0];
    assert_eq!(message.answers, ["<m231@example.com>"]);
    assert_eq!(message.message_id.as_deref(), Some("<r231@example.org>"));
    assert_eq!((&*message.from, &*message.to), ("bob@example.org", ADDRESS));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_programs_answer_is_told_apart() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    let (reader, account) = (reader(&stand_in), account(&stand_in));
    let mut expected = Vec::new();
    for (number, (fields, automatic)) in answers().enumerate() {
        let mut answer = entry(number);
        let listed = answer["internetMessageHeaders"].as_array_mut().unwrap();
        listed.extend(
            fields
                .iter()
                .map(|(name, value)| json!({"name": name, "value": value})),
        );
        stand_in.receive(answer);
        expected.push((fields, automatic));
    }
    let (header, body) = BY_CALENDAR;
    let mut answer = entry(expected.len());
    let listed = answer["internetMessageHeaders"].as_array_mut().unwrap();
    for line in header.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        listed.push(json!({"name": name, "value": value}));
    }
    let raw = format!("From: bob@example.org\r\n{header}\r\n{body}");
    stand_in.set_whole(answer["id"].as_str().unwrap(), raw.as_bytes());
    stand_in.receive(answer);
    expected.push((&[], true));
    let read = reader.new_mail(&account, None, since(), deadline()).await;
    let read = read.unwrap().messages;
    assert_eq!(read.len(), expected.len());
    for (message, (fields, automatic)) in read.iter().zip(expected) {
        assert_eq!(message.automatic, automatic, "{fields:?}");
        assert!(message.bounce.is_none() && !message.answers.is_empty());
    }
    assert_eq!(stand_in.count(Call::Whole), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_place_is_begun_anew() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    let (reader, account) = (reader(&stand_in), account(&stand_in));
    stand_in.receive(entry(1));
    let first = reader
        .new_mail(&account, None, since(), deadline())
        .await
        .unwrap();
    let cursor = Some(first.cursor.as_str());
    for fault in [
        Fault::error(410, "SyncStateNotFound"),
        Fault::error(410, "resyncRequired"),
        Fault::error(400, "SyncStateInvalid"),
    ] {
        stand_in.once(Call::Delta, fault);
        let again = reader
            .new_mail(&account, cursor, since(), deadline())
            .await
            .unwrap();
        assert_eq!(again.messages, first.messages);
    }
    // A place at another server isn't asked.
    let elsewhere = Some("https://graph.microsoft.com/v1.0/me/delta?$deltatoken=x");
    let again = reader
        .new_mail(&account, elsewhere, since(), deadline())
        .await
        .unwrap();
    assert_eq!(again.messages, first.messages);
    // Nor is one that an answer names.
    let link = r#"{"value":[],"@odata.nextLink":"http://127.0.0.2:9/v1.0/x"}"#;
    stand_in.once(Call::Delta, Fault::answer(200, link));
    let error = reader
        .new_mail(&account, cursor, since(), deadline())
        .await
        .unwrap_err();
    assert!(matches!(error, ReadError::Unavailable { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sent_message_is_found_by_its_own_header() {
    let (stand_in, gateway) = GraphStandIn::with_gateway(READ_WRITE).await;
    let renamed = "<it's@outlook.example>";
    stand_in.rewrite_message_ids(renamed);
    let (status, answer) = send(&gateway).await;
    assert_eq!(status, 200, "{answer}");
    let copy = "<copy@example.com>";
    stand_in.save_among_sent(copy);
    let (reader, account) = (reader(&stand_in), account(&stand_in));
    let ours = gateway.log_id().await;
    let other = LogId::at(Utc::now());
    for (id, message_id, expected) in [
        (ours, renamed, Found::Message),
        (other, renamed, Found::OtherCopies),
        (ours, copy, Found::OtherCopies),
        (ours, "<it's@x.org>", Found::Nothing),
    ] {
        let sought = Sought { id, message_id };
        let found = reader.find_sent(&account, sought).await.unwrap();
        assert_eq!(found, expected, "{message_id}");
    }
    // One that can't be read proves nothing; where it can't be read for now, that is said.
    stand_in.once(Call::Whole, Fault::error(404, "ErrorItemNotFound"));
    let gone = reader.find_sent(&account, sought(renamed)).await.unwrap();
    assert_eq!(gone, Found::OtherCopies);
    stand_in.once(Call::Whole, Fault::error(503, "ErrorServerBusy"));
    let failed = reader.find_sent(&account, sought(renamed)).await;
    assert!(matches!(failed, Err(ReadError::Unavailable { .. })));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    let (reader, account) = (reader(&stand_in), account(&stand_in));
    for call in [Call::SentItems, Call::Delta] {
        let ask = async || match call {
            Call::SentItems => reader
                .find_sent(&account, sought("<m@x.org>"))
                .await
                .map(|_| ()),
            _ => reader
                .new_mail(&account, None, since(), deadline())
                .await
                .map(|_| ()),
        };
        stand_in.once(call, Fault::error(403, "ErrorAccessDenied"));
        assert!(matches!(ask().await, Err(ReadError::Forbidden(_))));
        stand_in.once(call, Fault::error(429, "TooManyRequests").retry_after("17"));
        let Err(ReadError::Unavailable { retry_after, .. }) = ask().await else {
            panic!("it is unavailable");
        };
        assert_eq!(retry_after.map(|wait| wait.as_secs()), Some(17));
        for body in ["<html>", "{}", "[]"] {
            stand_in.once(call, Fault::answer(200, body));
            assert!(
                matches!(ask().await, Err(ReadError::Unavailable { .. })),
                "{body}"
            );
        }
    }
    stand_in.refuse_tokens();
    let refused = reader.find_sent(&account, sought("<m@x.org>")).await;
    assert!(matches!(refused, Err(ReadError::TokenRefused(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lets_it_read() {
    let reader = reader(&GraphStandIn::start(READ_WRITE).await);
    for (scope, may) in [
        ("https://graph.microsoft.com/Mail.ReadWrite", true),
        ("mail.read", true),
        ("Mail.ReadBasic", false),
        ("Mail.Send", false),
    ] {
        assert_eq!(reader.may_read(&[scope.to_owned()]), may, "{scope}");
    }
}

/// A bounce, as a change and in MIME.
pub fn receive_bounce(stand_in: &GraphStandIn, number: usize, is_junk: bool) {
    let mut bounce = entry(number);
    bounce["from"]["emailAddress"]["address"] = "postmaster@outlook.com".into();
    bounce["internetMessageHeaders"] = json!([
        {"name": "Content-Type", "value": "multipart/report; report-type=delivery-status; boundary=\"b\""},
        {"name": "In-Reply-To", "value": "<original@example.com>"},
    ]);
    let mime = format!(
        "From: postmaster@outlook.com\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\
         In-Reply-To: <original@example.com>\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>No</p>\r\n--b\r\n\
         Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns;x\r\n\r\n\
         Final-Recipient: rfc822;{number}@x.org\r\nAction: failed\r\nStatus: 5.1.10\r\n\
         Diagnostic-Code: smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound\r\n\r\n--b--\r\n"
    );
    // As much of it follows as nobody reads.
    let padded = format!("{mime}{}", "x".repeat(3_000_000));
    stand_in.set_whole(bounce["id"].as_str().unwrap(), padded.as_bytes());
    if is_junk {
        stand_in.receive_junk(bounce);
    } else {
        stand_in.receive(bounce);
    }
}

pub fn bounced(messages: &[Received]) -> Vec<&str> {
    (messages.iter())
        .filter_map(|message| message.bounce.as_ref())
        .flat_map(|bounce| &bounce.recipients)
        .map(|recipient| recipient.address.as_str())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bounces_are_read_in_the_inbox_and_among_the_junk() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    let (reader, account) = (reader(&stand_in), account(&stand_in));
    stand_in.receive(entry(1));
    receive_bounce(&stand_in, 2, false);
    stand_in.receive_junk(entry(3));
    receive_bounce(&stand_in, 4, true);
    let first = reader
        .new_mail(&account, None, since(), deadline())
        .await
        .unwrap();
    assert_eq!(
        (bounced(&first.messages), first.messages.len()),
        (vec!["2@x.org", "4@x.org"], 3)
    );
    let bounce = first.messages[1].bounce.as_ref().unwrap();
    assert_eq!(bounce.message_ids, ["<original@example.com>"]);
    assert!(first.messages[1].automatic);
    assert_eq!(stand_in.count(Call::Whole), 2);

    receive_bounce(&stand_in, 5, true);
    let second = reader
        .new_mail(&account, Some(&first.cursor), since(), deadline())
        .await
        .unwrap();
    assert_eq!(
        (bounced(&second.messages), second.messages.len()),
        (vec!["5@x.org"], 1)
    );
    // The last release's place is the inbox's alone: the junk is read by time.
    let (inbox, _) = second.cursor.split_once(' ').unwrap();
    let upgraded = reader
        .new_mail(&account, Some(inbox), since(), deadline())
        .await
        .unwrap();
    assert_eq!(bounced(&upgraded.messages), ["4@x.org", "5@x.org"]);

    // The inbox doesn't wait for the junk, whose place stays.
    stand_in.receive(entry(6));
    receive_bounce(&stand_in, 7, true);
    stand_in.once(Call::JunkDelta, Fault::error(503, "serviceNotAvailable"));
    let third = reader
        .new_mail(&account, Some(&second.cursor), since(), deadline())
        .await
        .unwrap();
    assert_eq!(
        (third.messages.len(), bounced(&third.messages).len()),
        (1, 0)
    );
    let fourth = reader
        .new_mail(&account, Some(&third.cursor), since(), deadline())
        .await
        .unwrap();
    assert_eq!(bounced(&fourth.messages), ["7@x.org"]);
    // One that is gone by now is no bounce, and stops nothing.
    receive_bounce(&stand_in, 8, false);
    stand_in.once(Call::Whole, Fault::error(404, "ErrorItemNotFound"));
    let fifth = reader
        .new_mail(&account, Some(&fourth.cursor), since(), deadline())
        .await
        .unwrap();
    assert_eq!(
        (fifth.messages.len(), bounced(&fifth.messages).len()),
        (1, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_bounces_are_read_in_several_looks() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    let (reader, account) = (reader(&stand_in), account(&stand_in));
    for number in 0..130 {
        receive_bounce(&stand_in, number, false);
    }
    let first = reader
        .new_mail(&account, None, since(), deadline())
        .await
        .unwrap();
    assert_eq!((bounced(&first.messages).len(), first.more), (100, true));
    let second = reader
        .new_mail(&account, Some(&first.cursor), since(), deadline())
        .await
        .unwrap();
    assert_eq!((bounced(&second.messages).len(), second.more), (30, false));
}
