//! What a message is answered, by the subscription or by the provider.

use chrono::{DateTime, Utc};
use mailgate_types::clock::Clock;
use mailgate_types::ids::LogId;

use super::{RECIPIENT, message, subjects};
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;

/// The newest log row's id, as the outside sees it.
async fn newest_log_id(gateway: &Gateway) -> String {
    let id: uuid::Uuid = sqlx::query_scalar("SELECT id FROM email_logs ORDER BY id DESC LIMIT 1")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    LogId(id).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_subscription_says_whether_mail_leaves() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let mut database = gateway.database().await;
    let mut expected = Vec::new();
    for (status, code, word) in [
        (Some("past_due"), "451 4.7.1 ", "past_due"),
        (Some("trialing"), "250 2.0.0 ", "sent via"),
        (Some("unpaid"), "451 4.7.1 ", "unpaid"),
        (Some("active"), "250 2.0.0 ", "sent via"),
        (Some("canceled"), "550 5.7.1 ", "subscription"),
        (None, "550 5.7.1 ", "subscription"),
        (Some("active"), "250 2.0.0 ", "sent via"),
    ] {
        sqlx::query("UPDATE subscribers SET subscription_status = $1 WHERE id = $2")
            .bind(status)
            .bind(gateway.subscriber.0)
            .execute(&mut database)
            .await
            .unwrap();
        let subject = format!("{status:?}");
        let reply = client.submit(RECIPIENT, &message(&subject)).await;
        assert!(
            reply.starts_with(code) && reply.contains(word),
            "{subject}: {reply}"
        );
        assert_ne!(reply, "550 5.7.1 From address not authorized");
        if code.starts_with("250") {
            expected.push(subject);
        }
    }
    assert_eq!(subjects(&gateway), expected);
    assert_eq!(gateway.logged().await.len(), expected.len());
    assert_eq!(gateway.spooled().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sent_names_the_log_row_and_the_plugin() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let reply = client.submit(RECIPIENT, &message("sent")).await;
    let id = newest_log_id(&gateway).await;
    assert_eq!(reply, format!("250 2.0.0 {id} sent via plugin_a"));
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    assert_eq!(gateway.spooled().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_failure_is_stored_and_its_next_attempt_told() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let before = gateway.clock.now();
    let reply = client
        .submit("tempfail@example.com", &message("later"))
        .await;
    let (start, next) = reply.split_once(" queued, next attempt ").expect(&reply);
    assert!(start.starts_with("250 2.0.0 log_"), "{reply}");
    let next: DateTime<Utc> = next.parse().expect(&reply);
    let wait = (next - before).num_seconds();
    assert!((58..=90).contains(&wait), "in {wait} seconds");
    assert_eq!(gateway.spooled().await, 1);
    assert_eq!(gateway.sandbox.inbox.count(), 0);
    // The connection is fit for the next one.
    let reply = client.submit(RECIPIENT, &message("now")).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    assert_eq!(subjects(&gateway), ["now"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permanent_failure_is_told_in_the_providers_words() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    for (recipient, expected) in [
        (
            "permfail@example.com",
            "550 5.1.1 No such user here (permfail)",
        ),
        (
            "limit@example.com",
            "554 5.7.1 Sending limit exceeded (limit)",
        ),
    ] {
        let reply = client.submit(recipient, &message("no")).await;
        assert_eq!(reply, expected);
    }
    let logged = gateway.logged().await;
    assert_eq!(logged.len(), 2);
    for (status, error) in logged {
        assert_eq!(status, "failed_perm");
        assert!(error.is_some_and(|error| error.contains('(')));
    }
    assert_eq!(gateway.spooled().await, 0);
    assert_eq!(gateway.sandbox.inbox.count(), 0);
    let reply = client.submit(RECIPIENT, &message("yes")).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
}

/// The provider takes the message and breaks the connection before it says so.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_end_is_told_as_such_and_nothing_is_sent_twice() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let reply = client.submit("drop@example.com", &message("once")).await;
    assert!(reply.starts_with('5'), "{reply}");
    assert!(reply.contains("may have arrived"), "{reply}");
    assert_eq!(subjects(&gateway), ["once"]);
    let logged = gateway.logged().await;
    assert_eq!(logged.len(), 1);
    assert_eq!(logged[0].0, "failed_perm");
    assert_eq!(gateway.spooled().await, 0);
    gateway.clock.advance(chrono::TimeDelta::days(1));
    let reply = client.submit(RECIPIENT, &message("another")).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    assert_eq!(subjects(&gateway), ["once", "another"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_after_its_message_leaves_a_whole_log_row() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let hold = gateway.sandbox.slow.hold();
    client.begin_data("slow@example.com").await;
    client.write(&message("left alone")).await;
    client.write(b"\r\n.\r\n").await;
    gateway
        .eventually("the message is in hand", async |gateway| {
            gateway.spooled().await == 1
        })
        .await;
    drop(client);
    drop(hold);
    gateway
        .eventually("the log row is written", async |gateway| {
            gateway.logged().await == [("sent".to_owned(), None)]
        })
        .await;
    assert_eq!(gateway.spooled().await, 0);
    assert_eq!(subjects(&gateway), ["left alone"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_within_its_message_has_sent_nothing() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    client.begin_data(RECIPIENT).await;
    client.write(&message("half")).await;
    client.write(b"\r\n.\r").await;
    drop(client);
    let mut client = SmtpClient::authenticated(&gateway).await;
    let reply = client.submit(RECIPIENT, &message("whole")).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let inbox = gateway.sandbox.inbox.clone();
    // Everything that was begun has ended after this.
    gateway.stop().await;
    assert_eq!(inbox.count(), 1);
}
