//! Searches, pages by cursor and exports over both logs.

use std::time::Instant;

use chrono::Utc;
use mailgate_domain::reports::{Filter, Search, Start};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::LogId;
use uuid::Uuid;

use super::Outcome;
use super::fill::{COPIED_ADDRESS, HOT_ADDRESS, mailbox};
use super::log::Log;
use super::measure::target;

/// How often each is asked for: to warm up, and measured.
const WARM: usize = 30;
const TIMES: usize = 300;

/// Rows of a page, and rows of an export that are measured.
const PAGE: usize = 20;
const EXPORTED: u64 = 1_000_000;

/// Milliseconds: of an indexed search (p99), and of a page by cursor (p50).
const SEARCH_AT_MOST: f64 = 20.0;
const CURSOR_AT_MOST: f64 = 5.0;

struct Asked {
    name: &'static str,
    filter: Filter,
    start: Start,
}

pub async fn run(few: &Log, many: &Log) -> Outcome<()> {
    println!();
    println!("searches and pages by cursor; milliseconds");
    let (mut search, mut cursor): (f64, f64) = (0.0, 0.0);
    let (of_few, of_many) = (asked(few).await?, asked(many).await?);
    for (few_asked, many_asked) in of_few.iter().zip(&of_many) {
        let (few_p50, few_p99) = figures(few, few_asked).await?;
        let (p50, p99) = figures(many, many_asked).await?;
        let name = many_asked.name;
        println!("{name:<52} {few_p50:>8.2} {few_p99:>8.2} {p50:>8.2} {p99:>8.2}");
        if matches!(many_asked.start, Start::At(_)) {
            cursor = cursor.max(p50);
        } else {
            search = search.max(p99);
        }
    }
    println!();
    target(
        &format!("the slowest indexed search has a p99 of {search:.2} ms"),
        &format!("at most {SEARCH_AT_MOST} ms"),
        search <= SEARCH_AT_MOST,
    );
    target(
        &format!("the slowest page by cursor has a p50 of {cursor:.2} ms"),
        &format!("at most {CURSOR_AT_MOST} ms"),
        cursor <= CURSOR_AT_MOST,
    );
    subject(many).await?;
    export(many).await
}

/// What is asked for: one row's own recipient, Message-ID, id and mailbox; the address that a tenth goes to; pages.
async fn asked(log: &Log) -> Outcome<Vec<Asked>> {
    let bound = mailgate_types::ids::lowest_uuid_at(Utc::now() - chrono::TimeDelta::days(45));
    let (id, message_id, to): (Uuid, String, String) = sqlx::query_as(
        "SELECT id, message_id, to_address FROM email_logs
         WHERE id >= $1 AND to_address <> $2 ORDER BY id LIMIT 1",
    )
    .bind(bound)
    .bind(HOT_ADDRESS)
    .fetch_one(&log.pool)
    .await?;
    let searched = |name, search| Asked {
        name,
        filter: Filter {
            search,
            ..Filter::default()
        },
        start: Start::Offset(0),
    };
    let to_address = |address: &str| -> Outcome<Search> {
        Ok(Search {
            recipient: Some(EmailAddress::parse(address)?),
            ..Search::default()
        })
    };
    let all = |name, start| Asked {
        name,
        filter: Filter::default(),
        start,
    };
    let mut asked = vec![
        searched("to_address, one message", to_address(&to)?),
        searched("to_address, a tenth of all", to_address(HOT_ADDRESS)?),
        searched("to_address, copies, 1 in 50", to_address(COPIED_ADDRESS)?),
        searched("to_address, nobody's", to_address("nobody@example.org")?),
        searched(
            "message_id",
            Search {
                message_id: Some(message_id),
                ..Search::default()
            },
        ),
        searched(
            "log_id",
            Search {
                log: Some(LogId(id)),
                ..Search::default()
            },
        ),
        searched(
            "credential_id, 1 in 10,000",
            Search {
                credential: Some(mailbox(17)),
                ..Search::default()
            },
        ),
    ];
    let deep = i64::try_from(log.rows / 10)?;
    for (name, offset) in [
        ("cursor, second page", 0),
        ("cursor, a tenth deep", deep),
        ("cursor, nine tenths deep", deep * 9),
    ] {
        let (reports, filter) = (&log.reports, Filter::default());
        let page = reports.logs(log.subscriber, &filter, PAGE, Start::Offset(offset));
        let next = page.await?.next.ok_or("there is no next page")?;
        asked.push(all(name, Start::At(next)));
    }
    let hot = Filter {
        search: to_address(HOT_ADDRESS)?,
        ..Filter::default()
    };
    let page = log
        .reports
        .logs(log.subscriber, &hot, PAGE, Start::Offset(200));
    let next = page.await?.next.ok_or("there is no next page")?;
    asked.push(Asked {
        name: "cursor, to_address, a tenth of all",
        filter: hot,
        start: Start::At(next),
    });
    Ok(asked)
}

async fn figures(log: &Log, asked: &Asked) -> Outcome<(f64, f64)> {
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..WARM + TIMES {
        let began = Instant::now();
        let page = (log.reports).logs(log.subscriber, &asked.filter, PAGE, asked.start);
        let page = page.await?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
        if page.searched_until.is_some() {
            return Err(format!("{}: the time was over", asked.name).into());
        }
    }
    times.drain(..WARM);
    times.sort_by(f64::total_cmp);
    Ok((times[TIMES / 2], times[TIMES * 99 / 100]))
}

/// A subject that no message has: how far back one search comes.
async fn subject(log: &Log) -> Outcome<()> {
    let filter = Filter {
        search: Search {
            subject: Some("no such subject".to_owned()),
            ..Search::default()
        },
        ..Filter::default()
    };
    let (mut start, mut pages, began) = (Start::Offset(0), 0, Instant::now());
    let mut first = None;
    loop {
        let page = (log.reports)
            .logs(log.subscriber, &filter, PAGE, start)
            .await?;
        pages += 1;
        first.get_or_insert((began.elapsed(), page.searched_until));
        match page.next {
            Some(next) => start = Start::At(next),
            None => break,
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let (took, until) = first.ok_or("there was no page")?;
    let back = until.map_or(90, |until| (Utc::now() - until).num_days());
    println!(
        "subject, none: the first search came {back} days back in {:.1} s; all {} rows in {pages} searches, {seconds:.1} s ({:.0} rows/s)",
        took.as_secs_f64(),
        log.rows,
        float(log.rows) / seconds
    );
    Ok(())
}

/// The rows of an export, as fast as they are taken.
async fn export(log: &Log) -> Outcome<()> {
    let mut export = log
        .reports
        .export(log.subscriber, &Filter::default())
        .await?;
    let (mut rows, mut most, began) = (0_u64, 0, Instant::now());
    while rows < EXPORTED.min(log.rows) {
        let Some(piece) = export.next().await? else {
            break;
        };
        most = most.max(piece.len());
        rows += u64::try_from(piece.len())?;
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "export: {rows} rows in {seconds:.1} s ({:.0} rows/s), {most} rows in memory at most; {}",
        float(rows) / seconds,
        memory()?
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn float(number: u64) -> f64 {
    number as f64
}

/// The most memory that this process has had.
fn memory() -> Outcome<String> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    Ok(line.ok_or("a process without memory")?.to_owned())
}
