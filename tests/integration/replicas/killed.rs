//! One of three gateways is killed and another one restarted, while clients send at both doors and the way to one
//! of the two providers is unsteady.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use mailgate_types::plugin::Plugin;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::balancer::Balancer;
use super::fleet::{Fleet, HOSTS};
use super::{FURTHER, sends_on, tell, told_all};
use crate::crash::clients::{Account, Clients};
use crate::crash::ledger::{Ledger, Message, Told};
use crate::crash::provider::{Arrivals, UnsteadyLine};
use crate::crash::rest::RestClient;
use crate::crash::{SECOND_MAILBOX, invocation, recorded, seed, settle, tables};
use crate::history::rules;
use crate::support::gateway::Gateway;
use crate::support::patience::{self, PATIENCE};
use crate::support::receiver::Receiver;

/// Messages that one of twelve clients begins at most.
const MOST: u32 = 400;

/// How long a webhook is held without a word from its process.
const LEASE: TimeDelta = TimeDelta::seconds(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_gateway_had_in_hand_others_bring_to_its_end() {
    let seed = seed();
    println!("MAILGATE_CRASH_SEED={seed}");
    let gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    gateway.connect(None, Plugin::B, SECOND_MAILBOX).await;
    tell(&gateway, &receiver).await;
    gateway.stop_daemon().await;
    let line = UnsteadyLine::start(&gateway, seed).await;
    let invocation = invocation(&gateway, &line)
        .set("SENDING__RETRY_SECONDS", "1,1,1,1,1,1,1,1,1,1")
        .set("WEBHOOKS__ALLOW_PRIVATE", "true");
    let mut fleet = Fleet::start(&invocation, &HOSTS, "killed").await;
    let balancer = Balancer::start(&gateway, &fleet).await;
    let account = balancer.account(&gateway).owned(&gateway).await;
    let arrivals = Arrivals::collect(gateway.sandbox.inbox.clone());
    let ledger = Ledger::default();
    let clients = Clients::start(std::slice::from_ref(&account), &ledger, seed, MOST);
    sends_on(&ledger, FURTHER).await;

    // A message that the first one has in hand for certain: the provider holds it.
    let hold = gateway.sandbox.slow.hold();
    let direct = Account {
        base_url: format!("http://{}", fleet.replicas[0].http),
        ..account.clone()
    };
    let slow = slow(direct, account);
    let dead = in_whose_hands(&gateway).await;
    let killed_at = Utc::now();
    fleet.replicas[0].kill().await;
    let lapsed = left_by(&gateway, dead).await;
    drop(hold);
    sends_on(&ledger, FURTHER).await;
    // Only the third one is left meanwhile.
    fleet.terminate(1).await;
    sends_on(&ledger, FURTHER).await;
    fleet.replicas[1].restart().await;
    balancer.sees(1, "UP").await;
    sends_on(&ledger, FURTHER).await;
    lapse_webhooks(&gateway, killed_at).await;
    gateway
        .eventually("what it had is taken over", async |gateway| {
            left_by(gateway, dead).await == 0
        })
        .await;
    fleet.replicas[0].restart().await;
    balancer.sees(0, "UP").await;

    let unanswered = clients.finish(PATIENCE).await;
    let (message, told) = slow.await.unwrap();
    println!("of the message that was in hand its client was told {told:?}");
    ledger.add(message, told);
    let left = settle(&gateway, PATIENCE).await;
    let arrived = arrivals.all().await;
    let tables = tables::read(&mut gateway.database().await).await;
    let twice = told_all(&gateway, &receiver, &tables).await;
    fleet.end().await;
    ledger.tell(&tables, &arrived);
    println!("the dead one held {lapsed} messages; {twice} events came twice");
    let history = recorded(&ledger, arrived, tables, gateway.app.id, None);
    let mut wrong = rules::broken(&history);
    wrong.extend(left);
    wrong.extend(unanswered);
    assert!(
        wrong.is_empty(),
        "{} things are wrong; the logs are {}\n{}",
        wrong.len(),
        fleet.logs(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    assert!(lapsed > 0, "the dead one held nothing");
    fleet.forget_logs();
    gateway.stop().await;
}

/// A keyed message that is sent to one gateway, and asked for at another address until there is an answer.
fn slow(direct: Account, balanced: Account) -> JoinHandle<(Message, Told)> {
    let message = Message {
        marker: format!("in-hand-{:08x}", rand::random::<u32>()),
        plugin: Plugin::A,
        recipient: "slow@example.com".to_owned(),
        key: Some("in hand".to_owned()),
        lines: 3,
        in_a_long_life: false,
        send_at: None,
        is_cancelled: false,
    };
    tokio::spawn(async move {
        let first = RestClient::new(direct).send(&message).await;
        assert_eq!(first.ok(), Some(Told::Nothing), "its gateway is killed");
        let client = RestClient::new(balanced);
        let began = Instant::now();
        loop {
            match client.send(&message).await {
                Ok(Told::InFlight | Told::NotTaken | Told::Nothing) | Err(_)
                    if began.elapsed() < PATIENCE =>
                {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                told => return (message, told.unwrap_or(Told::Nothing)),
            }
        }
    })
}

/// Waits until the message of [`slow`] is in the spool; answers which process has it.
async fn in_whose_hands(gateway: &Gateway) -> Uuid {
    patience::found("message in hand", async || {
        sqlx::query_scalar("SELECT gateway_id FROM spool WHERE subject LIKE 'in-hand-%'")
            .fetch_optional(&mut gateway.database().await)
            .await
            .unwrap()
    })
    .await
}

/// Messages that a process has in hand.
async fn left_by(gateway: &Gateway, dead: Uuid) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM spool WHERE gateway_id = $1")
        .bind(dead)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

/// Lets the leases of the dead one's webhooks lapse, which would do so by themselves.
async fn lapse_webhooks(gateway: &Gateway, killed_at: chrono::DateTime<Utc>) {
    sqlx::query("UPDATE webhook_queue SET due_at = now() WHERE state = 'leased' AND due_at <= $1")
        .bind(killed_at + LEASE)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}
