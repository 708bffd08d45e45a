//! Processes that are stopped (SIGSTOP) for longer than their lease, and woken.

use std::net::SocketAddr;

use chrono::{SecondsFormat, TimeDelta};
use mailgate_types::clock::Clock as _;
use serde_json::{Value, json};

use super::held_line::HeldLine;
use super::{ends_as_failed, holder, send};
use crate::command_line::process::Running;
use crate::command_line::serve::{authenticated, replica};
use crate::support::database::COUNTED;
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::patience;

/// A gateway in this process, which takes over, and whose app somebody listens to.
async fn start() -> Gateway {
    let gateway = Gateway::builder()
        .set("SENDING__RETRY_SECONDS", "1,1,1")
        .start()
        .await;
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/mail'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway
}

/// A process that reaches the provider by this line.
async fn behind(gateway: &Gateway, line: &HeldLine) -> (Running, SocketAddr, SocketAddr) {
    let mut child = replica(gateway)
        .set("PLUGINS__PLUGIN_A__SMTP_PORT", line.port())
        .set("SENDING__RETRY_SECONDS", "1,1,1")
        .start();
    let addresses = child.ready().await;
    (child, addresses.http, addresses.starttls)
}

/// Stops a process; returns when the gateway has taken its message over, and has brought it to an end.
async fn stop_until_it_is_ended(gateway: &Gateway, child: &Running) {
    let stopped = holder(gateway).await.expect("it is in hand");
    child.signal("STOP").await;
    gateway
        .eventually("the end of its message", async |gateway| {
            holder(gateway).await != Some(stopped) && gateway.spooled().await == 0
        })
        .await;
}

/// The counters that aren't zero.
async fn counters(gateway: &Gateway) -> Vec<(String, i64)> {
    sqlx::query_as(sqlx::AssertSqlSafe(format!(
        "SELECT status, messages FROM {COUNTED} AS counted WHERE messages <> 0 ORDER BY status"
    )))
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap()
}

async fn events(gateway: &Gateway) -> Vec<String> {
    sqlx::query_scalar("SELECT event FROM webhook_messages ORDER BY created_at, id")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}

