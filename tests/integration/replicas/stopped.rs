//! Gateways that are stopped (SIGSTOP) for half a lease to three, and woken, while clients send at both doors: what
//! they had in hand meanwhile others have, and nobody says or sends anything twice.
//!
//! `MAILGATE_CRASH_STOPS=2` says how often (`make crash` takes ten).

use mailgate_types::lease::LEASE;
use mailgate_types::plugin::Plugin;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::balancer::Balancer;
use super::fleet::{Fleet, HOSTS};
use super::{FURTHER, sends_on, tell, told_all};
use crate::crash::clients::Clients;
use crate::crash::ledger::Ledger;
use crate::crash::provider::{Arrivals, UnsteadyLine};
use crate::crash::{SECOND_MAILBOX, invocation, recorded, seed, settle, tables};
use crate::history::rules;
use crate::support::gateway::Gateway;
use crate::support::patience::{self, PATIENCE};
use crate::support::receiver::Receiver;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_gateway_says_and_sends_nothing_that_others_have_taken_over() {
    let (seed, stops) = (seed(), stops());
    println!("MAILGATE_CRASH_SEED={seed}, {stops} stops");
    let mut random = StdRng::seed_from_u64(seed);
    let gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    gateway.connect(None, Plugin::B, SECOND_MAILBOX).await;
    tell(&gateway, &receiver).await;
    gateway.stop_daemon().await;
    let line = UnsteadyLine::start(&gateway, seed).await;
    let invocation = invocation(&gateway, &line)
        .set("SENDING__RETRY_SECONDS", "1,1,1,1,1,1,1,1,1,1")
        .set("WEBHOOKS__ALLOW_PRIVATE", "true");
    let mut fleet = Fleet::start(&invocation, &HOSTS, "stopped").await;
    let balancer = Balancer::start(&gateway, &fleet).await;
    let account = balancer.account(&gateway).owned(&gateway).await;
    let arrivals = Arrivals::collect(gateway.sandbox.inbox.clone());
    let ledger = Ledger::default();
    let clients = Clients::start(std::slice::from_ref(&account), &ledger, seed, u32::MAX);

    for stop in 0..stops {
        sends_on(&ledger, FURTHER).await;
        let number = random.random_range(0..HOSTS.len());
        // The first is short, and the second surely longer than a lease.
        let leases = match stop {
            0 => 0.5,
            1 => 2.0,
            _ => random.random_range(0.5..3.0),
        };
        fleet.replicas[number].signal("STOP").await;
        tokio::time::sleep(LEASE.mul_f64(leases)).await;
        fleet.replicas[number].signal("CONT").await;
        all_live(&gateway, &mut fleet, &balancer).await;
    }
    sends_on(&ledger, FURTHER).await;

    let unanswered = clients.finish(PATIENCE).await;
    let left = settle(&gateway, PATIENCE).await;
    let arrived = arrivals.all().await;
    let tables = tables::read(&mut gateway.database().await).await;
    let twice = told_all(&gateway, &receiver, &tables).await;
    fleet.end().await;
    ledger.tell(&tables, &arrived);
    println!("{twice} events came twice");
    let history = recorded(&ledger, arrived, tables, gateway.app.id, None);
    let mut wrong = rules::broken(&history);
    wrong.extend(left);
    wrong.extend(unanswered);
    assert!(
        wrong.is_empty(),
        "MAILGATE_CRASH_SEED={seed}: {} things are wrong; the logs are {}\n{}",
        wrong.len(),
        fleet.logs(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    fleet.forget_logs();
    gateway.stop().await;
}

fn stops() -> u32 {
    let text = std::env::var("MAILGATE_CRASH_STOPS").unwrap_or_else(|_| "2".to_owned());
    text.parse().expect("MAILGATE_CRASH_STOPS is a number")
}

/// Waits until all of them live and are reached, those started again that others have ended.
async fn all_live(gateway: &Gateway, fleet: &mut Fleet, balancer: &Balancer) {
    patience::until("three living gateways", async || {
        for replica in &mut fleet.replicas {
            replica.supervise().await;
        }
        let living: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM gateways WHERE ended_at IS NULL AND lease_until > now()",
        )
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
        living == 3
    })
    .await;
    for number in 0..HOSTS.len() {
        balancer.sees(number, "UP").await;
    }
}
