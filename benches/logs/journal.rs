//! The journal's rate, with what the reports need and without it, by turns.

use std::time::{Duration, Instant};

use chrono::Utc;
use mailgate_storage::database::journal;
use mailgate_storage::database::pool::DedicatedConnection;
use mailgate_storage::gateways;
use mailgate_storage::spool::{Attempt, Closing, Opening};
use mailgate_types::door::Door;
use mailgate_types::ids::{AppId, CredentialId, GatewayId, LogId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::metadata::Metadata;
use mailgate_types::plugin::Plugin;
use sqlx::PgPool;

use super::Outcome;
use super::log::Log;
use super::measure::target;

/// Messages of a commit.
const BATCH: usize = 64;

/// How long a turn is measured, and how often each takes its turn.
const TURN: Duration = Duration::from_millis(500);
const TURNS: usize = 12;

/// What is left of the journal's rate when it keeps the counters.
const AT_LEAST: f64 = 0.9;

/// Takes the counters away.
const UNCOUNTED: &str = "
    CREATE TABLE nowhere (nothing integer);
    CREATE RULE uncounted AS ON INSERT TO email_counter_changes
        DO INSTEAD INSERT INTO nowhere SELECT 1 WHERE false;";

/// Takes the reports' indexes away as well: the log's index is the plain one that deleting an app needs.
const UNINDEXED: &str = "
    DROP INDEX email_logs_by_subscriber;
    DROP INDEX email_logs_by_app;
    CREATE INDEX email_logs_by_app ON email_logs (app_id, id);";

/// And brings all back, as the migration has it.
const WITH: &str = "
    DROP RULE uncounted ON email_counter_changes;
    DROP TABLE nowhere;
    DROP INDEX email_logs_by_app;
    CREATE INDEX email_logs_by_app ON email_logs (app_id, plugin, status, id);
    CREATE INDEX email_logs_by_subscriber ON email_logs (subscriber_id, plugin, status, id);";

pub async fn run(log: &Log) -> Outcome<()> {
    println!();
    for (name, apps) in [("one app", 1), ("200 apps", log.apps.len())] {
        let apps = &log.apps[..apps];
        let (mut with, mut uncounted, mut unindexed) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            with.push(rate(log, apps, true).await?);
            change(&log.pool, UNCOUNTED).await?;
            uncounted.push(rate(log, apps, false).await?);
            change(&log.pool, UNINDEXED).await?;
            unindexed.push(rate(log, apps, false).await?);
            change(&log.pool, WITH).await?;
        }
        let part = median_ratio(&with, &uncounted);
        let (with, uncounted, unindexed) = (best(&with), best(&uncounted), best(&unindexed));
        println!(
            "the journal, {BATCH} messages of {name} a commit: {:.0} messages/s, {:.1} us of CPU each; without counters {:.0}, {:.1}; without the reports' indexes either {:.0}, {:.1}",
            with.rate, with.cpu, uncounted.rate, uncounted.cpu, unindexed.rate, unindexed.cpu
        );
        target(
            &format!("{name}: {part:.3} of the rate without counters"),
            &format!("at least {AT_LEAST}"),
            part >= AT_LEAST,
        );
    }
    Ok(())
}

/// Another form of the tables, emptied.
async fn change(pool: &PgPool, statements: &'static str) -> Outcome<()> {
    sqlx::raw_sql("TRUNCATE email_logs, email_counter_changes, email_counters, spool CASCADE")
        .execute(pool)
        .await?;
    sqlx::raw_sql(statements).execute(pool).await?;
    sqlx::raw_sql("CHECKPOINT").execute(pool).await?;
    Ok(())
}

/// What a turn came to.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Messages a second.
    rate: f64,
    /// CPU time of the journal's own Postgres process for a message, in microseconds.
    cpu: f64,
}

