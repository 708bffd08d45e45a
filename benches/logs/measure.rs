//! Each report over both logs, through the gateway's own functions, and `count(*)` beside them.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use mailgate_domain::reports::{AppReference, Filter, Period, Start};
use mailgate_types::ids::LogId;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::Outcome;
use super::log::Log;

/// How often each report is asked for: to warm up, and measured.
const WARM: usize = 30;
const TIMES: usize = 300;

/// Rows of a page.
const PAGE: usize = 20;

/// Times of 10 thousand rows' figure, milliseconds of a report, times faster than `count(*)`.
const GROWTH: f64 = 3.0;
const PAGE_AT_MOST: f64 = 5.0;
const FASTER: f64 = 40.0;

/// A report by its name.
#[derive(Debug, Clone)]
enum Report {
    Logs(Filter, i64),
    Log(LogId),
    Stats,
    EmailStats(Period, Option<AppReference>),
}

#[derive(Debug, Clone, Copy)]
struct Figures {
    p50: f64,
    p99: f64,
}

pub async fn run(few: &Log, many: &Log) -> Outcome<()> {
    println!(
        "{} apps of one subscriber, 90 days; milliseconds, page and exact total together",
        many.apps.len()
    );
    println!();
    println!(
        "{:<52} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "",
        format!("{} rows", few.rows),
        "",
        format!("{} rows", many.rows),
        "",
        ""
    );
    println!(
        "{:<52} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "", "p50", "p99", "p50", "p99", "growth"
    );
    let (few_reports, many_reports) = (reports(few).await?, reports(many).await?);
    let mut slowest: (f64, f64) = (0.0, 0.0);
    let mut first_page = None;
    for ((name, of_few), (_, of_many)) in few_reports.into_iter().zip(many_reports) {
        let (few, many) = (figures(few, &of_few).await?, figures(many, &of_many).await?);
        let growth = many.p99 / few.p99;
        println!(
            "{name:<52} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {growth:>7.2}",
            few.p50, few.p99, many.p50, many.p99
        );
        slowest = (slowest.0.max(growth), slowest.1.max(many.p99));
        first_page.get_or_insert(many.p50);
    }
    println!();
    target(
        &format!("each p99 grows {:.2} times at most", slowest.0),
        &format!("at most {GROWTH}"),
        slowest.0 <= GROWTH,
    );
    target(
        &format!("the slowest p99 is {:.2} ms", slowest.1),
        &format!("at most {PAGE_AT_MOST} ms"),
        slowest.1 <= PAGE_AT_MOST,
    );
    let counted = count(many).await?.as_secs_f64() * 1_000.0;
    let times = counted / first_page.unwrap_or(counted);
    target(
        &format!(
            "count(*) of the same rows takes {counted:.0} ms, {times:.0} times a first page with its total",
        ),
        &format!("at least {FASTER}"),
        times >= FASTER,
    );
    Ok(())
}

/// The reports, and how deep the deep pages are: as many tenths of the log in both.
async fn reports(log: &Log) -> Outcome<Vec<(&'static str, Report)>> {
    let deep = i64::try_from(log.rows / 10)?;
    let of_first = log.apps.first().ok_or("there are no apps")?;
    let of_last = log.apps.last().ok_or("there are no apps")?;
    let app = |app: &mailgate_types::ids::AppId| AppReference::parse(&app.to_string());
    let (first, last) = (app(of_first)?, app(of_last)?);
    let all = Filter::default();
    let of_app = |app: &AppReference| Filter {
        app: Some(app.clone()),
        ..Filter::default()
    };
    let status = |status| Filter {
        status: Some(status),
        ..Filter::default()
    };
    let plugin = Filter {
        plugin: Some(Plugin::B),
        ..Filter::default()
    };
    let cut = Filter {
        from: Some(milliseconds(-70)?),
        before: Some(milliseconds(-10)?),
        ..Filter::default()
    };
    let id: Uuid = middle(&log.pool).await?;
    Ok(vec![
        ("/logs, first page", Report::Logs(all.clone(), 0)),
        (
            "/logs, a tenth of all rows deep",
            Report::Logs(all.clone(), deep),
        ),
        ("/logs, nine tenths deep", Report::Logs(all, deep * 9)),
        (
            "/logs of one app (a fifth of all), first page",
            Report::Logs(of_app(&first), 0),
        ),
        (
            "/logs of one app (a fifth of all), deep",
            Report::Logs(of_app(&first), deep / 10),
        ),
        ("/logs of a small app", Report::Logs(of_app(&last), 0)),
        (
            "/logs, failed_perm (1 in 5,000)",
            Report::Logs(status(LogStatus::FailedPerm), 0),
        ),
        (
            "/logs, sent, a tenth deep",
            Report::Logs(status(LogStatus::Sent), deep),
        ),
        (
            "/logs, plugin_b_alt (1 in 20), first page",
            Report::Logs(plugin.clone(), 0),
        ),
        (
            "/logs, plugin_b_alt (1 in 20), deep",
            Report::Logs(plugin, deep / 50),
        ),
        (
            "/logs, 60 days cut within hours, first page",
            Report::Logs(cut.clone(), 0),
        ),
        (
            "/logs, 60 days cut within hours, deep",
            Report::Logs(cut, deep),
        ),
        ("/logs/{log_id}", Report::Log(LogId(id))),
        ("/stats", Report::Stats),
        ("/email-stats, days", Report::EmailStats(Period::Day, None)),
        (
            "/email-stats, months",
            Report::EmailStats(Period::Month, None),
        ),
        (
            "/email-stats, months of one app",
            Report::EmailStats(Period::Month, Some(first)),
        ),
    ])
}

