//! Checks that end before the list does: what was read counts, and the next one goes on behind it. A message that can't
//! be read hides nothing.

use chrono::Utc;
use mailgate_providers::mail::reader::{MailReader, NewMail};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::reading::{account, at, bounce, bounced, failure, reader};
use crate::replies::events;
use crate::support::gateway::Gateway;
use crate::support::gmail_stand_in::{FULL_SCOPE, GmailStandIn, error};
use crate::support::patience::deadline;
use crate::support::stand_in;

/// Bounces of `0@x.org` and so on, every third among the spam, and an ordinary message last; answers their ids.
fn receive(stand_in: &GmailStandIn, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        let label = if number % 3 == 1 { "SPAM" } else { "INBOX" };
        let bounce = bounce(&format!("{number}@x.org"));
        ids.push(stand_in.receive_raw(label, bounce.as_bytes(), 300));
    }
    ids.push(stand_in.receive(&[("Subject", "last")], 300));
    ids
}

/// What is read from a cursor on, in checks that end at `until`: recipients that bounced, other messages' subjects, and
/// how many checks it took.
async fn read_all(
    reader: &dyn MailReader,
    mut cursor: Option<String>,
    until: impl Fn() -> Instant,
) -> (Vec<String>, usize, String) {
    let (mut read, mut checks) = (Vec::new(), 0);
    loop {
        let mail: NewMail = reader
            .new_mail(&account(), cursor.as_deref(), at(200), until())
            .await
            .unwrap();
        checks += 1;
        assert!(checks < 50, "it doesn't end");
        assert_ne!(cursor.as_deref(), Some(&*mail.cursor), "it gets no further");
        for message in &mail.messages {
            match &message.bounce {
                Some(bounce) => read.push(bounce.recipients[0].address.clone()),
                None => read.push(message.subject.clone()),
            }
        }
        if !mail.more {
            return (read, checks, mail.cursor);
        }
        cursor = Some(mail.cursor);
    }
}

/// Where the history begins, and nowhere.
async fn beginnings(reader: &dyn MailReader) -> [Option<String>; 2] {
    let empty = reader
        .new_mail(&account(), None, at(200), deadline())
        .await
        .unwrap();
    assert!(empty.messages.is_empty());
    [Some(empty.cursor), None]
}

fn sorted(mut read: Vec<String>) -> Vec<String> {
    read.sort();
    read
}

fn unavailable() -> Value {
    error(503, "backendError", "Later", "UNAVAILABLE")
}

#[tokio::test]
async fn late_checks_read_each_message_once() {
    let stand_in = GmailStandIn::start().await;
    let reader = reader(&stand_in);
    let [history, time] = beginnings(&*reader).await;
    receive(&stand_in, 6);
    let expected = [
        "0@x.org", "1@x.org", "2@x.org", "3@x.org", "4@x.org", "5@x.org", "last",
    ];
    let (read, checks, end) = read_all(&*reader, history, Instant::now).await;
    assert_eq!((read, checks), (expected.map(str::to_owned).to_vec(), 7));
    let (read, checks, by_time) = read_all(&*reader, time, Instant::now).await;
    assert_eq!(
        (sorted(read), checks),
        (expected.map(str::to_owned).to_vec(), 7)
    );
    assert_eq!(end, by_time);
}

#[tokio::test]
async fn many_bounces_found_by_time_are_all_read() {
    let stand_in = GmailStandIn::start().await;
    let reader = reader(&stand_in);
    receive(&stand_in, 130);
    let (read, checks, _) = read_all(&*reader, None, deadline).await;
    let unique: std::collections::HashSet<&String> = read.iter().collect();
    assert_eq!((read.len(), unique.len(), checks), (131, 131, 2));
}

