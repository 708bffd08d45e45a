//! How a mailbox is read: its sent mail by the gateway's own header, its inbox by history.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use mailgate_providers::mail::MailProviders;
use mailgate_providers::mail::reader::{MailReader, NewMail, ReadError};
use mailgate_providers::mail::sent_copy::{Found, Sought};
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_types::clock::{MovedClock, SharedClock};
use mailgate_types::ids::{CredentialId, LogId};
use mailgate_types::plugin::Plugin;
use secrecy::SecretString;
use serde_json::Value;

use super::submit;
use crate::support::automatic_answers::{BY_CALENDAR, answers};
use crate::support::gateway::{Gateway, SEAL_KEY};
use crate::support::gmail_stand_in::{FULL_SCOPE, GmailStandIn, error};
use crate::support::patience::deadline;
use crate::support::sought;
use crate::support::stand_in::{self, ADDRESS};

pub fn reader(stand_in: &GmailStandIn) -> Arc<dyn MailReader> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut environment = vec![
        (
            "DATABASE__URL".to_owned(),
            "postgres://nobody@localhost/none".to_owned(),
        ),
        ("SEAL__KEYS".to_owned(), SEAL_KEY.to_owned()),
        ("SENDING__COMMAND_SECONDS".to_owned(), "5".to_owned()),
    ];
    let plugins = stand_in.plugins(FULL_SCOPE);
    for (name, value) in plugins["plugin_b"].as_table().unwrap() {
        if let Some(value) = value.as_str() {
            let name = format!("PLUGINS__PLUGIN_B__{}", name.to_uppercase());
            environment.push((name, value.to_owned()));
        }
    }
    let environment =
        (environment.into_iter()).map(|(name, value)| (format!("MAILGATE__{name}"), value));
    let settings = mailgate_settings::load_operator(None, environment)
        .unwrap_or_else(|error| panic!("{error}"));
    let clock: SharedClock = Arc::new(MovedClock::default());
    let providers =
        MailProviders::new(&settings.plugins, &settings.sending, "localhost", &clock).unwrap();
    Arc::clone(providers.get(Plugin::B).unwrap().reader.as_ref().unwrap())
}

pub fn account() -> MailboxAccess {
    MailboxAccess {
        credential: CredentialId::at(Utc::now()),
        address: ADDRESS.to_owned(),
        generation: 1,
        access_token: SecretString::from("access-1"),
        scopes: Arc::from([]),
    }
}

pub fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn subjects(new_mail: &NewMail) -> Vec<&str> {
    let messages = new_mail.messages.iter();
    messages.map(|message| message.subject.as_str()).collect()
}

pub fn failure<T>(result: Result<T, ReadError>) -> &'static str {
    match result.err().expect("it fails") {
        ReadError::TokenRefused(_) => "token refused",
        ReadError::Forbidden(_) => "forbidden",
        ReadError::Unexplained(_) => "unexplained",
        ReadError::Unavailable { .. } => "unavailable",
    }
}

