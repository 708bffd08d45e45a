//! The database's machine is lost under load, and its synchronous standby takes its place behind the one address
//! that the gateway knows: nothing that was answered is lost, and nothing is sent twice.
//!
//! `MAILGATE_CRASH_FAILOVERS=1` says how often (`make crash` takes five).

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sqlx::{ConnectOptions as _, PgConnection};

use super::clients::{Account, Clients};
use super::database::{DurablePostgres, NAME};
use super::ledger::Ledger;
use super::program::Program;
use super::provider::{Arrivals, UnsteadyLine};
use super::{
    MOMENT, SETTLED, invocation, pause, recorded, seed, sends_again, settle, tables, two_apps,
};
use crate::history::rules;
use crate::peers::process::{Household, find};
use crate::support::gateway::Gateway;
use crate::support::{database, patience, ports};

/// Messages that are answered as sent before the machine is lost.
const BEFORE: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_takes_over_all_that_was_answered() {
    let times = std::env::var("MAILGATE_CRASH_FAILOVERS").unwrap_or_else(|_| "1".to_owned());
    let times: u64 = times.parse().expect("MAILGATE_CRASH_FAILOVERS is a number");
    for time in 0..times {
        Box::pin(fail_over(seed().wrapping_add(time))).await;
    }
}