/// A moment within an hour, some days ago.
fn milliseconds(days: i64) -> Outcome<chrono::DateTime<Utc>> {
    let at = Utc::now() + TimeDelta::days(days);
    let hour = at.timestamp_millis() / 3_600_000 * 3_600_000;
    chrono::DateTime::from_timestamp_millis(hour + 1_234_567).ok_or_else(|| "no such moment".into())
}

async fn middle(pool: &PgPool) -> Outcome<Uuid> {
    let at = Utc::now() - TimeDelta::days(45);
    let bound = mailgate_types::ids::lowest_uuid_at(at);
    Ok(
        sqlx::query_scalar("SELECT id FROM email_logs WHERE id >= $1 ORDER BY id LIMIT 1")
            .bind(bound)
            .fetch_one(pool)
            .await?,
    )
}

async fn ask(log: &Log, report: &Report) -> Outcome<()> {
    let reports = &log.reports;
    match report {
        Report::Logs(filter, offset) => {
            let start = Start::Offset(*offset);
            let page = reports.logs(log.subscriber, filter, PAGE, start).await?;
            let left = page.total.unwrap_or_default() - offset;
            let wanted = left.clamp(0, i64::try_from(PAGE)?);
            if i64::try_from(page.logs.len())? != wanted {
                return Err(format!(
                    "a page of {} rows, not {wanted}: {filter:?}",
                    page.logs.len()
                )
                .into());
            }
        }
        Report::Log(id) => {
            reports
                .log(log.subscriber, *id)
                .await?
                .ok_or("a row is missing")?;
        }
        Report::Stats => {
            reports.stats(log.subscriber).await?;
        }
        Report::EmailStats(period, app) => {
            let app = app.as_ref();
            reports.email_stats(log.subscriber, *period, app).await?;
        }
    }
    Ok(())
}

async fn figures(log: &Log, report: &Report) -> Outcome<Figures> {
    for _ in 0..WARM {
        ask(log, report).await?;
    }
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let began = Instant::now();
        ask(log, report).await?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok(Figures {
        p50: times[TIMES / 2],
        p99: times[TIMES * 99 / 100],
    })
}

/// The fastest of three, with as many workers as Postgres likes to take.
async fn count(log: &Log) -> Outcome<Duration> {
    let mut fastest = Duration::MAX;
    for _ in 0..3 {
        let began = Instant::now();
        let count: i64 =
            sqlx::query_scalar("SELECT count(*) FROM email_logs WHERE subscriber_id = $1")
                .bind(log.subscriber.0)
                .fetch_one(&log.pool)
                .await?;
        fastest = fastest.min(began.elapsed());
        let total = log
            .reports
            .logs(log.subscriber, &Filter::default(), 1, Start::Offset(0))
            .await?
            .total;
        if Some(count) != total {
            return Err(format!("count(*) says {count}, and the report {total:?}").into());
        }
    }
    Ok(fastest)
}

pub fn target(result: &str, wanted: &str, is_met: bool) {
    let verdict = if is_met { "ok" } else { "missed" };
    println!("{result:<84} {wanted:<16} {verdict}");
}
