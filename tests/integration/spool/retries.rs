//! Temporary failures: the message is kept and tried again, to its end.

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_storage::spool::{Room, claim_due};
use mailgate_types::clock::Clock;
use mailgate_types::ids::{AppId, GatewayId};
use serde_json::json;
use sqlx::{AssertSqlSafe, Executor};
use uuid::Uuid;

use super::{advance_to, advance_to_next_attempt, chunks, deferred, emptied, logged_once};
use crate::support::gateway::{Gateway, create_app};
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::stand_in::{self, ADDRESS, StandIn};

const LATER: &str = "451 4.3.0 Try again later";

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_failure_is_tried_again_and_sent_once() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    stand_in.submission.once(Stage::Rcpt, Answer::reply(LATER));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(answer["status"], "failed_temp");
    assert_eq!(answer["retry_count"], 1);
    assert!(
        answer["error"].as_str().unwrap().contains(LATER),
        "{answer}"
    );
    let promised: DateTime<Utc> = answer["next_retry_at"].as_str().unwrap().parse().unwrap();
    let waiting = deferred(&gateway).await.unwrap();
    assert!((waiting.next_attempt_at - promised).abs() < TimeDelta::milliseconds(2));
    assert_eq!(
        logged_once(&gateway).await,
        ("failed_temp".to_owned(), LATER.to_owned())
    );
    assert!(!chunks(&gateway).await.is_empty());
    let before = log_row(&gateway).await;
    assert_eq!(before.0, waiting.id);

    advance_to_next_attempt(&gateway).await;
    emptied(&gateway).await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    assert_eq!(log_row(&gateway).await, before);
    assert!(chunks(&gateway).await.is_empty());
    let messages = stand_in.submission.messages();
    assert_eq!(messages.len(), 1);
    let message_id = answer["message_id"].as_str().unwrap();
    let content = String::from_utf8_lossy(&messages[0].content).into_owned();
    assert!(content.contains(message_id), "{content}");
    assert_eq!(messages[0].recipients, ["RCPT TO:<bob@example.com>"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schedule_is_kept_to_until_its_end() {
    let schedule = [60, 300, 900];
    let builder = Gateway::builder().set("SENDING__RETRY_SECONDS", "60,300,900");
    let (stand_in, gateway) = StandIn::with(builder).await;
    stand_in
        .submission
        .always(Stage::Rcpt, Answer::reply(LATER));
    let mut began = gateway.clock.now();
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 202, "{answer}");
    for (attempts, seconds) in (1..).zip(schedule) {
        gateway
            .eventually("the attempt", async |gateway| {
                let waiting = deferred(gateway).await;
                waiting.is_some_and(|waiting| waiting.attempts == attempts)
            })
            .await;
        let ended = gateway.clock.now();
        let next = deferred(&gateway).await.unwrap().next_attempt_at;
        let wait = TimeDelta::seconds(seconds);
        // Up to a tenth of jitter; the database keeps microseconds.
        assert!(
            next >= began + wait - TimeDelta::milliseconds(1),
            "{attempts}"
        );
        assert!(next <= ended + wait + wait / 10, "{attempts}");
        assert_eq!(logged_once(&gateway).await.0, "failed_temp");
        began = next;
        advance_to(&gateway, next);
    }
    emptied(&gateway).await;
    assert_eq!(
        logged_once(&gateway).await,
        ("failed_perm".to_owned(), LATER.to_owned())
    );
    assert_eq!(stand_in.submission.count("RCPT"), schedule.len() + 1);
    assert!(stand_in.submission.messages().is_empty());
    assert!(chunks(&gateway).await.is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_for_good_ends_the_retries() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    stand_in.submission.once(Stage::Rcpt, Answer::reply(LATER));
    let gone = "550 5.1.1 No such user";
    stand_in.submission.always(Stage::Rcpt, Answer::reply(gone));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 202, "{answer}");
    advance_to_next_attempt(&gateway).await;
    emptied(&gateway).await;
    assert_eq!(
        logged_once(&gateway).await,
        ("failed_perm".to_owned(), gone.to_owned())
    );
    assert_eq!(stand_in.submission.count("RCPT"), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_day_is_waited_for() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let words = "550 5.4.5 Daily user sending limit exceeded";
    stand_in
        .submission
        .once(Stage::Content, Answer::reply(words));
    let began = gateway.clock.now();
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 202, "{answer}");
    assert!(
        answer["error"].as_str().unwrap().contains(words),
        "{answer}"
    );
    let waiting = deferred(&gateway).await.unwrap();
    assert!(waiting.next_attempt_at >= began + TimeDelta::hours(1));
    advance_to_next_attempt(&gateway).await;
    emptied(&gateway).await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_suspended_subscription_is_kept_until_it_is_paid() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    stand_in.submission.once(Stage::Rcpt, Answer::reply(LATER));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 202, "{answer}");
    let due = deferred(&gateway).await.unwrap().next_attempt_at;
    subscription(&gateway, "past_due").await;
    advance_to(&gateway, due);
    gateway
        .eventually("the postponement", async |gateway| {
            let waiting = deferred(gateway).await;
            waiting.is_some_and(|waiting| waiting.next_attempt_at > due)
        })
        .await;
    assert_eq!(deferred(&gateway).await.unwrap().attempts, 1);
    let (status, error) = logged_once(&gateway).await;
    assert_eq!(status, "failed_temp");
    assert!(error.contains("past_due"), "{error}");
    assert_eq!(stand_in.submission.count("RCPT"), 1);

    // It would have waited for an hour.
    subscription(&gateway, "active").await;
    emptied(&gateway).await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    assert_eq!(stand_in.submission.messages().len(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_subscription_that_never_comes_back_fails_at_last() {
    let builder = Gateway::builder().set("SENDING__MAXIMUM_AGE_SECONDS", 7_200);
    let (stand_in, gateway) = StandIn::with(builder).await;
    stand_in.submission.once(Stage::Rcpt, Answer::reply(LATER));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 202, "{answer}");
    let opened = log_row(&gateway).await.1;
    subscription(&gateway, "past_due").await;
    // It waits an hour each time, and at last for as long as it may.
    let mut waits = 0;
    gateway
        .eventually("the message's end", async |gateway| {
            let next = deferred(gateway)
                .await
                .map(|waiting| waiting.next_attempt_at);
            if let Some(next) = next.filter(|next| *next > gateway.clock.now()) {
                assert!(next <= opened + TimeDelta::seconds(7_200), "{next}");
                waits += 1;
                advance_to(gateway, next);
            }
            gateway.spooled().await == 0
        })
        .await;
    assert!(waits >= 3, "{waits}");
    let (status, error) = logged_once(&gateway).await;
    assert_eq!(status, "failed_perm");
    assert!(error.contains("for the maximum time"), "{error}");
    assert!(error.contains("past_due"), "{error}");
    assert_eq!(stand_in.submission.count("RCPT"), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_sent_again_is_given_up() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let app = gateway.app.id;
    let cases = [
        (
            "UPDATE mailboxes SET status = 'disconnected' WHERE plugin = 'plugin_b'".to_owned(),
            "UPDATE mailboxes SET status = 'active' WHERE plugin = 'plugin_b'".to_owned(),
            "The mailbox is no longer connected",
        ),
        (
            "UPDATE subscribers SET subscription_status = 'canceled'".to_owned(),
            "UPDATE subscribers SET subscription_status = 'active'".to_owned(),
            "Sending is blocked: the subscription has ended",
        ),
        (
            format!("DELETE FROM apps WHERE id = '{app}'"),
            "SELECT 1".to_owned(),
            "The app was deleted",
        ),
    ];
    for (before, after, told) in cases {
        stand_in.submission.once(Stage::Rcpt, Answer::reply(LATER));
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{answer}");
        let mut database = gateway.database().await;
        database.execute(AssertSqlSafe(before)).await.unwrap();
        advance_to_next_attempt(&gateway).await;
        emptied(&gateway).await;
        let last = gateway.logged().await.pop().unwrap();
        assert_eq!(last, ("failed_perm".to_owned(), Some(told.to_owned())));
        database.execute(AssertSqlSafe(after)).await.unwrap();
    }
    assert!(stand_in.submission.messages().is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_send_each_due_message_once() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let replica = gateway.replica().plugins(stand_in.plugins()).start().await;
    for _ in 0..20 {
        stand_in.submission.once(Stage::Rcpt, Answer::reply(LATER));
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{answer}");
    }
    gateway.clock.advance(TimeDelta::minutes(2));
    replica.clock.advance(TimeDelta::minutes(2));
    emptied(&gateway).await;
    let logged = gateway.logged().await;
    assert_eq!(logged, vec![("sent".to_owned(), None); 20]);
    let messages = stand_in.submission.messages();
    assert_eq!(messages.len(), 20);
    for (number, message) in messages.iter().enumerate() {
        let others = &messages[number + 1..];
        assert!(others.iter().all(|other| other.content != message.content));
    }
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stored_message_goes_out_to_the_byte() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    stand_in
        .submission
        .once(Stage::Content, Answer::reply(LATER));
    let mut content = format!("From: {ADDRESS}\r\nTo: bob@example.com\r\n\r\n").into_bytes();
    for number in 0..6_000 {
        content.extend(format!(".{number} caf\u{e9} with a tail of spaces   \r\n..\r\n").bytes());
    }
    content.extend(b"and bytes of no character set: \xff\xfe\r\n.");
    let mut stuffed = Vec::new();
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    let mut client = SmtpClient::authenticated(&gateway).await;
    let reply = client
        .command(&format!("MAIL FROM:<{ADDRESS}> BODY=8BITMIME"))
        .await;
    assert!(reply.starts_with("250 "), "{reply}");
    client.command("RCPT TO:<bob@example.com>").await;
    client.command("DATA").await;
    client.write(&stuffed).await;
    client.write(b"\r\n.\r\n").await;
    let reply = client.reply().await;
    assert!(
        reply.starts_with("250 2.0.0 log_") && reply.contains("queued"),
        "{reply}"
    );
    let stored = chunks(&gateway).await;
    assert!(stored.len() > 3, "{} pieces", stored.len());

    advance_to_next_attempt(&gateway).await;
    emptied(&gateway).await;
    let messages = stand_in.submission.messages();
    assert_eq!(messages.len(), 2);
    let first = &messages[0].content;
    assert!(first.len() > 200_000);
    assert!(*first == messages[1].content, "the retry differs");
    assert!(*first == stored.concat(), "what was stored differs");
    content.extend(b"\r\n");
    let body = b"\r\n\r\n";
    let start = content.windows(4).position(|part| part == body).unwrap();
    assert!(first.ends_with(&content[start..]), "the body differs");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refused_recipient_refuses_the_message() {
    let gateway = Gateway::start().await;
    for (refused, code) in [
        ("permfail@example.com", "550 5.1.1"),
        ("limit@example.com", "554 5.7.1"),
    ] {
        let mut client = SmtpClient::authenticated(&gateway).await;
        let from = &gateway.mailbox.email;
        client.command(&format!("MAIL FROM:<{from}>")).await;
        client.command("RCPT TO:<bob@example.com>").await;
        client.command(&format!("RCPT TO:<{refused}>")).await;
        client.command("DATA").await;
        client
            .write(format!("From: {from}\r\n\r\nHello\r\n.\r\n").as_bytes())
            .await;
        let reply = client.reply().await;
        assert!(reply.starts_with(code), "{reply}");
    }
    assert!(gateway.arrived().await.is_empty());
    assert_eq!(gateway.spooled().await, 0);
    let (status, answer) = gateway
        .send(json!({ "to": "permfail@example.com", "subject": "Hello", "body": "x" }))
        .await;
    assert_eq!(status, 502, "{answer}");
    assert!(
        answer["detail"].as_str().unwrap().contains("550 5.1.1"),
        "{answer}"
    );
    gateway.stop().await;
}

/// Messages of an app that have been due for so long, in so many mailboxes.
async fn due(gateway: &Gateway, app: AppId, since: TimeDelta, mailboxes: i32, messages: i32) {
    sqlx::query(
        "INSERT INTO spool
             (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
              subject, plugin, size_bytes, has_attachments, recipients, smtputf8, opened_at,
              state, next_attempt_at, attempts, outcome_unknown)
         SELECT gen_random_uuid(), $1, md5($1::text || number % $2)::uuid, 'a@x.example', 'b@x.example',
                '{}', '{}', 'Hello', 'plugin_b', 100, false, '{b@x.example}', false, now(),
                'deferred', now() - $4 + number * interval '1 millisecond', 1, false
         FROM generate_series(1, $3) AS number",
    )
    .bind(app.0)
    .bind(mailboxes)
    .bind(messages)
    .bind(since)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn much_that_one_subscriber_has_due_leaves_places_to_the_others() {
    let gateway = Gateway::start().await;
    gateway.stop_daemon().await;
    let (owner, _) = create_app(&gateway.daemon, "Owner").await;
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    sqlx::query("UPDATE apps SET subscriber_id = $1 WHERE id = $2")
        .bind(owner.0)
        .bind(gateway.app.id.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    // Older, and more than one claim considers.
    due(&gateway, gateway.app.id, TimeDelta::hours(1), 50, 1_000).await;
    due(&gateway, other.id, TimeDelta::minutes(1), 1, 1).await;
    let mut database = gateway.database().await;
    let living = GatewayId::at(Utc::now());
    sqlx::query("INSERT INTO gateways (id, started_at, lease_until) VALUES ($1, now(), now() + interval '1 hour')")
        .bind(living.0)
        .execute(&mut database)
        .await
        .unwrap();
    let mut room = Room {
        messages: 32,
        per_mailbox: 8,
        taken: Vec::new(),
        per_subscriber: 16,
        taken_by: Vec::new(),
    };
    let now = Utc::now();
    let first = claim_due(&mut database, living, (now, now), &[], &room)
        .await
        .unwrap();
    assert_eq!(first.len(), 16);
    assert!(
        first
            .iter()
            .all(|claimed| claimed.subscriber == Some(owner))
    );
    room.messages = 16;
    room.taken_by = vec![(owner, 16, 16)];
    let second = claim_due(&mut database, living, (now, now), &[], &room)
        .await
        .unwrap();
    let apps: Vec<AppId> = second.iter().map(|claimed| claimed.app).collect();
    assert_eq!(apps, [other.id]);
}

async fn subscription(gateway: &Gateway, status: &str) {
    sqlx::query("UPDATE subscribers SET subscription_status = $2 WHERE id = $1")
        .bind(gateway.subscriber.0)
        .bind(status)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

async fn log_row(gateway: &Gateway) -> (Uuid, DateTime<Utc>) {
    sqlx::query_as("SELECT id, sent_at FROM email_logs")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}
