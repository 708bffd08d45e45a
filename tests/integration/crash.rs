//! Sudden ends: the gateway and its database are killed, and the line between them cut, at moments that
//! nobody chose, under load; afterwards every message is accounted for: nothing is lost, and nothing was
//! sent twice. Some messages are scheduled, and some are cancelled while they wait: none leaves before its time, and none
//! that was answered as cancelled leaves at all.
//!
//! `MAILGATE_CRASH_KILLS=20,3,6` says how often the gateway is killed, Postgres is killed, and answers of Postgres
//! are lost (`make crash` takes ten times as many); `MAILGATE_CRASH_SEED` repeats the moments and the traffic of an
//! earlier run. [`failover`] has a setting of its own.

pub mod clients;
pub mod database;
pub mod database_line;
mod failover;
pub mod ledger;
pub mod program;
pub mod provider;
pub mod rest;
pub mod smtp;
pub mod tables;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use mailgate_domain::accounts::CreatedApp;
use mailgate_types::ids::AppId;
use mailgate_types::plugin::Plugin;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::command_line::process::Invocation;
use crate::command_line::serve;
use crate::history::{Arrival, History, Tables, rules};
use crate::support::gateway::{Gateway, MAILBOX, connect, create_app};
use clients::{Account, Clients};
use database::DurablePostgres;
use database_line::DatabaseLine;
use ledger::{Ledger, Told};
use program::Program;
use provider::{Arrivals, UnsteadyLine};

/// The second mailbox, at `plugin_b`; its provider is reached over an unsteady line.
pub const SECOND_MAILBOX: &str = "bea@sandbox.example";

/// The moment of a kill, in milliseconds after the gateway or the database has begun to answer.
const MOMENT: std::ops::RangeInclusive<u64> = 5..=400;

/// How long answers of Postgres are lost before the line is cut, in milliseconds.
const DEAF: std::ops::RangeInclusive<u64> = 1..=60;

/// How long a cut line stays away at most, in milliseconds: longer than the gateway tries to store a
/// message while its sender waits.
const OUTAGE: u64 = 5_000;

/// What fails four times waits to the end of the test.
const PATIENT: &str = "1,1,2,900";

/// What fails four times has failed.
const IMPATIENT: &str = "1,1,2";

/// Longest that a message which nobody holds any more may wait to be taken up, and to be ended.
const SETTLED: Duration = Duration::from_mins(5);

/// Longest that the gateway may take to send again after a kill.
const RECOVERED: Duration = Duration::from_mins(3);

/// How often the test looks for what it waits for.
const POLL: Duration = Duration::from_millis(250);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_and_nothing_is_sent_twice() {
    let seed = seed();
    let [gateway_kills, database_kills, losses] = kills();
    println!("MAILGATE_CRASH_SEED={seed}, {gateway_kills},{database_kills},{losses} kills");
    let mut random = StdRng::seed_from_u64(seed);

    let mut postgres = DurablePostgres::start().await;
    let url = postgres.create_database().await;
    let gateway = Gateway::builder().database(&url).start().await;
    let unheard = two_apps(&gateway).await;
    gateway.stop_daemon().await;

    let line = UnsteadyLine::start(&gateway, seed).await;
    let arrivals = Arrivals::collect(gateway.sandbox.inbox.clone());
    let database_line = DatabaseLine::start(postgres.socket());
    let invocation = invocation(&gateway, &line).set("DATABASE__URL", database_line.url());
    let mut program =
        Program::start(&invocation, Ipv4Addr::LOCALHOST, &format!("crash-{seed}")).await;
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

    let began = Instant::now();
    for kill in 1..=gateway_kills {
        // Half of its lives are cut off in the middle of the traffic, the others in their first moments.
        if kill.is_multiple_of(2) {
            sends_again(&ledger, &mut program, seed).await;
        }
        pause(&mut random, MOMENT).await;
        program.kill().await;
        program.restart().await;
        tell_progress("gateway killed", kill, gateway_kills, began, &ledger);
    }
    program.kill().await;
    program.set("SENDING__RETRY_SECONDS", IMPATIENT);
    program.restart().await;
    ledger.set_lives_on();

    let began = Instant::now();
    for kill in 1..=database_kills {
        sends_again(&ledger, &mut program, seed).await;
        pause(&mut random, MOMENT).await;
        postgres.kill().await;
        postgres.restart().await;
        tell_progress("Postgres killed", kill, database_kills, began, &ledger);
    }

    let began = Instant::now();
    for loss in 1..=losses {
        sends_again(&ledger, &mut program, seed).await;
        pause(&mut random, MOMENT).await;
        let deaf = Duration::from_millis(random.random_range(DEAF));
        let outage = match loss % 4 {
            0 => random.random_range(0..OUTAGE),
            _ => 0,
        };
        database_line
            .lose_answers(deaf, Duration::from_millis(outage))
            .await;
        tell_progress("answers lost", loss, losses, began, &ledger);
    }
    sends_again(&ledger, &mut program, seed).await;

    let began = Instant::now();
    let unanswered = clients.finish(SETTLED).await;
    let left = settle(&gateway, SETTLED).await;
    println!("settled within {:.1?}", began.elapsed());
    let arrived = arrivals.all().await;
    let tables = tables::read(&mut gateway.database().await).await;
    program.terminate().await;
    ledger.tell(&tables, &arrived);
    let history = recorded(&ledger, arrived, tables, gateway.app.id, Some(unheard.id));
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
    if gateway_kills >= 20 {
        was_varied(&ledger, seed);
    }
    program.forget_log();
    gateway.stop().await;
}

