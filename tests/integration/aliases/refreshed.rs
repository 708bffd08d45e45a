//! When the providers are asked again: once a day, and after they refused a sender.

use chrono::TimeDelta;
use serde_json::json;

use super::{addresses, is_refused, rows, send, until_they_are};
use crate::support::gateway::Gateway;
use crate::support::gmail_stand_in::{FULL_SCOPE, GmailStandIn, error, refusal};
use crate::support::stand_in::ADDRESS;

const SALES: &str = "sales@stand-in.example";
const NEW: &str = "new@stand-in.example";

/// Longer than any day is with what it is given or taken, and shorter than the next one.
const DAY: TimeDelta = TimeDelta::hours(27);

async fn start() -> (GmailStandIn, Gateway) {
    let stand_in = GmailStandIn::start().await;
    stand_in.set_send_as(&[(SALES, "accepted")]);
    let builder = Gateway::builder().plugins(stand_in.plugins(FULL_SCOPE));
    let gateway = builder.start().await;
    stand_in.connect(&gateway).await;
    (stand_in, gateway)
}

async fn until_asked(stand_in: &GmailStandIn, gateway: &Gateway, times: usize) {
    gateway
        .eventually("the question", async |_| stand_in.send_as_reads() >= times)
        .await;
    // Its answer is stored with the next moment to ask.
    let is_stored = async |gateway: &Gateway| -> bool {
        sqlx::query_scalar(
            "SELECT addresses_due_at > addresses_asked_at + interval '1 hour'
             FROM mailboxes WHERE plugin = 'plugin_b'",
        )
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
    };
    gateway.eventually("the answer", is_stored).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_days_change_is_read_once_over_all_replicas() {
    let (stand_in, gateway) = start().await;
    let builder = gateway.replica().plugins(stand_in.plugins(FULL_SCOPE));
    let replica = builder.start().await;
    assert_eq!(addresses(&gateway).await, [ADDRESS, SALES]);
    stand_in.set_send_as(&[(NEW, "accepted")]);
    is_refused(&gateway, NEW).await;
    for gateway in [&gateway, &replica] {
        gateway.clock.advance(DAY);
    }
    until_they_are(&gateway, &[ADDRESS, NEW]).await;
    until_asked(&stand_in, &gateway, 2).await;
    let (status, answer) = send(&gateway, NEW).await;
    assert_eq!((status, &answer["from"]), (200, &json!(NEW)), "{answer}");
    is_refused(&replica, SALES).await;
    is_refused(&gateway, SALES).await;
    assert_eq!(stand_in.send_as_reads(), 2);
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_passes_changes_nothing_and_one_that_stays_leaves_the_own_address() {
    let (stand_in, gateway) = start().await;
    stand_in.set_send_as(&[(NEW, "accepted")]);
    stand_in.fail_send_as(Some((500, "{}".to_owned())));
    gateway.clock.advance(DAY);
    until_asked(&stand_in, &gateway, 2).await;
    assert_eq!(addresses(&gateway).await, [ADDRESS, SALES]);
    let (status, answer) = send(&gateway, SALES).await;
    assert_eq!(status, 200, "{answer}");

    // It is asked again within hours.
    stand_in.fail_send_as(None);
    gateway.clock.advance(TimeDelta::hours(5));
    until_they_are(&gateway, &[ADDRESS, NEW]).await;

    let text = "Request had insufficient authentication scopes.";
    let body = error(403, "insufficientPermissions", text, "PERMISSION_DENIED");
    stand_in.fail_send_as(Some((403, body.to_string())));
    gateway.clock.advance(DAY);
    until_they_are(&gateway, &[ADDRESS]).await;
    assert_eq!(rows(&gateway).await, 0);
    is_refused(&gateway, NEW).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_is_replaced_first() {
    let (stand_in, gateway) = start().await;
    stand_in.set_send_as(&[]);
    stand_in.refuse_token("access-1");
    stand_in.refuse_token("access-2");
    gateway.clock.advance(DAY);
    until_they_are(&gateway, &[ADDRESS]).await;
    assert!(stand_in.tokens.calls_so_far() >= 3);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_sender_is_asked_after_once_a_minute() {
    let (stand_in, gateway) = start().await;
    stand_in.set_send_as(&[(NEW, "accepted")]);
    gateway.clock.advance(TimeDelta::minutes(2));
    let refused = || refusal(400, "invalidArgument", "Invalid From header");
    for _ in 0..3 {
        stand_in.fail_once(refused());
        let (status, answer) = send(&gateway, ADDRESS).await;
        assert_eq!(status, 502, "{answer}");
    }
    until_they_are(&gateway, &[ADDRESS, NEW]).await;
    until_asked(&stand_in, &gateway, 2).await;
    stand_in.fail_once(refused());
    let (status, answer) = send(&gateway, ADDRESS).await;
    assert_eq!(status, 502, "{answer}");
    // Another refusal says nothing of the sender.
    gateway.clock.advance(TimeDelta::minutes(2));
    stand_in.fail_once(refusal(400, "invalidArgument", "Invalid To header"));
    let (status, answer) = send(&gateway, ADDRESS).await;
    assert_eq!(status, 502, "{answer}");
    let due: bool = sqlx::query_scalar(
        "SELECT addresses_due_at > addresses_asked_at + interval '20 hours'
         FROM mailboxes WHERE plugin = 'plugin_b'",
    )
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    assert!(due);
    assert_eq!(stand_in.send_as_reads(), 2);
    gateway.stop().await;
}

/// As an older release connects a mailbox: it knows nothing of the new columns.
#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_nobody_was_asked_about_is_due_at_once() {
    let (stand_in, gateway) = start().await;
    for statement in [
        "DELETE FROM mailbox_addresses",
        "UPDATE mailboxes SET addresses_due_at = DEFAULT, addresses_asked_at = NULL",
    ] {
        super::execute(&gateway, statement).await;
    }
    // The column's default is the database's own time.
    gateway.clock.advance(TimeDelta::minutes(1));
    until_they_are(&gateway, &[ADDRESS, SALES]).await;
    assert_eq!(stand_in.send_as_reads(), 2);
    gateway.stop().await;
}
