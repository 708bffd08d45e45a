//! Several gateways on one Postgres, behind one `HAProxy` with the configuration that is shipped: they are
//! restarted one after the other, upgraded, and killed, under load.

pub mod balancer;
mod clients;
pub mod fleet;
mod held;
mod killed;
mod rolling;
mod stopped;
mod upgrade;
mod withdrawn;
mod work;

use std::collections::HashSet;

use crate::crash::ledger::Ledger;
use crate::crash::tables::Tables;
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::receiver::Receiver;

/// Messages that show that sending goes on.
const FURTHER: usize = 20;

/// The demo app's endpoint is `receiver`.
async fn tell(gateway: &Gateway, receiver: &Receiver) {
    sqlx::query("UPDATE apps SET webhook_url = $1")
        .bind(receiver.url("/mail"))
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

/// Waits until every event has been delivered; answers how many deliveries came twice.
async fn told_all(gateway: &Gateway, receiver: &Receiver, tables: &Tables) -> usize {
    gateway
        .eventually("all events are delivered", async |gateway| {
            let left: i64 = sqlx::query_scalar("SELECT count(*) FROM webhook_queue")
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap();
            left == 0
        })
        .await;
    let deliveries = receiver.received();
    let told: HashSet<&str> = (deliveries.iter())
        .map(|one| one.header("webhook-id"))
        .collect();
    assert_eq!(told.len(), tables.events.len(), "events that were told of");
    deliveries.len() - told.len()
}

/// Waits until so many `further` messages have been answered as sent.
async fn sends_on(ledger: &Ledger, further: usize) {
    let before = ledger.count("sent");
    patience::until("further messages", async || {
        ledger.count("sent") >= before + further
    })
    .await;
}
