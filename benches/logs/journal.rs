//! The journal's rate, with what the reports need and without it, by turns.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use mailgate::storage::journal;
use mailgate::storage::pool::OwnConnection;
use mailgate::storage::spool::{Attempt, Closing, Opening};
use mailgate::types::ids::{AppId, CredentialId, LogId};
use mailgate::types::log_status::LogStatus;
use mailgate::types::plugin::Plugin;
use sqlx::PgPool;

use super::Outcome;
use super::measure::target;
use super::place::Log;

/// Messages of a commit.
const BATCH: usize = 64;

/// How long a turn is measured, and how often each takes its turn.
const TURN: Duration = Duration::from_secs(2);
const TURNS: usize = 5;

/// What counting and the indexes may take.
const AT_LEAST: f64 = 0.9;

/// Takes away what the reports need: nothing is counted, and the log's index is the plain one that
/// deleting an app needs.
const WITHOUT: &str = "
    CREATE TABLE nowhere (nothing integer);
    CREATE RULE uncounted AS ON INSERT TO email_counter_changes
        DO INSTEAD INSERT INTO nowhere SELECT 1 WHERE false;
    DROP INDEX email_logs_by_subscriber;
    DROP INDEX email_logs_by_app;
    CREATE INDEX email_logs_by_app ON email_logs (app_id, id);";

/// And brings it back, as the migration has it.
const WITH: &str = "
    DROP RULE uncounted ON email_counter_changes;
    DROP TABLE nowhere;
    DROP INDEX email_logs_by_app;
    CREATE INDEX email_logs_by_app ON email_logs (app_id, plugin, status, id);
    CREATE INDEX email_logs_by_subscriber ON email_logs (subscriber_id, plugin, status, id);";

pub async fn run(log: &Log) -> Outcome<()> {
    println!();
    for (name, apps) in [("one app", 1), ("200 apps", log.apps.len())] {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            with.push(rate(log, &log.apps[..apps], true).await?);
            change(&log.pool, WITHOUT).await?;
            without.push(rate(log, &log.apps[..apps], false).await?);
            change(&log.pool, WITH).await?;
        }
        let (with, without) = (median(with), median(without));
        println!(
            "the journal, batches of {BATCH} messages of {name}: {with:.0} messages/s, without counters and indexes {without:.0}"
        );
        target(
            &format!("{name}: {:.3} of the rate without", with / without),
            &format!("at least {AT_LEAST}"),
            with / without >= AT_LEAST,
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

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Messages a second, opened and closed. Where they are counted, they are added up meanwhile as the
/// gateway does it.
async fn rate(log: &Log, apps: &[AppId], is_counted: bool) -> Outcome<f64> {
    let adding = tokio::spawn({
        let reports = log.reports.clone();
        async move {
            if !is_counted {
                return;
            }
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if reports.add_up().await.is_ok_and(|added| added > 1_000) {
                    drop(reports.give_back().await);
                }
            }
        }
    });
    let mut connection = OwnConnection::new(log.pool.clone());
    let mut next = 0;
    // Plans are made and pages taken first.
    let warm = Instant::now();
    while warm.elapsed() < TURN / 4 {
        commit(&mut connection, apps, &mut next).await?;
    }
    let (began, first) = (Instant::now(), next);
    while began.elapsed() < TURN {
        commit(&mut connection, apps, &mut next).await?;
    }
    let seconds = began.elapsed().as_secs_f64();
    adding.abort();
    Ok(f64::from(next - first) / seconds)
}

/// Messages come in and end, in two commits as in the gateway.
async fn commit(connection: &mut OwnConnection, apps: &[AppId], next: &mut u32) -> Outcome<()> {
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
                recipients: vec!["bob@example.com".to_owned()],
                smtputf8: false,
                opened_at: now,
                lease_until: now + TimeDelta::minutes(1),
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
    connection
        .run(async |connection| {
            journal::open(connection, &openings).await?;
            journal::write(connection, &[], &closings, &[], now).await
        })
        .await?;
    *next += u32::try_from(BATCH)?;
    Ok(())
}
