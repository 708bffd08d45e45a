//! Replies to what a mailbox has sent: found by IMAP in Dovecot's mailboxes, told once.

use std::time::SystemTime;

use serde_json::Value;
use sqlx::Connection;

use mailgate_storage::mailboxes::due::note_sent;
use mailgate_storage::replies;
use mailgate_types::ids::{CredentialId, LogId};
use uuid::Uuid;

use crate::peers::Provider;
use crate::peers_end_to_end::{ADA, Encryption, REDIRECT_URI, connect, plugins};
use mailgate_storage::replies::MOST_OF_A_MESSAGE;

use crate::portal::visitor::Visitor;
use crate::support::automatic_answers::{BY_CALENDAR, answers};
use crate::support::gateway::{Builder, Gateway};
use crate::support::gmail_stand_in::{FULL_SCOPE, GmailStandIn};
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::stand_in::{self, ADDRESS, StandIn};

pub const BOB: &str = "bob@provider.test";

/// Settings of a gateway that reads its mailboxes by IMAP, often.
pub fn reading(builder: Builder, provider: &Provider) -> Builder {
    let mut plugins = plugins(provider, Encryption::StartTls);
    let plugin = plugins["plugin_b"].as_table_mut().unwrap();
    plugin.insert("imap_host".to_owned(), provider.smtp_host.clone().into());
    plugin.insert(
        "imap_port".to_owned(),
        i64::from(provider.imaps_port).into(),
    );
    builder
        .plugins(plugins)
        .set("MAILBOXES__REPLIES_SECONDS", 1)
}

/// The peers, and a gateway at which both have connected their mailboxes.
pub async fn start() -> (Provider, Gateway) {
    let provider = Provider::start(REDIRECT_URI).await;
    let gateway = reading(Gateway::builder(), &provider).start().await;
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/', multilink = true")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    for account in [ADA, BOB] {
        connect(&provider, &gateway, account).await;
    }
    (provider, gateway)
}

/// Submits a message between the two; answers its Message-ID.
pub async fn submit(gateway: &Gateway, from: &str, to: &str, id: &str, headers: &str) -> String {
    let id = format!("<{id}@provider.test>");
    let mut client = SmtpClient::authenticated(gateway).await;
    let content = format!(
        "From: {from}\r\nTo: {to}\r\nMessage-ID: {id}\r\nSubject: {id}\r\n{headers}\r\nHi\r\n"
    );
    let reply = client.submit(to, content.as_bytes()).await;
    assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
    id
}

async fn told_replies(gateway: &Gateway) -> Vec<Value> {
    events(gateway, "email.reply").await
}

/// The bodies of all events of this name.
pub async fn events(gateway: &Gateway, name: &str) -> Vec<Value> {
    let mut database = gateway.database().await;
    let bodies: Vec<String> =
        sqlx::query_scalar("SELECT body FROM webhook_messages WHERE event = $1 ORDER BY id")
            .bind(name)
            .fetch_all(&mut database)
            .await
            .unwrap();
    database.close().await.unwrap();
    bodies
        .iter()
        .map(|body| serde_json::from_str(body).unwrap())
        .collect()
}

async fn told(gateway: &Gateway, count: usize) -> Vec<Value> {
    gateway
        .eventually("the replies", async |gateway| {
            told_replies(gateway).await.len() >= count
        })
        .await;
    told_replies(gateway).await
}

/// Waits until a mailbox has been looked into from now on.
pub async fn looked(gateway: &Gateway) {
    let looks = async |gateway: &Gateway| -> Vec<(String, Option<chrono::DateTime<chrono::Utc>>)> {
        sqlx::query_as(
            "SELECT email, replies_due_at FROM mailboxes WHERE replies_due_at IS NOT NULL",
        )
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
    };
    // One look may be under way, so it takes two.
    for _ in 0..2 {
        let before = looks(gateway).await;
        gateway
            .eventually("a look into each mailbox", async |gateway| {
                let now = looks(gateway).await;
                before.iter().all(|look| !now.contains(look))
            })
            .await;
    }
}