/// The rate of the one by that of the other, turn by turn, since a turn's neighbour had the same share of the
/// machine; the one in the middle of all.
fn median_ratio(one: &[Turn], other: &[Turn]) -> f64 {
    let mut ratios: Vec<f64> = (one.iter().zip(other))
        .map(|(one, other)| one.rate / other.rate)
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// The best of all turns: whoever else is on the machine only ever slows them.
fn best(turns: &[Turn]) -> Turn {
    turns.iter().fold(
        Turn {
            rate: 0.0,
            cpu: f64::MAX,
        },
        |best, turn| Turn {
            rate: best.rate.max(turn.rate),
            cpu: best.cpu.min(turn.cpu),
        },
    )
}

/// CPU time that a process has taken, in microseconds: nanoseconds stand first in its schedstat.
fn cpu_of(pid: i32) -> Outcome<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    let nanoseconds: f64 = text
        .split_whitespace()
        .next()
        .ok_or("a process without times")?
        .parse()?;
    Ok(nanoseconds / 1_000.0)
}

/// Messages a second, opened and closed. Where they are counted, they are added up meanwhile as the
/// gateway does it.
async fn rate(log: &Log, apps: &[AppId], is_counted: bool) -> Outcome<Turn> {
    let adding = tokio::spawn({
        let reports = log.reports.clone();
        async move {
            if !is_counted {
                return;
            }
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if reports
                    .fold_counters()
                    .await
                    .is_ok_and(|added| added > 1_000)
                {
                    drop(reports.vacuum_counters().await);
                }
            }
        }
    });
    let mut connection = DedicatedConnection::new(log.pool.clone());
    let gateway = GatewayId::at(Utc::now());
    connection
        .run(async |connection| gateways::begin(connection, gateway).await)
        .await?;
    let mut next = 0;
    // Plans are made and pages taken first.
    let warm = Instant::now();
    while warm.elapsed() < TURN / 4 {
        commit(&mut connection, gateway, apps, &mut next).await?;
    }
    let pid: i32 = connection
        .run(async |connection| {
            sqlx::query_scalar("SELECT pg_backend_pid()")
                .fetch_one(connection)
                .await
        })
        .await?;
    let (began, first, cpu) = (Instant::now(), next, cpu_of(pid)?);
    while began.elapsed() < TURN {
        commit(&mut connection, gateway, apps, &mut next).await?;
    }
    let seconds = began.elapsed().as_secs_f64();
    adding.abort();
    let messages = f64::from(next - first);
    Ok(Turn {
        rate: messages / seconds,
        cpu: (cpu_of(pid)? - cpu) / messages,
    })
}

/// Messages come in and end, in two commits as in the gateway.
async fn commit(
    connection: &mut DedicatedConnection,
    gateway: GatewayId,
    apps: &[AppId],
    next: &mut u32,
) -> Outcome<()> {
    let now = Utc::now();
    let openings: Vec<Opening> = (0..BATCH)
        .map(|place| {
            let number = usize::try_from(*next).unwrap_or_default() + place;
            let app = apps[number % apps.len()];
            Opening {
                id: LogId::at(now),
                app,
                credential: CredentialId(app.0),
                from_address: "ada@example.com".to_owned(),
                to_address: "bob@example.com".to_owned(),
                cc_addresses: Vec::new(),
                bcc_addresses: Vec::new(),
                subject: "Your order has left".to_owned(),
                plugin: Plugin::A,
                message_id: Some(format!("<{number}.{now}@mail.example.com>")),
                size_bytes: 5_120,
                has_attachments: false,
                metadata: Metadata::default(),
                door: Door::Rest,
                recipients: vec!["bob@example.com".to_owned()],
                smtputf8: false,
                opened_at: now,
                key: None,
                version: None,
            }
        })
        .collect();
    let closings: Vec<Closing> = openings
        .iter()
        .map(|opening| Closing {
            id: opening.id,
            status: LogStatus::Sent,
            error_message: None,
            message_id: None,
            attempt: Some(Attempt {
                number: 1,
                at: now,
                milliseconds: 5,
            }),
        })
        .collect();
    let openings: Vec<&Opening> = openings.iter().collect();
    let closings: Vec<&Closing> = closings.iter().collect();
    let written = connection
        .run(async |connection| {
            let opened = journal::open(connection, gateway, &openings).await?;
            let written = journal::write_sent(connection, gateway, &[], &closings).await?;
            Ok(opened.and(written))
        })
        .await?;
    if !written.is_ok_and(|written| written.ended.len() == closings.len()) {
        return Err("the journal has left some of the messages".into());
    }
    *next += u32::try_from(BATCH)?;
    Ok(())
}
