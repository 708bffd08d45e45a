//! Several processes on one database, and what becomes of the deliveries of one that ends.

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use mailgate_types::ids::WebhookMessageId;

use super::{SECRET, configure, connected, deliveries, gateway, happen, listener, queued};
use crate::command_line::serve;
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::receiver::{Receiver, Reply};

const DUE: usize = 10_000;

/// Puts the queue away, so that all of it gets due at one moment.
async fn hold(gateway: &Gateway, hold: bool) {
    let statement = if hold {
        "UPDATE webhook_queue SET state = 'waiting', due_at = now() + interval '1 hour'"
    } else {
        "UPDATE webhook_queue SET state = 'ready', due_at = now()"
    };
    sqlx::query(statement)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_leaves_nothing_untold() {
    // This process only looks on until the others have worked.
    let gateway = gateway().start().await;
    let receivers = [
        Receiver::start().await,
        Receiver::start().await,
        Receiver::start().await,
    ];
    let app = gateway.app.id;
    let mut ends = Vec::new();
    for receiver in &receivers {
        let url = "http://127.0.0.1:9/";
        let config = configure(&gateway, app, url, &["user.connected"], SECRET).await;
        ends.push((config, receiver));
    }
    gateway.stop_daemon().await;

    let many: Vec<_> = (0..=DUE / 3).map(|_| connected(app)).collect();
    happen(&gateway, &many).await;
    hold(&gateway, true).await;
    for (config, receiver) in &ends {
        sqlx::query("UPDATE webhook_configs SET url = $2 WHERE id = $1")
            .bind(config.0)
            .bind(receiver.url("/"))
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }
    let start = || {
        serve::replica(&gateway)
            .set("WEBHOOKS__ALLOW_PRIVATE", "true")
            .set("WEBHOOKS__EXCHANGE_SECONDS", "1")
            .start()
    };
    let mut first = start();
    let mut second = start();
    first.ready().await;
    second.ready().await;
    hold(&gateway, false).await;

    // In the middle of it.
    let told = || receivers.iter().map(Receiver::count).sum::<usize>();
    patience::until("tenth of the deliveries", async || told() >= DUE / 10).await;
    first.signal("KILL").await;
    assert!(told() < DUE, "it was killed too late");
    patience::until("end of the queue", async || {
        queued(&gateway).await.is_empty()
    })
    .await;

    // Each message at each receiver, and one attempt for each, under the number 1.
    let all: HashSet<String> = receivers[0]
        .received()
        .iter()
        .map(|one| one.header("webhook-id").to_owned())
        .collect();
    assert_eq!(all.len(), DUE / 3 + 1);
    for receiver in &receivers {
        let ids: HashSet<String> = receiver
            .received()
            .iter()
            .map(|one| one.header("webhook-id").to_owned())
            .collect();
        assert_eq!(ids, all);
    }
    let rows = deliveries(&gateway).await;
    assert_eq!(rows.len(), all.len() * 3);
    assert!(
        rows.iter()
            .all(|row| row.success && row.attempt_number == 1)
    );
    let mut recorded: HashMap<uuid::Uuid, usize> = HashMap::new();
    for row in &rows {
        assert!(all.contains(&WebhookMessageId(row.message_id).to_string()));
        *recorded.entry(row.endpoint_id).or_default() += 1;
    }
    assert!(
        ends.iter()
            .all(|(config, _)| recorded[&config.0] == all.len())
    );
    // What came twice was in the hands of the process that died.
    let twice = told() - rows.len();
    assert!(twice <= 1_024, "{twice} came twice");
    second.signal("TERM").await;
    assert!(second.end(patience::PATIENCE).await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_the_work_and_tell_nothing_twice() {
    let gateway = gateway().start().await;
    let other = gateway
        .replica()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .start()
        .await;
    let receiver = listener(&gateway).await;
    for _ in 0..20 {
        let some: Vec<_> = (0..50).map(|_| connected(gateway.app.id)).collect();
        happen(&gateway, &some).await;
    }
    gateway
        .eventually("all is delivered", async |gateway| {
            queued(gateway).await.is_empty()
        })
        .await;
    assert_eq!(receiver.count(), 1_000);
    assert_eq!(deliveries(&gateway).await.len(), 1_000);
    other.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_has_run_out_is_taken_up_by_somebody() {
    let gateway = gateway().start().await;
    let receiver = listener(&gateway).await;
    // As a process leaves it that dies between its claim and its record.
    let mut transaction = gateway.daemon.pool.begin().await.unwrap();
    mailgate_storage::webhook_messages::emit(
        &mut transaction,
        &[connected(gateway.app.id)],
        chrono::Utc::now(),
    )
    .await
    .unwrap();
    sqlx::query("UPDATE webhook_queue SET state = 'leased', due_at = now() + interval '1 minute'")
        .execute(&mut *transaction)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    happen(&gateway, &[connected(gateway.app.id)]).await;
    gateway
        .eventually("the other one is told, and recorded", async |gateway| {
            receiver.count() == 1 && queued(gateway).await == [("leased".to_owned(), 1)]
        })
        .await;
    // By the database's clock alone.
    gateway.clock.advance(TimeDelta::hours(1));
    happen(&gateway, &[connected(gateway.app.id)]).await;
    gateway
        .eventually("another one is told, and recorded", async |gateway| {
            receiver.count() == 2 && queued(gateway).await == [("leased".to_owned(), 1)]
        })
        .await;
    sqlx::query("UPDATE webhook_queue SET due_at = now()")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway
        .eventually("it is taken up", async |gateway| {
            queued(gateway).await.is_empty()
        })
        .await;
    assert_eq!(receiver.count(), 3);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_its_turn_is_given_back_at_the_end() {
    let gateway = gateway()
        .set("WEBHOOKS__ENDPOINT_CONCURRENCY", 1)
        .set("WEBHOOKS__EXCHANGE_SECONDS", 3)
        .start()
        .await;
    let receiver = Receiver::start().await;
    let app = gateway.app.id;
    configure(
        &gateway,
        app,
        &receiver.url("/"),
        &["user.connected"],
        SECRET,
    )
    .await;
    // A quick receiver, for which much is taken up ahead, stands still.
    let many: Vec<_> = (0..50).map(|_| connected(app)).collect();
    happen(&gateway, &many).await;
    gateway
        .eventually("all is delivered", async |gateway| {
            queued(gateway).await.is_empty()
        })
        .await;
    receiver.always(Reply::Hang);
    happen(&gateway, &many[..20]).await;
    gateway
        .eventually("several are taken up", async |gateway| {
            let queued = queued(gateway).await;
            queued
                .iter()
                .any(|(state, count)| state == "leased" && *count > 1)
        })
        .await;
    gateway.stop_daemon().await;
    let left = [("ready".to_owned(), 19), ("waiting".to_owned(), 1)];
    assert_eq!(queued(&gateway).await, left);
    gateway.stop().await;
}
