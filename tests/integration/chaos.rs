//! Everything that can go wrong, in an order that nobody chose: three gateways behind `HAProxy`, Postgres with a
//! synchronous standby under Patroni, Postfix and Dovecot as one of the two mail providers, clients at both doors; and
//! an account at the end of every message, event, counter and billed mailbox.
//!
//! `make chaos` runs it for `BENCH_SECONDS`; without `MAILGATE_CHAOS_SECONDS` it does nothing. `MAILGATE_CRASH_SEED`
//! repeats the faults of an earlier run.

mod clock;
mod cluster;
mod faults;
mod felt;
mod line;
mod mailboxes;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::billing::Billed;
use crate::command_line::process::Invocation;
use crate::command_line::serve;
use crate::crash::clients::{Account, Clients};
use crate::crash::ledger::Ledger;
use crate::crash::provider::{Arrival, Arrivals};
use crate::crash::tables::Tables;
use crate::crash::{SECOND_MAILBOX, recorded, seed, settle, tables};
use crate::history::{self, History, rules};
use crate::peers::Provider;
use crate::peers_end_to_end::{self, REDIRECT_URI};
use crate::replicas::balancer::Balancer;
use crate::replicas::fleet::{Fleet, HOSTS};
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::receiver::Receiver;
use clock::Clock;
use cluster::Cluster;
use faults::Scene;
use felt::Table;
use line::Line;

/// A client's pause before its next message, in milliseconds: the machine has other things to do beside.
const PAUSE: std::ops::Range<u64> = 200..800;

/// Messages that show that all is well again.
const FURTHER: usize = 20;