#[tokio::test]
async fn a_message_that_fails_keeps_what_came_before_it() {
    let stand_in = GmailStandIn::start().await;
    let reader = reader(&stand_in);
    let cursors = beginnings(&*reader).await;
    let ids = receive(&stand_in, 4);
    for cursor in cursors {
        for (end, status, body) in [
            (format!("{}?raw", ids[2]), 503, unavailable()),
            (ids[2].clone(), 503, unavailable()),
            // It was cut off.
            (format!("{}?raw", ids[2]), 200, Value::Null),
        ] {
            stand_in.fail_reading_at(&end, status, body);
            let look = async |cursor: Option<&str>| {
                (reader.new_mail(&account(), cursor, at(200), deadline())).await
            };
            let first = look(cursor.as_deref()).await.unwrap();
            assert!(first.more && !first.messages.is_empty(), "{end}");
            assert_eq!(failure(look(Some(&first.cursor)).await), "unavailable");
            stand_in.heal();
            let rest = look(Some(&first.cursor)).await.unwrap();
            assert!(!rest.more);
            let mut read = [bounced(&first), bounced(&rest)].concat();
            read.sort_unstable();
            assert_eq!(read, ["0@x.org", "1@x.org", "2@x.org", "3@x.org"]);
            assert_eq!(first.messages.len() + rest.messages.len(), 5);
        }
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_read_hides_nothing() {
    let stand_in = GmailStandIn::start().await;
    let reader = reader(&stand_in);
    let cursors = beginnings(&*reader).await;
    let ids = receive(&stand_in, 4);
    let invalid = || {
        error(
            400,
            "invalidArgument",
            "Invalid id value",
            "INVALID_ARGUMENT",
        )
    };
    for (end, status, body, messages) in [
        // Its size was said to be smaller.
        (
            format!("{}?raw", ids[0]),
            200,
            json!({ "raw": "A".repeat(5_000_000) }),
            5,
        ),
        (format!("{}?raw", ids[0]), 200, json!({ "raw": null }), 5),
        (format!("{}?raw", ids[0]), 400, invalid(), 5),
        (format!("{}?raw", ids[0]), 410, json!({}), 5),
        (
            ids[0].clone(),
            200,
            json!({ "payload": "A".repeat(5_000_000) }),
            4,
        ),
        (ids[0].clone(), 400, invalid(), 4),
        (ids[0].clone(), 404, json!({}), 4),
    ] {
        stand_in.fail_reading_at(&end, status, body);
        for cursor in &cursors {
            let mail = reader
                .new_mail(&account(), cursor.as_deref(), at(200), deadline())
                .await
                .unwrap();
            let mut read = bounced(&mail);
            read.sort_unstable();
            assert_eq!(read, ["1@x.org", "2@x.org", "3@x.org"], "{end} {status}");
            assert_eq!((mail.messages.len(), mail.more), (messages, false));
        }
        stand_in.heal();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_do_not_wait_for_a_bounce_that_cannot_be_fetched() {
    let builder = Gateway::builder().set("MAILBOXES__REPLIES_SECONDS", 1);
    let (stand_in, gateway) = GmailStandIn::with(builder, FULL_SCOPE).await;
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    stand_in.fail_reading_at("?raw", 503, unavailable());
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    let original = answer["message_id"].as_str().unwrap();
    let headers = [
        ("Message-ID", "<answer@example.com>"),
        ("From", "bob@example.com"),
        ("In-Reply-To", original),
    ];
    stand_in.receive(&headers, Utc::now().timestamp());
    let bounce = bounce("bob@example.com").replace("<original@example.com>", original);
    stand_in.receive_raw("INBOX", bounce.as_bytes(), Utc::now().timestamp());
    let told = async |name: &str| events(&gateway, name).await.len();
    gateway
        .eventually("the reply", async |_| told("email.reply").await == 1)
        .await;
    assert_eq!(told("email.bounced").await, 0);
    stand_in.heal();
    gateway
        .eventually("the bounce", async |_| told("email.bounced").await == 1)
        .await;
    assert_eq!(told("email.reply").await, 1);
    gateway.stop().await;
}
