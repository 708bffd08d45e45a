//! Totals, pages and sums beside a plain count over random messages and filters, at every stage of their
//! life. `MAILGATE_REPORTS_SEED` repeats a run.

mod counted;
mod life;
mod samples;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Days, TimeDelta, Utc};
use mailgate_domain::accounts::AppFields;
use mailgate_domain::reports::{Period, Reports};
use mailgate_storage::partitions;
use mailgate_types::clock::{Clock, MovedClock, SharedClock};
use mailgate_types::ids::{AppId, GatewayId, SubscriberId};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sqlx::PgConnection;
use tokio::task::JoinSet;

use crate::support::gateway::{Gateway, OPERATOR};
use crate::support::retention::{kept_for, look_after};
use samples::{samples, samples_of_one};

/// Messages, filters of each stage, and days that the messages lie in.
const MESSAGES: usize = 1_500;
const FILTERS: usize = 25;
const DAYS: u64 = 70;

struct World {
    gateway: Gateway,
    reports: Reports,
    /// Three of the subscriber's, and one of another's.
    apps: Vec<AppId>,
    /// Before all moments.
    now: DateTime<Utc>,
    /// Days before it are dropped.
    kept_since: DateTime<Utc>,
    /// In whose hands the messages are.
    serving: GatewayId,
    _lease: JoinSet<()>,
    runner: TestRunner,
}

impl World {
    fn at(&self, back: i64) -> DateTime<Utc> {
        self.now - TimeDelta::milliseconds(back)
    }

    fn subscriber(&self) -> SubscriberId {
        self.gateway.subscriber
    }

    fn draw<S: Strategy>(&mut self, strategy: &S) -> S::Value {
        strategy.new_tree(&mut self.runner).unwrap().current()
    }
}

/// As a process does for itself: the gateway would take over what one has in hand that falls silent.
async fn keep_lease(mut connection: PgConnection, serving: GatewayId) {
    loop {
        sqlx::query("UPDATE gateways SET lease_until = clock_timestamp() WHERE id = $1")
            .bind(serving.0)
            .execute(&mut connection)
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn world(seed: u64) -> World {
    let gateway = Gateway::start().await;
    let mut connection = gateway.database().await;
    // A whole millisecond, so that moments that are counted back from it are, too.
    let now = gateway.clock.now().timestamp_millis();
    let now = DateTime::from_timestamp_millis(now).unwrap();
    for back in 1..=DAYS + 1 {
        let day = now.date_naive() - Days::new(back);
        partitions::create(&mut connection, day).await.unwrap();
    }
    let accounts = &gateway.daemon.accounts;
    let mut apps = vec![gateway.app.id];
    for name in ["Second", "Third"] {
        let fields = AppFields::named(name);
        let app = accounts.create_own_app(gateway.subscriber, &fields, OPERATOR);
        apps.push(app.await.unwrap().id);
    }
    let (_, others) = crate::support::gateway::create_app(&gateway.daemon, "Other").await;
    apps.push(others.id);
    let clock: SharedClock = Arc::<MovedClock>::clone(&gateway.clock);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let serving = GatewayId::at(now);
    sqlx::query("INSERT INTO gateways VALUES ($1, now(), now())")
        .bind(serving.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let mut lease = JoinSet::new();
    lease.spawn(keep_lease(gateway.database().await, serving));
    World {
        reports: Reports::new(gateway.daemon.pool.clone(), clock),
        gateway,
        apps,
        now,
        kept_since: DateTime::UNIX_EPOCH,
        serving,
        _lease: lease,
        runner: TestRunner::new_with_rng(
            Config::default(),
            TestRng::from_seed(RngAlgorithm::ChaCha, &bytes),
        ),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_say_what_counting_says() {
    let seed = match std::env::var("MAILGATE_REPORTS_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => rand::random(),
    };
    println!("MAILGATE_REPORTS_SEED={seed}");
    let mut world = world(seed).await;
    let samples = world.draw(&samples());
    let all = world.log(&samples).await;
    world.bounce(&samples, &all).await;
    world.check("logged").await;
    world.reports.fold_counters().await.unwrap();
    world.check("added up").await;
    world.check_sums("added up").await;

    world.end(&all).await;
    world.bounce(&samples, &all).await;
    world.check("tried again").await;
    world.check_sums("tried again").await;
    world.reports.fold_counters().await.unwrap();
    world.check("tried again and added up").await;

    // What isn't added up when its app goes is nobody's.
    let further = world.draw(&samples_of_one());
    let all = world.log(&further).await;
    world.bounce(&further, &all).await;
    let deleted = world
        .gateway
        .daemon
        .mailboxes
        .delete_app(world.apps[1], OPERATOR);
    assert!(deleted.await.unwrap());
    world.check("an app deleted").await;
    world.reports.fold_counters().await.unwrap();
    world.check("an app deleted, and added up").await;
    world.check_sums("an app deleted").await;

    let before = world
        .reports
        .email_stats(world.subscriber(), Period::Month, None)
        .await
        .unwrap();
    sqlx::query("DELETE FROM spool")
        .execute(&mut world.gateway.database().await)
        .await
        .unwrap();
    look_after(&world.gateway, kept_for(20)).await;
    world.kept_since = partitions::midnight(world.now.date_naive() - Days::new(20));
    world.check("old days dropped").await;
    let after = world
        .reports
        .email_stats(world.subscriber(), Period::Month, None)
        .await
        .unwrap();
    assert_eq!(after, before, "statistics outlive the log");
    world.gateway.stop().await;
}