/// What is known of a run at its end.
pub fn recorded(
    ledger: &Ledger,
    arrived: HashMap<String, Vec<Arrival>>,
    tables: Tables,
    heard: AppId,
    unheard: Option<AppId>,
) -> History {
    let mailboxes = [Plugin::A, Plugin::B].map(|plugin| (plugin, smtp::mailbox(plugin).to_owned()));
    History {
        entries: ledger.all(),
        arrived,
        tables,
        mailboxes: mailboxes.into(),
        heard: heard.0,
        unheard: unheard.map(|app| app.0),
        received: None,
        billed: None,
    }
}

/// What the test is about has taken place.
fn was_varied(ledger: &Ledger, seed: u64) {
    let words = [
        "nothing",
        "sent",
        "queued",
        "refused",
        "scheduled",
        "cancelled",
    ];
    for told in words {
        assert!(
            ledger.count(told) > 0,
            "seed {seed}: nobody was told {told}"
        );
    }
}

/// A gateway on the database of `gateway`, whose second provider is reached over `line`.
pub fn invocation(gateway: &Gateway, line: &UnsteadyLine) -> Invocation {
    serve::replica(gateway)
        .set("PLUGINS__PLUGIN_B__SMTP_PORT", line.port().to_string())
        .set("LIMITS__REQUESTS_PER_SECOND", "100000")
        .set("LIMITS__REQUESTS_BURST", "100000")
        .set("SENDING__RETRY_SECONDS", PATIENT)
}

/// An endpoint listens to the gateway's own app, and nobody to the one that this answers.
async fn two_apps(gateway: &Gateway) -> CreatedApp {
    gateway.connect(None, Plugin::B, SECOND_MAILBOX).await;
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/mail'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let (_, unheard) = create_app(&gateway.daemon, "Unheard").await;
    for (plugin, mailbox) in [(Plugin::A, MAILBOX), (Plugin::B, SECOND_MAILBOX)] {
        let (daemon, sandbox) = (&gateway.daemon, &gateway.sandbox);
        connect(daemon, sandbox, unheard.id, None, plugin, mailbox).await;
    }
    unheard
}

pub fn seed() -> u64 {
    match std::env::var("MAILGATE_CRASH_SEED") {
        Ok(seed) => seed.parse().expect("MAILGATE_CRASH_SEED is a number"),
        Err(_) => rand::random_range(0..1_000_000_000),
    }
}

/// How often the gateway is killed, Postgres is killed, and answers of Postgres are lost.
fn kills() -> [u32; 3] {
    let text = std::env::var("MAILGATE_CRASH_KILLS").unwrap_or_else(|_| "20,3,6".to_owned());
    let numbers: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
    (numbers.ok().and_then(|numbers| numbers.try_into().ok()))
        .expect("MAILGATE_CRASH_KILLS is three numbers, as in 20,3,6")
}

async fn pause(random: &mut StdRng, milliseconds: std::ops::RangeInclusive<u64>) {
    tokio::time::sleep(Duration::from_millis(random.random_range(milliseconds))).await;
}

fn tell_progress(what: &str, kill: u32, of: u32, began: Instant, ledger: &Ledger) {
    if kill.is_multiple_of(20) || kill == of {
        println!(
            "{what} {kill} of {of} times in {:.0?}; {}",
            began.elapsed(),
            ledger.summary()
        );
    }
}

/// Waits until further messages are answered as sent: whatever happened, the gateway has recovered by
/// itself.
async fn sends_again(ledger: &Ledger, program: &mut Program, seed: u64) {
    let (before, began) = (ledger.count("sent"), Instant::now());
    while ledger.count("sent") < before + 2 {
        program.must_live();
        assert!(
            began.elapsed() < RECOVERED,
            "seed {seed}: nothing was sent within {RECOVERED:?}; {}",
            program.log().display()
        );
        tokio::time::sleep(POLL).await;
    }
}

/// Waits until nobody holds a message any more and none is due soon; answers what is left.
pub async fn settle(gateway: &Gateway, patience: Duration) -> Vec<String> {
    let began = Instant::now();
    loop {
        let left: Vec<(String, i32)> = sqlx::query_as(
            "SELECT subject || ' is ' || state, attempts FROM spool
             WHERE state = 'open' OR next_attempt_at < now() + interval '1 minute'",
        )
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap();
        if left.is_empty() || began.elapsed() > patience {
            return (left.into_iter())
                .map(|(text, attempts)| format!("{text} after {attempts} attempts, at the end"))
                .collect();
        }
        tokio::time::sleep(POLL).await;
    }
}

impl Told {
    /// Whether a client that has a key is content with it.
    fn is_final(&self) -> bool {
        !matches!(self, Self::Nothing | Self::NotTaken | Self::InFlight)
    }
}
