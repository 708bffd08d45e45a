//! All gateways are restarted, one after the other, while clients send at both doors.

use std::time::Instant;

use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::balancer::Balancer;
use super::clients::{Clients, Kind, Retries};
use super::fleet::{Fleet, HOSTS};
use super::{sends_on, tell, told_all};
use crate::command_line::process::http_client_trusting;
use crate::command_line::serve;
use crate::crash::ledger::Ledger;
use crate::crash::provider::Arrivals;
use crate::crash::{recorded, settle, tables};
use crate::history::rules;
use crate::support::gateway::Gateway;
use crate::support::patience::PATIENCE;
use crate::support::receiver::Receiver;

/// SMTP connections that are kept, each of which a restart ends at most once: the client hears 421 instead of an
/// answer to its next MAIL.
const KEPT: usize = 2;

/// What a busy machine may add to that, such as a balancer that hears late of an end.
const SLACK: usize = 3;

/// Messages that must have been answered between two restarts.
const MEANWHILE: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_loses_nothing_and_sends_nothing_twice() {
    let gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    tell(&gateway, &receiver).await;
    gateway.stop_daemon().await;
    let invocation = serve::replica(&gateway)
        .set("LIMITS__REQUESTS_PER_SECOND", "100000")
        .set("LIMITS__REQUESTS_BURST", "100000")
        .set("WEBHOOKS__ALLOW_PRIVATE", "true");
    let mut fleet = Fleet::start(&invocation, &HOSTS, "rolling").await;
    let balancer = Balancer::start(&gateway, &fleet).await;
    let account = balancer.account(&gateway).owned(&gateway).await;
    let arrivals = Arrivals::collect(gateway.sandbox.inbox.clone());
    let ledger = Ledger::default();
    let clients = Clients::start(&account, &ledger);

    let began = Instant::now();
    sends_on(&ledger, MEANWHILE).await;
    for number in 0..HOSTS.len() {
        fleet.terminate(number).await;
        fleet.replicas[number].restart().await;
        balancer.sees(number, "UP").await;
        sends_on(&ledger, MEANWHILE).await;
    }
    let took = began.elapsed();
    let retries = clients.finish().await;
    let left = settle(&gateway, PATIENCE).await;
    let arrived = arrivals.all().await;
    let tables = tables::read(&mut gateway.database().await).await;
    let twice = told_all(&gateway, &receiver, &tables).await;
    for number in 0..HOSTS.len() {
        let statistics = balancer.statistics(number).await;
        println!("gateway {number}: {statistics:?}");
        assert!(statistics.iter().all(|(_, sessions)| *sessions > 0));
    }
    fleet.end().await;
    says_that_nobody_is_ready(&account.base_url, account.starttls, &gateway).await;

    let sent = ledger.count("sent");
    println!(
        "{sent} messages in {took:.1?} over 3 restarts, sent again: {retries:?}; {twice} events came twice"
    );
    let history = recorded(&ledger, arrived, tables, gateway.app.id, None);
    let mut wrong = rules::broken(&history);
    wrong.extend(left);
    assert!(
        wrong.is_empty(),
        "{} things are wrong; the logs are {}\n{}",
        wrong.len(),
        fleet.logs(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    assert_eq!(sent, ledger.all().len(), "all of them were sent");
    let (arrived, logged) = (history.arrived.len(), history.tables.logs.len());
    assert_eq!((arrived, logged), (sent, sent));
    assert_eq!(twice, 0, "an end in order gives back what it has not told");
    assert_few(&retries);
    fleet.forget_logs();
    gateway.stop().await;
}

pub(super) fn assert_few(retries: &Retries) {
    let of = |kind| -> usize {
        let of_kind = retries.iter().filter(|((of, _), _)| *of == kind);
        of_kind.map(|(_, count)| count).sum()
    };
    assert!(of(Kind::Rest) <= SLACK, "{retries:?}");
    assert!(of(Kind::SmtpShort) <= SLACK, "{retries:?}");
    assert!(
        of(Kind::SmtpKept) <= KEPT * HOSTS.len() + SLACK,
        "{retries:?}"
    );
}

/// Without a gateway the balancer answers in the gateway's own form, and takes no mail.
async fn says_that_nobody_is_ready(
    base_url: &str,
    starttls: std::net::SocketAddr,
    gateway: &Gateway,
) {
    let response = http_client_trusting(&gateway.ca_file)
        .get(format!("{base_url}/readyz"))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status().as_u16(), 503);
    // By HTTP/2 it would have clients send again what a dying gateway had in hand.
    assert_eq!(response.version(), reqwest::Version::HTTP_11);
    assert_eq!(response.headers()["retry-after"], "5");
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["code"], "unavailable");
    let mut socket = TcpStream::connect(starttls).await.unwrap();
    let mut greeting = Vec::new();
    drop(socket.read_to_end(&mut greeting).await);
    assert!(
        greeting.is_empty(),
        "{}",
        String::from_utf8_lossy(&greeting)
    );
}