async fn fail_over(seed: u64) {
    println!("MAILGATE_CRASH_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut pair = Pair::start().await;
    let gateway = Gateway::builder().database(&pair.url()).start().await;
    let unheard = two_apps(&gateway).await;
    gateway.stop_daemon().await;
    let line = UnsteadyLine::start(&gateway, seed).await;
    let arrivals = Arrivals::collect(gateway.sandbox.inbox.clone());
    let name = format!("failover-{seed}");
    let invocation = invocation(&gateway, &line);
    let mut program = Program::start(&invocation, Ipv4Addr::LOCALHOST, &name).await;
    let ledger = Ledger::default();
    let account = Account {
        base_url: format!("http://{}", program.http),
        starttls: program.starttls,
        tls: program.tls,
        ..Account::of(&gateway)
    }
    .owned(&gateway)
    .await;
    let accounts = [account.clone(), account.for_app(&gateway, &unheard).await];
    let clients = Clients::start(&accounts, &ledger, seed, u32::MAX);

    patience::until("messages before the loss", async || {
        ledger.count("sent") >= BEFORE
    })
    .await;
    pause(&mut random, MOMENT).await;
    pair.lose_primary().await;
    if seed.is_multiple_of(2) {
        // Only the standby is left, which reads but doesn't write.
        let ready = format!("http://{}/readyz", program.http);
        patience::until("a gateway that is not ready", async || {
            let answer = reqwest::get(&ready).await.expect("it answers");
            answer.status() == 503
        })
        .await;
    } else {
        pause(&mut random, MOMENT).await;
    }
    pair.promote().await;
    for _ in 0..10 {
        sends_again(&ledger, &mut program, seed).await;
    }

    let unanswered = clients.finish(SETTLED).await;
    let left = settle(&gateway, SETTLED).await;
    let arrived = arrivals.all().await;
    let tables = tables::read(&mut gateway.database().await).await;
    program.terminate().await;
    ledger.tell(&tables, &arrived);
    let (app, unheard) = (gateway.app.id, Some(unheard.id));
    let history = recorded(&ledger, arrived, tables, app, unheard);
    let mut wrong = rules::broken(&history);
    wrong.extend(left);
    wrong.extend(unanswered);
    assert!(
        wrong.is_empty(),
        "MAILGATE_CRASH_SEED={seed}: {} things are wrong; the gateway's log is {}\n{}",
        wrong.len(),
        program.log().display(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    program.forget_log();
    gateway.stop().await;
}

/// A Postgres and its synchronous standby behind one address.
struct Pair {
    primary: DurablePostgres,
    household: Household,
    port: u16,
}

impl Pair {
    async fn start() -> Self {
        let primary = DurablePostgres::start().await;
        let mut database = database::connect(&primary.create_database().await).await;
        let pair = Self {
            household: Household::new(),
            port: ports::reserve::<1>()[0],
            primary,
        };
        pair.start_standby().await;
        execute(
            &mut database,
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
        )
        .await;
        execute(&mut database, "SELECT pg_reload_conf()").await;
        patience::until("a synchronous standby", async || {
            let state = sqlx::query_scalar("SELECT sync_state FROM pg_stat_replication")
                .fetch_optional(&mut database)
                .await;
            state.unwrap() == Some("sync".to_owned())
        })
        .await;
        pair.start_balancer().await;
        pair
    }

    /// The address that leads to whichever of them serves.
    fn url(&self) -> String {
        let port = self.port;
        format!("postgres://postgres@127.0.0.1:{port}/{NAME}?sslmode=disable")
    }

    /// The machine is gone, with all that the standby hasn't heard.
    async fn lose_primary(&mut self) {
        self.primary.kill().await;
    }

    /// The standby is the primary from now on, and waits for no other.
    async fn promote(&self) {
        let mut standby = self.standby().await.expect("the standby answers");
        execute(&mut standby, "SELECT pg_promote(true, 300)").await;
    }

    async fn standby(&self) -> Option<PgConnection> {
        let folder = self.household.folder().join("socket");
        let url = format!(
            "postgres://postgres@localhost/{NAME}?host={}",
            folder.display()
        );
        let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
        options.connect().await.ok()
    }

    async fn start_standby(&self) {
        let (cluster, programs) = (self.primary.cluster(), self.primary.programs());
        let owner = fs::metadata(cluster).unwrap();
        let own_folder = |name: &str| -> PathBuf {
            let folder = self.household.folder().join(name);
            fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
            chown(&folder, Some(owner.uid()), Some(owner.gid())).unwrap();
            folder
        };
        let (data, socket) = (own_folder("standby"), own_folder("socket"));
        let command = |name: &str| {
            let mut command = Command::new(programs.join(name));
            command
                .uid(owner.uid())
                .gid(owner.gid())
                .current_dir("/")
                .arg("--pgdata")
                .arg(&data);
            command
        };
        let mut copy = command("pg_basebackup");
        copy.arg("--host").arg(self.primary.socket()).args([
            "--username=postgres",
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--wal-method=stream",
        ]);
        let copied = tokio::process::Command::from(copy).output();
        let copied = tokio::time::timeout(patience::PATIENCE, copied).await;
        let copied = copied.expect("it ends").unwrap();
        let told = String::from_utf8_lossy(&copied.stderr);
        assert!(copied.status.success(), "pg_basebackup: {told}");

        let mut server = Command::new(programs.join("postgres"));
        server
            .uid(owner.uid())
            .gid(owner.gid())
            .current_dir("/")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&socket)
            .args(["-c", "listen_addresses=", "-c", "max_connections=200"]);
        self.household.add("standby", &mut server);
        patience::until("a standby", async || self.standby().await.is_some()).await;
    }

    /// The standby is asked for nothing while the primary answers.
    async fn start_balancer(&self) {
        let program = find("haproxy").expect("haproxy isn't installed: run tests/peers/install");
        let folder = self.household.folder();
        let socket = |folder: &Path| format!("unix@{}/.s.PGSQL.5432", folder.display());
        let configuration = format!(
            "defaults\n    mode tcp\n    timeout connect 2s\n    timeout client 1h\n    timeout server 1h\n    timeout check 5s\n\
             listen postgres\n    bind 127.0.0.1:{}\n    option pgsql-check user postgres\n    \
             default-server check inter 200ms fall 2 rise 1 on-marked-down shutdown-sessions\n    \
             server primary {}\n    server standby {} backup\n",
            self.port,
            socket(&self.primary.socket()),
            socket(&folder.join("socket")),
        );
        let path = folder.join("haproxy.cfg");
        fs::write(&path, configuration).unwrap();
        let mut command = Command::new(program);
        self.household
            .add("haproxy", command.arg("-db").arg("-f").arg(path));
        self.household.wait_for_ports("haproxy", &[self.port]).await;
    }
}

async fn execute(database: &mut PgConnection, statement: &'static str) {
    sqlx::query(statement).execute(database).await.unwrap();
}
