//! What happens in the background: retries, replies and webhooks whose words the database refuses.

use std::sync::Arc;

use chrono::Utc;
use mailgate_domain::reports::Refusals;
use mailgate_types::clock::MovedClock;
use mailgate_types::door::Door;
use mailgate_types::refusal::RefusalReason;
use serde_json::json;
use sqlx::PgPool;

use super::{alter, cjk, listen, log, told};
use crate::crash::database::DurablePostgres;
use crate::crash::database_line::DatabaseLine;
use crate::support::gateway::Gateway;
use crate::support::gmail_stand_in::{FULL_SCOPE, GmailStandIn};
use crate::support::receiver::{Receiver, Reply};
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::stand_in::{self, StandIn};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_waits_is_kept_without_words_and_sent() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    listen(&gateway).await;
    alter(
        &gateway,
        "ALTER TABLE email_logs ADD CONSTRAINT plain CHECK (subject <> 'refused')",
    )
    .await;
    stand_in
        .submission
        .once(Stage::Rcpt, Answer::reply("451 4.3.0 Later"));
    let (status, answer) = gateway
        .send(json!({ "to": "bob@example.com", "subject": "refused", "body": "x", "plugin": "plugin_b" }))
        .await;
    assert_eq!(status, 202, "{answer}");
    let logged = log(&gateway).await;
    assert_eq!(logged[0].0, "");
    assert_eq!(logged[0].1, "failed_temp");
    gateway.clock.advance(chrono::TimeDelta::minutes(2));
    gateway
        .eventually("the next attempt", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
    assert_eq!(
        log(&gateway).await,
        [(String::new(), "sent".to_owned(), None)]
    );
    assert_eq!(stand_in.submission.messages().len(), 1);
    for event in ["email.failed_temp", "email.sent"] {
        assert_eq!(told(&gateway, event).await.len(), 1, "{event}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_words_of_a_provider_are_cut_to_what_is_stored() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let lines = format!("550-5.7.1 {}\r\n", "x".repeat(900)).repeat(60);
    let reply = format!("{lines}550 5.7.1 end");
    stand_in.submission.once(Stage::Rcpt, Answer::reply(&reply));
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    assert!(answer["detail"].as_str().unwrap().len() < 2_100);
    let logged = log(&gateway).await;
    assert!(logged[0].2.as_ref().unwrap().len() < 2_100);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_reply_stops_a_mailbox() {
    let builder = Gateway::builder().set("MAILBOXES__REPLIES_SECONDS", 1);
    let (stand_in, gateway) = GmailStandIn::with(builder, FULL_SCOPE).await;
    listen(&gateway).await;
    alter(
        &gateway,
        "ALTER TABLE replies ADD CONSTRAINT plain CHECK (message_id <> '<refused@x>')",
    )
    .await;
    let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    let original = answer["message_id"].as_str().unwrap();
    let long = cjk(998);
    for (id, subject) in [
        (format!("<{long}1@x>"), "long"),
        (format!("<{long}2@x>"), "as long"),
        ("<refused@x>".to_owned(), "refused"),
        ("<fine@x>".to_owned(), "fine"),
    ] {
        stand_in.receive(
            &[
                ("Message-ID", &id),
                ("From", "bob@example.com"),
                ("Subject", subject),
                ("In-Reply-To", original),
                ("References", &format!("<{long}@y> {original}")),
            ],
            Utc::now().timestamp(),
        );
    }
    let subjects = async |gateway: &Gateway| -> Vec<String> {
        let mut subjects: Vec<String> = (told(gateway, "email.reply").await.iter())
            .map(|event| event["data"]["subject"].as_str().unwrap().to_owned())
            .collect();
        subjects.sort_unstable();
        subjects
    };
    gateway
        .eventually("three replies", async |gateway| {
            subjects(gateway).await == ["as long", "fine", "long"]
        })
        .await;
    let cursor: Option<String> =
        sqlx::query_scalar("SELECT replies_cursor FROM mailboxes WHERE plugin = 'plugin_b'")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    assert!(cursor.is_some(), "the mailbox has moved on");
    // What comes after them is found by the next look.
    stand_in.receive(
        &[
            ("Message-ID", "<next@x>"),
            ("From", "bob@example.com"),
            ("Subject", "next"),
            ("In-Reply-To", original),
        ],
        Utc::now().timestamp(),
    );
    gateway
        .eventually("the next reply", async |gateway| {
            subjects(gateway).await == ["as long", "fine", "long", "next"]
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_whose_words_are_refused_is_called_once() {
    let gateway = Gateway::builder()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .start()
        .await;
    alter(
        &gateway,
        "ALTER TABLE webhook_deliveries ADD CONSTRAINT plain CHECK (response_body <> 'refused')",
    )
    .await;
    let receiver = Receiver::start().await;
    receiver.always(Reply::Status(200, "refused"));
    alter(
        &gateway,
        &format!("UPDATE apps SET webhook_url = '{}'", receiver.url("/")),
    )
    .await;
    for _ in 0..3 {
        assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    }
    gateway
        .eventually("the deliveries", async |gateway| {
            let left: i64 = sqlx::query_scalar("SELECT count(*) FROM webhook_queue")
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap();
            receiver.count() >= 3 && left == 0
        })
        .await;
    assert_eq!(receiver.count(), 3);
    let recorded: Vec<(String, bool)> =
        sqlx::query_as("SELECT response_body, success FROM webhook_deliveries")
            .fetch_all(&mut gateway.database().await)
            .await
            .unwrap();
    assert_eq!(recorded, vec![(String::new(), true); 3]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_whose_commit_was_not_answered_count_once() {
    let postgres = DurablePostgres::start().await;
    let database = postgres.create_database().await;
    let gateway = Gateway::builder().database(&database).start().await;
    let line = DatabaseLine::start(postgres.socket());
    let pool = PgPool::connect(&line.url()).await.unwrap();
    let refusals = Refusals::new(pool, Arc::new(MovedClock::default()));
    let refuse = |to| {
        let reason = RefusalReason::NoMailbox;
        refusals.note(gateway.app.id, Door::Rest, reason, None, Some(to));
    };
    refuse("first@example.com");
    let ((), unheard) = tokio::join!(line.lose_commit("INSERT INTO refusals"), refusals.write());
    assert!(unheard.is_err());
    refuse("second@example.com");
    line.open();
    let report = refusals.of_app(gateway.app.id, 10).await.unwrap();
    assert_eq!(report.last.len(), 2);
    let count: i64 = report.counts.iter().map(|count| count.messages).sum();
    assert_eq!(count, 2);
    // A batch is forgotten once the next one is written.
    let batches: i64 = sqlx::query_scalar("SELECT count(*) FROM refusal_batches")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(batches, 1);
    gateway.stop().await;
}