#[tokio::test]
async fn who_may_read() {
    let reader = reader(&GmailStandIn::start().await);
    for (scope, expected) in [
        ("https://mail.google.com/", true),
        ("https://www.googleapis.com/auth/gmail.readonly", true),
        ("https://www.googleapis.com/auth/gmail.modify", true),
        ("https://www.googleapis.com/auth/gmail.send", false),
        ("https://www.googleapis.com/auth/gmail.metadata", false),
    ] {
        let scopes = ["openid".to_owned(), scope.to_owned()];
        assert_eq!(reader.may_read(&scopes), expected, "{scope}");
    }
    assert!(!reader.keeps_sent_mail());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sent_message_is_found_by_its_own_header() {
    let (stand_in, gateway) = GmailStandIn::with(Gateway::builder(), FULL_SCOPE).await;
    let id = "<a+b=c/d?e&f#g%h!$*'-^_`~.i@example.com>";
    let content = format!("From: {ADDRESS}\r\nTo: bob@example.com\r\nMessage-ID: {id}\r\n\r\nHi");
    let reply = submit(&gateway, &["bob@example.com"], content.as_bytes()).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    stand_in.receive(&[("Message-ID", "<received@example.com>")], 1);
    let (reader, account) = (reader(&stand_in), account());
    // What a mail client saves of its own.
    stand_in.save_among_sent(b"Message-ID: <copy@example.com>\r\n\r\nHi");
    let ours = gateway.log_id().await;
    let other = LogId::at(Utc::now());
    for (of, message_id, expected) in [
        (ours, id, Found::Message),
        // Gmail may have given it another.
        (ours, "<another@example.com>", Found::Message),
        (ours, "<a b@example.com>", Found::Message),
        (other, id, Found::OtherCopies),
        (other, "<copy@example.com>", Found::OtherCopies),
        (other, "<another@example.com>", Found::Nothing),
        (other, "<received@example.com>", Found::Nothing),
        // What a search would take to pieces may lie there all the same: nothing is said to be absent.
        (other, "<a b@example.com>", Found::Nothing),
    ] {
        let sought = Sought { id: of, message_id };
        let found = reader.find_sent(&account, sought).await.unwrap();
        assert_eq!(found, expected, "{message_id}");
    }
    assert!(!reader.keeps_sent_mail());
    gateway.stop().await;
}

#[tokio::test]
async fn new_mail_is_what_came_since_a_time_and_then_since_the_last_look() {
    let stand_in = GmailStandIn::start().await;
    stand_in.receive(&[("Subject", "old")], 100);
    stand_in.receive(
        &[
            ("Message-ID", "<r1@example.org>"),
            ("From", "Bob <bob@example.org>"),
            ("To", ADDRESS),
            ("Subject", "=?utf-8?q?Gr=C3=BC=C3=9Fe?="),
            ("In-Reply-To", "<m1@example.com>"),
            ("Auto-Submitted", "auto-replied"),
            ("X-Other", "x"),
        ],
        300,
    );
    stand_in.receive(&[("Subject", "b\r\nIn-Reply-To: <forged@x>")], 400);
    let (reader, account) = (reader(&stand_in), account());
    let first = reader
        .new_mail(&account, None, at(200), deadline())
        .await
        .unwrap();
    assert_eq!(subjects(&first), ["Grüße", "b  In-Reply-To: <forged@x>"]);
    let reply = &first.messages[0];
    assert_eq!(reply.message_id.as_deref(), Some("<r1@example.org>"));
    assert_eq!(reply.answers, ["<m1@example.com>"]);
    assert_eq!((&*reply.from, &*reply.to), ("bob@example.org", ADDRESS));
    assert!(reply.automatic);
    assert!(first.messages[1].answers.is_empty());
    assert!(!first.more);

    let look = async |cursor: &str| {
        let looked = reader
            .new_mail(&account, Some(cursor), at(200), deadline())
            .await;
        looked.unwrap()
    };
    let nothing = look(&first.cursor).await;
    assert_eq!(
        (subjects(&nothing), &nothing.cursor),
        (vec![], &first.cursor)
    );
    let lost = stand_in.receive(&[("Subject", "lost")], 500);
    stand_in.receive(&[("Subject", "c")], 600);
    stand_in.lose(&lost);
    let second = look(&first.cursor).await;
    assert_eq!(subjects(&second), ["c"]);
    assert!(!second.more);
    assert!(look(&second.cursor).await.messages.is_empty());

    // A cursor that is too old, and one of another way of reading: as if there were none.
    stand_in.forget_history();
    for stale in [&first.cursor, "7:20"] {
        let again = look(stale).await;
        assert_eq!(subjects(&again).len(), 3, "{stale}");
        assert!(look(&again.cursor).await.messages.is_empty());
    }
}

#[tokio::test]
async fn what_programs_answer_is_told_apart() {
    let stand_in = GmailStandIn::start().await;
    let mut expected = Vec::new();
    for (fields, automatic) in answers() {
        let mut headers = vec![
            ("From", "bob@example.org"),
            ("In-Reply-To", "<m1@example.com>"),
        ];
        headers.extend(fields);
        stand_in.receive(&headers, 300);
        expected.push((fields, automatic));
    }
    let (header, body) = BY_CALENDAR;
    let raw =
        format!("From: bob@example.org\r\nIn-Reply-To: <m1@example.com>\r\n{header}\r\n{body}");
    stand_in.receive_raw("INBOX", raw.as_bytes(), 300);
    expected.push((&[], true));
    let (reader, account) = (reader(&stand_in), account());
    let read = reader.new_mail(&account, None, at(200), deadline()).await;
    let read = read.unwrap().messages;
    assert_eq!(read.len(), expected.len());
    for (message, (fields, automatic)) in read.iter().zip(expected) {
        assert_eq!(message.automatic, automatic, "{fields:?}");
        assert_eq!(message.answers, ["<m1@example.com>"]);
        assert_eq!(message.bounce, None);
    }
}

#[tokio::test]
async fn much_mail_is_read_in_several_looks() {
    let stand_in = GmailStandIn::start().await;
    let (reader, account) = (reader(&stand_in), account());
    let empty = reader
        .new_mail(&account, None, at(0), deadline())
        .await
        .unwrap();
    assert!(empty.messages.is_empty());
    let names: Vec<String> = (0..450).map(|number| format!("m{number}")).collect();
    for name in &names {
        stand_in.receive(&[("Subject", name)], 100);
    }
    let mut read = Vec::new();
    let mut cursor = empty.cursor;
    for more in [true, true, false] {
        let mail = reader
            .new_mail(&account, Some(&cursor), at(0), deadline())
            .await
            .unwrap();
        assert_eq!(mail.more, more);
        assert!(mail.messages.len() <= 200);
        read.extend(mail.messages.into_iter().map(|message| message.subject));
        cursor = mail.cursor;
    }
    assert_eq!(read, names);
    // Without a place to begin at, the newest count.
    let newest = reader
        .new_mail(&account, None, at(0), deadline())
        .await
        .unwrap();
    assert_eq!(subjects(&newest), &names[250..]);
    assert_eq!(newest.cursor, cursor);
}

#[tokio::test]
async fn why_a_mailbox_is_not_read() {
    let stand_in = GmailStandIn::start().await;
    let (reader, account) = (reader(&stand_in), account());
    for (status, reason, expected) in [
        (401, "authError", "token refused"),
        (403, "insufficientPermissions", "forbidden"),
        (400, "failedPrecondition", "unavailable"),
        (403, "accessNotConfigured", "unavailable"),
        (403, "rateLimitExceeded", "unavailable"),
        (429, "rateLimitExceeded", "unavailable"),
        (503, "backendError", "unavailable"),
    ] {
        stand_in.fail_reading(status, error(status, reason, "No", "STATUS"));
        for cursor in [None, Some("1000")] {
            let looked = reader.new_mail(&account, cursor, at(0), deadline()).await;
            assert_eq!(failure(looked), expected, "{status} {reason}");
        }
        let found = reader.find_sent(&account, sought("<a@b>")).await;
        assert_eq!(failure(found), expected, "{status} {reason}");
    }
    // An answer that says nothing says neither yes nor no.
    stand_in.fail_reading(200, Value::Null);
    assert_eq!(
        failure(reader.find_sent(&account, sought("<a@b>")).await),
        "unavailable"
    );
    stand_in.fail_reading(404, Value::Null);
    assert_eq!(
        failure(reader.find_sent(&account, sought("<a@b>")).await),
        "unavailable"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_told() {
    let builder = Gateway::builder().set("MAILBOXES__REPLIES_SECONDS", 1);
    let (stand_in, gateway) = GmailStandIn::with(builder, FULL_SCOPE).await;
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    let original = answer["message_id"].as_str().unwrap();
    stand_in.receive(
        &[
            ("Message-ID", "<answer@example.com>"),
            ("From", "bob@example.com"),
            ("Subject", "Re: Hello"),
            ("In-Reply-To", original),
        ],
        Utc::now().timestamp(),
    );
    gateway
        .eventually("the reply is told", async |gateway| {
            let bodies: Vec<String> =
                sqlx::query_scalar("SELECT body FROM webhook_messages WHERE event = 'email.reply'")
                    .fetch_all(&mut gateway.database().await)
                    .await
                    .unwrap();
            let bodies: Vec<Value> = (bodies.iter())
                .map(|body| serde_json::from_str(body).unwrap())
                .collect();
            bodies.len() == 1 && bodies[0]["data"]["message_id"] == original
        })
        .await;
    gateway.stop().await;
}

pub fn bounce(recipient: &str) -> String {
    format!(
        "Return-Path: <>\r\nFrom: Mail Delivery Subsystem <mailer-daemon@googlemail.com>\r\nTo: {ADDRESS}\r\n\
         Subject: Delivery Status Notification (Failure)\r\nMessage-ID: <{recipient}.b@google.com>\r\n\
         Content-Type: multipart/report; boundary=\"b\"; report-type=delivery-status\r\n\r\n\
         --b\r\n\r\nNobody there\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; googlemail.com\r\n\r\nFinal-Recipient: rfc822; {recipient}\r\nAction: failed\r\n\
         Status: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 no\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n\
         Message-ID: <original@example.com>\r\n\r\nHi\r\n--b--\r\n"
    )
}

pub fn bounced(mail: &NewMail) -> Vec<&str> {
    (mail.messages.iter())
        .filter_map(|message| message.bounce.as_ref())
        .flat_map(|bounce| &bounce.recipients)
        .map(|recipient| recipient.address.as_str())
        .collect()
}

#[tokio::test]
async fn bounces_are_read_in_the_inbox_and_among_the_spam() {
    let stand_in = GmailStandIn::start().await;
    let (reader, account) = (reader(&stand_in), account());
    let receive = |label, message: &str| stand_in.receive_raw(label, message.as_bytes(), 300);
    receive("INBOX", "Subject: one\r\n\r\nHi");
    receive("SPAM", &bounce("a@x.org"));
    receive("SPAM", "Subject: spam\r\n\r\nHi");
    receive("INBOX", &bounce("b@x.org"));
    let first = reader
        .new_mail(&account, None, at(200), deadline())
        .await
        .unwrap();
    assert_eq!(
        (bounced(&first), first.messages.len()),
        (vec!["b@x.org", "a@x.org"], 3)
    );
    assert!(first.messages[1].automatic);
    receive(
        "SPAM",
        "Subject: more spam\r\nIn-Reply-To: <m1@example.com>\r\n\r\nHi",
    );
    receive("SPAM", &bounce("c@x.org"));
    receive("INBOX", "Subject: two\r\n\r\nHi");
    let look = async |cursor: &str| {
        let looked = reader
            .new_mail(&account, Some(cursor), at(200), deadline())
            .await;
        looked.unwrap()
    };
    let second = look(&first.cursor).await;
    assert_eq!(
        (bounced(&second), second.messages.len()),
        (vec!["c@x.org"], 2)
    );
    assert!(look(&second.cursor).await.messages.is_empty());
    // What is no candidate isn't fetched whole.
    let whole = stand_in.asked();
    assert_eq!(
        whole.iter().filter(|asked| asked.ends_with("?raw")).count(),
        3
    );
}

#[tokio::test]
async fn many_bounces_are_read_in_several_looks() {
    let stand_in = GmailStandIn::start().await;
    let (reader, account) = (reader(&stand_in), account());
    let mut cursor = reader
        .new_mail(&account, None, at(0), deadline())
        .await
        .unwrap()
        .cursor;
    for number in 0..150 {
        let label = if number % 3 == 0 { "SPAM" } else { "INBOX" };
        stand_in.receive_raw(label, bounce(&format!("{number}@x.org")).as_bytes(), 100);
    }
    stand_in.receive(&[("Subject", "last")], 100);
    let mut read = Vec::new();
    for (count, more) in [(100, true), (50, false)] {
        let mail = reader
            .new_mail(&account, Some(&cursor), at(0), deadline())
            .await
            .unwrap();
        assert_eq!((bounced(&mail).len(), mail.more), (count, more));
        read.extend(bounced(&mail).into_iter().map(str::to_owned));
        cursor = mail.cursor;
    }
    let expected: Vec<String> = (0..150).map(|number| format!("{number}@x.org")).collect();
    assert_eq!(read, expected);
}
