//! Replicas whose clocks differ by an hour: what one has in hand, another leaves alone.

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