/// A provider may deliver a message, and its recipient answer, before it says that it took it.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_still_being_sent_can_be_answered() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    stand_in.submission.once(Stage::Content, Answer::Hang);
    let answered = async {
        gateway
            .eventually("the message", async |_| {
                !stand_in.submission.messages().is_empty()
            })
            .await;
        let mut database = gateway.database().await;
        let open = "SELECT id, credential_id, message_id FROM spool";
        let (id, mailbox, message_id): (Uuid, Uuid, String) =
            sqlx::query_as(open).fetch_one(&mut database).await.unwrap();
        let mailbox = CredentialId(mailbox);
        let found = replies::answered(&mut database, mailbox, &[&message_id]).await;
        (id, found.unwrap())
    };
    let (id, found) = tokio::select! {
        told = stand_in::send(&gateway, BOB) => panic!("told before its end: {told:?}"),
        answered = answered => answered,
    };
    assert_eq!(gateway.logged().await, []);
    let found: Vec<LogId> = found.iter().map(|answered| answered.log).collect();
    assert_eq!(found, [LogId(id)]);
    stand_in.submission.close_connections();
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_told_once_over_replicas_and_restarts() {
    let (provider, gateway) = start().await;
    let original = submit(&gateway, ADA, BOB, "original", "").await;
    // Bob's mailbox answers by SMTP, and Postfix hands it to Dovecot.
    let answer = format!("In-Reply-To: {original}\r\nReferences: {original}\r\n");
    submit(&gateway, BOB, ADA, "answer", &answer).await;
    let events = told(&gateway, 1).await;
    assert_eq!(events.len(), 1, "{events:?}");
    let data = &events[0]["data"];
    assert_eq!(data["message_id"], original.as_str());
    assert_eq!(data["from_address"], BOB);
    assert_eq!(data["to_address"], ADA);
    assert_eq!(data["subject"], "<answer@provider.test>");

    let logged: Vec<(String, Option<String>)> = sqlx::query_as(
        "SELECT reply.from_address, log.message_id
         FROM message_replies AS reply JOIN email_logs AS log ON log.id = reply.log_id",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap();
    assert_eq!(logged, [(BOB.to_owned(), Some(original.clone()))]);
    let visitor = Visitor::signed_in(&gateway).await;
    let search = format!("/portal/messages?to_address={BOB}");
    let found = visitor.get(&search).await.text;
    let (_, rest) = found.split_once("href=\"/portal/messages/log_").unwrap();
    let log_id = rest.split('"').next().unwrap();
    let page = visitor.get(&format!("/portal/messages/log_{log_id}")).await;
    assert!(
        page.text.contains(&format!("Reply from {BOB}")),
        "{}",
        page.text
    );

    // Another process, which also sees all that was there, and nothing new.
    let replica = reading(gateway.replica(), &provider).start().await;
    provider.number_anew(ADA, "INBOX", 4_711).await;
    looked(&gateway).await;
    assert_eq!(told_replies(&gateway).await.len(), 1);
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_reply_is_not_told() {
    let (provider, gateway) = start().await;
    let original = submit(&gateway, ADA, BOB, "original", "").await;
    let put = |headers: &str| {
        let message = format!("{headers}To: {ADA}\r\nSubject: x\r\n\r\nHi\r\n");
        provider.put(ADA, "INBOX", &[message], SystemTime::now());
    };
    put(&format!(
        "From: {BOB}\r\nMessage-ID: <1@b>\r\nIn-Reply-To: {original}\r\nAuto-Submitted: auto-replied\r\n"
    ));
    put(&format!(
        "From: Ada <{}>\r\nMessage-ID: <2@b>\r\nIn-Reply-To: {original}\r\n",
        ADA.to_uppercase()
    ));
    put(&format!(
        "From: {BOB}\r\nMessage-ID: <3@b>\r\nIn-Reply-To: <somebody-elses@provider.test>\r\n"
    ));
    put(&format!("From: {BOB}\r\nMessage-ID: <4@b>\r\n"));
    gateway
        .eventually("the first look", async |gateway| {
            let due: Option<chrono::DateTime<chrono::Utc>> =
                sqlx::query_scalar("SELECT max(replies_due_at) FROM mailboxes")
                    .fetch_one(&mut gateway.database().await)
                    .await
                    .unwrap();
            due.is_some()
        })
        .await;
    looked(&gateway).await;
    assert_eq!(told_replies(&gateway).await, [] as [Value; 0]);
    // The same message twice in the mailbox is one reply, and one by References alone is one too.
    let twice = format!("From: {BOB}\r\nMessage-ID: <5@b>\r\nIn-Reply-To: {original}\r\n");
    put(&twice);
    put(&twice);
    put(&format!(
        "From: {BOB}\r\nMessage-ID: <6@b>\r\nReferences: <x@y> {original}\r\n"
    ));
    assert_eq!(told(&gateway, 2).await.len(), 2);
    looked(&gateway).await;
    assert_eq!(told_replies(&gateway).await.len(), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_people_are_told_however_they_are_written() {
    let (provider, gateway) = start().await;
    let original = submit(&gateway, ADA, BOB, "original", "").await;
    let put = |id: &str, headers: &str, body: &str| {
        let message =
            format!("From: {BOB}\r\nTo: {ADA}\r\nMessage-ID: <{id}@b>\r\n{headers}\r\n{body}");
        provider.put(ADA, "INBOX", &[message], SystemTime::now());
    };
    let mut expected = Vec::new();
    for (number, (fields, automatic)) in answers().enumerate() {
        let subject = format!("answer {number}");
        let lines = fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let mut headers = format!("In-Reply-To: {original}\r\n");
        headers.extend(lines);
        if !headers.contains("Subject:") {
            headers.extend(["Subject: ", &subject, "\r\n"]);
        }
        put(&number.to_string(), &headers, "x\r\n");
        if !automatic {
            expected.push(subject);
        }
    }
    let (header, body) = BY_CALENDAR;
    put(
        "calendar",
        &format!("In-Reply-To: {original}\r\n{header}"),
        body,
    );
    let thread: Vec<String> = (0..59).map(|number| format!("<m{number}@x.org>")).collect();
    let thread = thread.join("\r\n ");
    for (subject, answered) in [
        // neomutt/neomutt#2315, python/cpython#79986
        (
            "encoded",
            "In-Reply-To: =?utf-8?q?=3Coriginal=40provi?=\r\n =?utf-8?q?der=2Etest=3E?=".to_owned(),
        ),
        (
            "folded",
            "In-Reply-To: <original@provider\r\n .test>".to_owned(),
        ),
        ("begun", format!("References: {original}\r\n {thread}")),
        ("ended", format!("References: {thread}\r\n {original}")),
    ] {
        put(
            subject,
            &format!("{answered}\r\nSubject: {subject}\r\n"),
            "x\r\n",
        );
        expected.push(subject.to_owned());
    }
    // RFC 2047 §6.2
    let words = "=?UTF-8?Q?pasi=C5=BEad=C4?=\r\n =?UTF-8?Q?=97jim?=";
    put(
        "words",
        &format!("In-Reply-To: {original}\r\nSubject: {words}\r\n"),
        "x\r\n",
    );
    expected.push("pasi\u{17e}ad\u{117}jim".to_owned());
    told(&gateway, expected.len()).await;
    looked(&gateway).await;
    let events = told_replies(&gateway).await;
    let mut subjects: Vec<&str> = events
        .iter()
        .map(|event| event["data"]["subject"].as_str().unwrap())
        .collect();
    subjects.sort_unstable();
    expected.sort_unstable();
    assert_eq!(subjects, expected);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_may_be_read_says_so() {
    let (_provider, gateway) = start().await;
    let secret: String = {
        let found = (gateway.daemon.accounts)
            .app_credentials(gateway.app.id)
            .await
            .unwrap();
        found.unwrap().api_secret.expose().to_owned()
    };
    let path = format!(
        "{}/apps/{}",
        gateway.daemon.base_url,
        gateway.app.pushable_key.expose()
    );
    let request = gateway.http.get(path).header("x-api-secret", secret);
    let app: Value = request.send().await.unwrap().json().await.unwrap();
    let shown: Vec<(&str, bool)> = app["users"]
        .as_array()
        .unwrap()
        .iter()
        .map(|user| {
            let tracked = user["reply_tracking"].as_bool().unwrap();
            (user["plugin"].as_str().unwrap(), tracked)
        })
        .collect();
    // The sandbox has no IMAP.
    assert_eq!(
        shown,
        [("plugin_a", false), ("plugin_b", true), ("plugin_b", true)]
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_whose_row_is_locked_is_told_apart_from_those_recorded_as_sending() {
    let gateway = Gateway::start().await;
    let (id, now) = (gateway.mailbox.credential, chrono::Utc::now());
    let mut other = gateway.database().await;
    let mut holder = other.begin().await.unwrap();
    sqlx::query("SELECT id FROM mailboxes FOR NO KEY UPDATE")
        .execute(&mut *holder)
        .await
        .unwrap();
    let mut database = gateway.database().await;
    let locked = note_sent(&mut database, &[id], now).await.unwrap();
    assert_eq!(locked, [id]);
    holder.rollback().await.unwrap();
    let locked = note_sent(&mut database, &[id], now).await.unwrap();
    assert_eq!(locked, []);
    let noted: bool = sqlx::query_scalar("SELECT last_sent_at IS NOT NULL FROM mailboxes")
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert!(noted);
    gateway.stop().await;
}

/// Whoever has got a message may answer it as often as they like.
#[tokio::test(flavor = "multi_thread")]
async fn one_message_has_a_bounded_number_of_replies() {
    let builder = Gateway::builder().set("MAILBOXES__REPLIES_SECONDS", 1);
    let (stand_in, gateway) = GmailStandIn::with(builder, FULL_SCOPE).await;
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let first = submit(&gateway, ADDRESS, BOB, "first", "").await;
    let second = submit(&gateway, ADDRESS, BOB, "second", "").await;
    let now = chrono::Utc::now().timestamp();
    let answer = |id: String, original: &str| {
        let headers = [
            ("Message-ID", id.as_str()),
            ("From", BOB),
            ("In-Reply-To", original),
        ];
        stand_in.receive(&headers, now);
    };
    let some = async |number: usize| {
        gateway
            .eventually("the replies", async |gateway| {
                told_replies(gateway).await.len() >= number
            })
            .await;
    };
    // As many as leave room for a hundred.
    sqlx::query(
        "INSERT INTO message_replies (log_id, key, from_address, replied_at)
         SELECT id, 'earlier ' || number, $2, now()
         FROM email_logs, generate_series(1, $3) AS number WHERE message_id = $1",
    )
    .bind(&first)
    .bind(BOB)
    .bind(i32::try_from(MOST_OF_A_MESSAGE).unwrap() - 100)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    // Over several looks, and within one.
    for number in 0..60 {
        answer(format!("<a{number}@example.org>"), &first);
    }
    some(60).await;
    for number in 0..200 {
        answer(format!("<b{number}@example.org>"), &first);
    }
    some(100).await;
    for number in 0..3 {
        answer(format!("<c{number}@example.org>"), &first);
        answer(format!("<d{number}@example.org>"), &second);
        some(101 + number).await;
    }
    looked(&gateway).await;
    assert_eq!(told_replies(&gateway).await.len(), 103);
    for (query, expected) in [
        (
            "SELECT count(*) FROM message_replies",
            MOST_OF_A_MESSAGE + 3,
        ),
        ("SELECT count(*) FROM replies", 103),
        (
            "SELECT count(*) FROM message_replies GROUP BY log_id ORDER BY 1 DESC LIMIT 1",
            MOST_OF_A_MESSAGE,
        ),
    ] {
        let count: i64 = sqlx::query_scalar(query)
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        assert_eq!(count, expected, "{query}");
    }
    gateway.stop().await;
}