/// Longest that it may take until all is well again, and until the end of what is under way.
const RECOVERED: Duration = Duration::from_mins(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_adds_up_whatever_goes_wrong() {
    let Some(length) = length() else { return };
    // Another test may have installed it.
    drop(rustls::crypto::ring::default_provider().install_default());
    let seed = seed();
    println!("MAILGATE_CRASH_SEED={seed}, {length:?}");
    let mut random = StdRng::seed_from_u64(seed);
    let cluster = Cluster::start().await;
    let provider = Provider::start(REDIRECT_URI).await;
    let receiver = Receiver::start().await;
    let database = format!(
        "postgres://postgres@{}/mailgate?sslmode=disable",
        cluster.address()
    );
    let builder = (Gateway::builder().database(&database)).plugins(mailboxes::plugins(&provider));
    let billed = Billed::of(builder).await;
    billed.provisioned().await;
    let gateway = &billed.gateway;
    peers_end_to_end::connect(&provider, gateway, SECOND_MAILBOX).await;
    let others = mailboxes::connect_others(gateway).await;
    let mailboxes = others.len() + 2;
    sqlx::query("UPDATE apps SET webhook_url = $1")
        .bind(receiver.url("/mail"))
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let arrivals = Arrivals::collect(gateway.sandbox.inbox.clone());

    let folder = TempDir::new().unwrap();
    let mut scene = scene(cluster, &provider, gateway, &folder).await;
    let balancer = Balancer::start(gateway, &scene.fleet).await;
    let account = Account {
        sent_folder: Some(mailboxes::sent_folder(&provider, SECOND_MAILBOX)),
        ..balancer.account(gateway).owned(gateway).await
    };
    gateway.stop_daemon().await;
    let url = format!("http://{}/payprov/webhook", scene.fleet.replicas[0].http);
    gateway.sandbox.payments.tell(&url);
    let ledger = Ledger::default();
    let stop = CancellationToken::new();
    let disconnecting = mailboxes::disconnect(account.clone(), others, stop.clone());
    let clients = Clients::paced(&[account], &ledger, seed, u32::MAX, PAUSE);

    let mut table = Table::default();
    let (began, mut deck) = (Instant::now(), Vec::new());
    well(&mut scene, gateway, &balancer, &ledger).await;
    while began.elapsed() < length {
        if deck.is_empty() {
            deck = scene.deck(&mut random);
        }
        let Some(fault) = deck.pop() else { break };
        println!("{:.0?}: {}", began.elapsed(), fault.name());
        let from = Instant::now();
        let until = scene.inflict(fault, &mut random).await;
        well(&mut scene, gateway, &balancer, &ledger).await;
        table.add(fault.name(), &ledger, [from, until, Instant::now()]);
    }

    stop.cancel();
    let disconnected = disconnecting.await.unwrap();
    let mut wrong = clients.finish(RECOVERED).await;
    wrong.extend(settle(gateway, RECOVERED).await);
    let tables = tables::read(&mut gateway.database().await).await;
    let arrived = all_arrived(arrivals, &provider, &tables).await;
    ledger.tell(&tables, &arrived);
    show_account(&tables, &arrived);
    let history = History {
        received: Some(received(gateway, &receiver).await),
        billed: Some(quantity(&billed, mailboxes - disconnected).await),
        ..recorded(&ledger, arrived, tables, gateway.app.id, None)
    };
    let file = std::env::temp_dir().join(format!("mailgate-history-{seed}.json"));
    history.write(&file).unwrap();
    println!("the history is {}", file.display());
    wrong.extend(rules::broken(&History::read(&file).unwrap()));
    scene.fleet.end().await;
    table.print();
    assert!(
        wrong.is_empty(),
        "MAILGATE_CRASH_SEED={seed}: {} things are wrong; the logs are {}\n{}",
        wrong.len(),
        scene.fleet.logs(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    scene.fleet.forget_logs();
}

/// The account in short; [`check`] has held every message against what its client was told.
fn show_account(tables: &Tables, arrived: &HashMap<String, Vec<Arrival>>) {
    let with = |status: &str| {
        let logs = tables.logs.values();
        logs.filter(|log| log.status == status).count()
    };
    let twice = arrived.values().filter(|copies| copies.len() > 1).count();
    println!(
        "{} messages were taken: {} sent, {} waiting, {} ended without success; {} arrived, {twice} of them twice",
        tables.logs.len(),
        with("sent"),
        with("failed_temp"),
        with("failed_perm"),
        arrived.len(),
    );
}

fn length() -> Option<Duration> {
    let text = std::env::var("MAILGATE_CHAOS_SECONDS").ok()?;
    let seconds = text.parse().expect("MAILGATE_CHAOS_SECONDS is a number");
    Some(Duration::from_secs(seconds))
}

/// The gateways, each with a line to the database and a clock of its own.
async fn scene(
    cluster: Cluster,
    provider: &Provider,
    gateway: &Gateway,
    folder: &TempDir,
) -> Scene {
    let provider_line = Line::start(SocketAddr::from(([127, 0, 0, 1], provider.tls_port))).await;
    let faketime = clock::library();
    if faketime.is_none() {
        println!("skipped: clock steps, because libfaketime isn't installed");
    }
    if !cluster.has_disks() {
        println!("skipped: a full disk, because no file system can be mounted");
    }
    let (mut lines, mut clocks, mut invocations) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..HOSTS.len() {
        let line = Line::start(cluster.address()).await;
        let mut invocation = invocation(gateway, provider, line.port(), provider_line.port());
        lines.push(line);
        if let Some(library) = &faketime {
            let clock = Clock::new(
                library.clone(),
                folder.path().join(format!("clock-{number}")),
            );
            for (name, value) in clock.variables() {
                invocation = invocation.variable(name, value);
            }
            clocks.push(clock);
        }
        invocations.push(invocation);
    }
    Scene {
        cluster,
        fleet: Fleet::start_each(invocations, &HOSTS, "chaos").await,
        database_lines: lines,
        provider_line,
        clocks,
    }
}

fn invocation(gateway: &Gateway, provider: &Provider, database: u16, mail: u16) -> Invocation {
    let url = format!("postgres://postgres@127.0.0.1:{database}/mailgate?sslmode=disable");
    let mut invocation = serve::with_plugins(serve::replica(gateway), mailboxes::plugins(provider))
        .set("DATABASE__URL", url)
        .set("PLUGINS__PLUGIN_B__SMTP_PORT", mail.to_string())
        .set("LIMITS__REQUESTS_PER_SECOND", "100000")
        .set("LIMITS__REQUESTS_BURST", "100000")
        .set("SENDING__RETRY_SECONDS", "1,1,1,1,1,1,1,1,1,1")
        .set("WEBHOOKS__ALLOW_PRIVATE", "true");
    for (name, value) in gateway.sandbox.payments.section() {
        let name = format!("PAYPROV__{}", name.to_uppercase());
        invocation = invocation.set(&name, value.as_str().unwrap());
    }
    invocation
}

/// Waits until the cluster is whole, all gateways live and are reached, and messages are sent.
async fn well(scene: &mut Scene, gateway: &Gateway, balancer: &Balancer, ledger: &Ledger) {
    scene.cluster.whole().await;
    patience::until("three living gateways", async || {
        for replica in &mut scene.fleet.replicas {
            replica.supervise().await;
        }
        let Ok(mut database) = look(gateway).await else {
            return false;
        };
        let living: Result<i64, _> = sqlx::query_scalar(
            "SELECT count(*) FROM gateways WHERE ended_at IS NULL AND lease_until > now()",
        )
        .fetch_one(&mut database)
        .await;
        // One may still be ended whose lease lapses at this moment.
        for number in 0..HOSTS.len() {
            if !balancer.sees_now(number, "UP").await {
                return false;
            }
        }
        living.is_ok_and(|living| living == 3)
    })
    .await;
    let before = ledger.count("sent");
    patience::until("further messages", async || {
        ledger.count("sent") >= before + FURTHER
    })
    .await;
}

async fn look(gateway: &Gateway) -> Result<sqlx::PgConnection, sqlx::Error> {
    <sqlx::PgConnection as sqlx::Connection>::connect(&gateway.database_url).await
}

/// What has arrived at both providers. Postfix takes a message before Dovecot stores it.
async fn all_arrived(
    arrivals: Arrivals,
    provider: &Provider,
    tables: &Tables,
) -> HashMap<String, Vec<Arrival>> {
    let sent: HashSet<&str> = (tables.logs.values())
        .filter(|log| log.plugin.ends_with("_alt") || log.plugin == "plugin_b")
        .filter(|log| log.status == "sent")
        .map(|log| log.subject.as_str())
        .collect();
    let stored = async {
        loop {
            let stored = mailboxes::arrived(provider);
            if sent.iter().all(|marker| stored.contains_key(*marker)) {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    // What is missing then is found missing.
    drop(tokio::time::timeout(RECOVERED, stored).await);
    let mut all = arrivals.all().await;
    for (marker, arrived) in mailboxes::arrived(provider) {
        all.entry(marker).or_default().extend(arrived);
    }
    all
}

/// The events that have reached their endpoint, once none waits any more.
async fn received(gateway: &Gateway, receiver: &Receiver) -> BTreeSet<String> {
    let count = async || -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM webhook_queue")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap()
    };
    let began = Instant::now();
    while count().await > 0 && began.elapsed() < RECOVERED {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let deliveries = receiver.received();
    let told: BTreeSet<String> = (deliveries.iter())
        .filter(|one| {
            let event = one.json()["event"].as_str().map(str::to_owned);
            event.is_some_and(|event| event.starts_with("email."))
        })
        .map(|one| one.header("webhook-id").to_owned())
        .collect();
    println!("{} events, {} deliveries", told.len(), deliveries.len());
    told
}

/// What is billed once that is what is connected, or after a while.
async fn quantity(billed: &Billed, mailboxes: usize) -> history::Billed {
    let connected = i64::try_from(mailboxes).unwrap();
    let active = sqlx::query_scalar("SELECT count(*) FROM mailboxes WHERE status = 'active'")
        .fetch_one(&mut billed.gateway.database().await)
        .await
        .unwrap();
    let began = Instant::now();
    while billed.quantity().await != Some(connected) && began.elapsed() < RECOVERED {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let billed = history::Billed {
        connected,
        active,
        quantity: billed.quantity().await,
    };
    println!("{billed:?}");
    billed
}