/// One copy at the provider, and the log, the counters and the last event say so.
async fn is_sent_once(gateway: &Gateway) {
    gateway
        .eventually("it is sent", async |gateway| {
            gateway.logged().await == [("sent".to_owned(), None)]
        })
        .await;
    assert_eq!(gateway.spooled().await, 0);
    assert_eq!(gateway.arrived().await.len(), 1);
    assert_eq!(counters(gateway).await, [("sent".to_owned(), 1)]);
    assert_eq!(events(gateway).await.last().unwrap(), "email.sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_providers_greeting_a_message_by_rest_is_queued_and_sent_once() {
    let gateway = start().await;
    let line = HeldLine::start(gateway.sandbox.smtp_address).await;
    let (mut child, http, _) = behind(&gateway, &line).await;
    let calling = send(&gateway, http, "bob@example.com");
    let stopping = async {
        line.waited_at().await;
        stop_until_it_is_ended(&gateway, &child).await;
        assert_eq!(gateway.logged().await[0].0, "failed_perm");
        line.open();
        child.signal("CONT").await;
    };
    let ((status, answer), ()) = tokio::join!(calling, stopping);
    assert_eq!(status, 202, "{answer}");
    assert_eq!(answer["status"], "failed_temp");
    ends_as_failed(&mut child).await;
    is_sent_once(&gateway).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_providers_greeting_a_message_by_smtp_is_queued_and_sent_once() {
    let gateway = start().await;
    let line = HeldLine::start(gateway.sandbox.smtp_address).await;
    let (mut child, _, starttls) = behind(&gateway, &line).await;
    let mut client = authenticated(&gateway, starttls).await;
    let content = format!("From: {MAILBOX}\r\nTo: bob@example.com\r\nSubject: x\r\n\r\nx\r\n");
    let calling = client.submit("bob@example.com", content.as_bytes());
    let stopping = async {
        line.waited_at().await;
        stop_until_it_is_ended(&gateway, &child).await;
        line.open();
        child.signal("CONT").await;
    };
    let (reply, ()) = tokio::join!(calling, stopping);
    assert!(
        reply.starts_with("250 ") && reply.contains("queued"),
        "{reply}"
    );
    ends_as_failed(&mut child).await;
    is_sent_once(&gateway).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_message_that_has_not_left_is_sent_by_its_successor_alone() {
    let gateway = start().await;
    assert_eq!(gateway.send_to("tempfail@example.com").await.0, 202);
    // Only the process sees that it is due.
    gateway.clock.advance(-TimeDelta::hours(1));
    for statement in [
        "UPDATE spool SET recipients = '{bob@example.com}', next_attempt_at = now()",
        "DELETE FROM webhook_messages",
    ] {
        sqlx::query(statement)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }
    let line = HeldLine::start(gateway.sandbox.smtp_address).await;
    let (mut child, ..) = behind(&gateway, &line).await;
    line.waited_at().await;
    child.signal("STOP").await;
    is_sent_once(&gateway).await;
    line.open();
    child.signal("CONT").await;
    ends_as_failed(&mut child).await;
    is_sent_once(&gateway).await;
    gateway.stop().await;
}

/// What a provider has said is a fact, though the message counted as failed meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn before_the_providers_reply_the_late_250_corrects_an_unknown_end() {
    let gateway = start().await;
    let mut child = replica(&gateway).start();
    let http = child.ready().await.http;
    let hold = gateway.sandbox.slow.hold();
    let calling = send(&gateway, http, "slow@example.com");
    let stopping = async {
        patience::until("message at the provider", async || {
            gateway.sandbox.slow.waiting() == 1
        })
        .await;
        stop_until_it_is_ended(&gateway, &child).await;
        let (status, error) = gateway.logged().await.remove(0);
        assert_eq!(status, "failed_perm");
        assert!(error.unwrap().contains("may have arrived"));
        drop(hold);
        patience::until("message that arrived", async || {
            gateway.arrived().await.len() == 1
        })
        .await;
        child.signal("CONT").await;
    };
    let ((status, answer), ()) = tokio::join!(calling, stopping);
    assert_eq!((status, &answer["status"]), (200, &Value::from("sent")));
    ends_as_failed(&mut child).await;
    is_sent_once(&gateway).await;
    assert_eq!(events(&gateway).await, ["email.failed_perm", "email.sent"]);
    gateway.stop().await;
}

/// Its attempts, as the log shows them.
async fn attempts(gateway: &Gateway) -> Vec<(i32, String)> {
    sqlx::query_as("SELECT number, status FROM email_attempts ORDER BY number")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}

/// A process is stopped while it waits for the provider's reply to this stored message, and woken once its successor has
/// written what these attempts show.
async fn stopped_with_a_stored_message(gateway: &Gateway, taken_over: &[(i32, &str)]) {
    // Only the process sees that it is due.
    gateway.clock.advance(-TimeDelta::hours(1));
    sqlx::query("UPDATE spool SET recipients = '{slow@example.com}', next_attempt_at = now(), send_at = now() + (send_at - send_at)")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let hold = gateway.sandbox.slow.hold();
    let mut child = replica(gateway).start();
    child.ready().await;
    patience::until("message at the provider", async || {
        gateway.sandbox.slow.waiting() == 1
    })
    .await;
    child.signal("STOP").await;
    gateway.clock.advance(TimeDelta::hours(1));
    gateway
        .eventually("what its successor writes", async |gateway| {
            let written = attempts(gateway).await;
            (written
                .iter()
                .map(|(number, status)| (*number, status.as_str())))
            .eq(taken_over.iter().copied())
        })
        .await;
    drop(hold);
    patience::until("message that arrived", async || {
        gateway.arrived().await.len() == 1
    })
    .await;
    child.signal("CONT").await;
    ends_as_failed(&mut child).await;
    is_sent_once(gateway).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_late_250_of_a_scheduled_message_replaces_the_attempt_that_said_otherwise() {
    let gateway = start().await;
    let send_at = gateway.clock.now() + TimeDelta::hours(2);
    let (status, answer) = gateway
        .send(json!({
            "to": "bob@example.com", "subject": "x", "body": "x",
            "send_at": send_at.to_rfc3339_opts(SecondsFormat::Secs, true),
        }))
        .await;
    assert_eq!(status, 202, "{answer}");
    stopped_with_a_stored_message(&gateway, &[(1, "failed_perm")]).await;
    assert_eq!(attempts(&gateway).await, [(1, "sent".to_owned())]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_late_250_of_a_message_that_was_put_back_follows_its_attempts() {
    let gateway = Gateway::builder()
        .set("SENDING__RETRY_SECONDS", "7200,7200,7200")
        .set("SENDING__UNVERIFIABLE", "retry")
        .start()
        .await;
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/mail'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(gateway.send_to("tempfail@example.com").await.0, 202);
    let taken_over = [(1, "failed_temp"), (2, "failed_temp")];
    stopped_with_a_stored_message(&gateway, &taken_over).await;
    let written = attempts(&gateway).await;
    assert_eq!(written.last().unwrap(), &(3, "sent".to_owned()));
    gateway.stop().await;
}

/// Nobody else has taken anything over: the process goes on as before.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_nobody_has_ended_goes_on() {
    let gateway = start().await;
    let mut child = replica(&gateway).start();
    let addresses = child.ready().await;
    gateway.stop_daemon().await;
    child.signal("STOP").await;
    patience::until("lapsed lease", async || {
        let lapsed: bool = sqlx::query_scalar("SELECT bool_and(lease_until < now()) FROM gateways")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        lapsed
    })
    .await;
    child.signal("CONT").await;
    patience::until("message that is sent", async || {
        send(&gateway, addresses.http, "bob@example.com").await.0 == 200
    })
    .await;
    child.terminate().await;
    gateway.stop().await;
}
