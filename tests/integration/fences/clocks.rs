//! Replicas whose clocks differ by an hour: what one has in hand, another leaves alone. And a database whose clock
//! is set forward: whoever goes on confirming lives.

use chrono::{DateTime, TimeDelta, Utc};

use super::holder;
use crate::support::gateway::Gateway;
use crate::support::patience;

/// Longer than any replica goes without a look at what others have left.
const LOOKS: TimeDelta = TimeDelta::seconds(20);

/// The lease of the process that has nothing in hand.
async fn lease_of_the_other(gateway: &Gateway, holder: uuid::Uuid) -> DateTime<Utc> {
    sqlx::query_scalar("SELECT lease_until FROM gateways WHERE id <> $1")
        .bind(holder)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_hand_is_left_alone() {
    let gateway = Gateway::start().await;
    let replica = gateway.replica().start().await;
    replica.clock.advance(TimeDelta::hours(1));
    let hold = gateway.sandbox.slow.hold();
    let calling = gateway.send_to("slow@example.com");
    let looking = async {
        let in_hand = patience::found("message in hand", async || holder(&gateway).await).await;
        let before = lease_of_the_other(&gateway, in_hand).await;
        patience::until("looks of the other one", async || {
            lease_of_the_other(&gateway, in_hand).await > before + LOOKS
        })
        .await;
        assert_eq!(holder(&gateway).await, Some(in_hand));
        drop(hold);
    };
    let ((status, answer), ()) = tokio::join!(calling, looking);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    assert_eq!(gateway.arrived().await.len(), 1);
    replica.stop().await;
    gateway.stop().await;
}

/// A gateway's row whose lease lies an hour back.
async fn begin_an_hour_ago(gateway: &Gateway) -> uuid::Uuid {
    sqlx::query_scalar(
        "INSERT INTO gateways (id, started_at, lease_until)
         VALUES (gen_random_uuid(), now(), now() - interval '1 hour') RETURNING id",
    )
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap()
}

async fn has_ended(gateway: &Gateway, id: uuid::Uuid) -> bool {
    let ended: Option<bool> =
        sqlx::query_scalar("SELECT ended_at IS NOT NULL FROM gateways WHERE id = $1")
            .bind(id)
            .fetch_optional(&mut gateway.database().await)
            .await
            .unwrap();
    ended.unwrap_or(true)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_moves_is_not_ended_though_the_databases_clock_is_past_it() {
    let gateway = Gateway::start().await;
    let [moving, silent] = [
        begin_an_hour_ago(&gateway).await,
        begin_an_hour_ago(&gateway).await,
    ];
    // Each look is a confirmation by a clock that is an hour behind the database's.
    let confirm = async || {
        sqlx::query(
            "UPDATE gateways SET lease_until = clock_timestamp() - interval '1 hour' WHERE id = $1",
        )
        .bind(moving)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    };
    patience::until("end of the one that is silent", async || {
        confirm().await;
        has_ended(&gateway, silent).await
    })
    .await;
    assert!(!has_ended(&gateway, moving).await);
    patience::until("end of the other, which has fallen silent", async || {
        has_ended(&gateway, moving).await
    })
    .await;
    gateway.stop().await;
}
