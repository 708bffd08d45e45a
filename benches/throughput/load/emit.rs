//! What happens to apps: events, committed in batches, so many ahead of the receiver as it takes to keep
//! the gateway busy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chrono::Utc;
use mailgate_storage::webhook_messages;
use mailgate_types::event::{EmailEvent, Emission, Event};
use mailgate_types::ids::{AppId, LogId};
use mailgate_types::metadata::Metadata;
use mailgate_types::plugin::Plugin;
use serde::{Deserialize, Serialize};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{MEASURED, MEASURING, Outcome, Report};

/// Events of one commit.
const BATCH: usize = 250;

/// How far the events are ahead of the receiver.
const AHEAD: u64 = 5_000;

/// Longest that the last deliveries may take.
const DRAIN: Duration = Duration::from_mins(1);

/// What happens.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Emitting {
    /// The database.
    pub database_url: String,
    /// Whose events: each in turn.
    pub apps: Vec<Uuid>,
    /// Tells how many have arrived.
    pub count_url: String,
}

/// `email.sent`, with texts of the usual length.
pub fn event() -> Event {
    Event::EmailSent {
        email: EmailEvent {
            log_id: LogId::at(Utc::now()),
            from_address: "ada.lovelace@bench.example".to_owned(),
            to_address: "charles.babbage@bench.example".to_owned(),
            subject: "How fast is it, and what does it cost?".to_owned(),
            plugin: Plugin::A,
            metadata: Metadata::default(),
        },
        message_id: Some("<0197a3c1-8f1e-7f00-8000-5a6b7c8d9e0f@bench.example>".to_owned()),
    }
}

/// Deliveries within the measured time; returns once all have arrived.
pub(super) async fn measure(job: &Emitting, [warm_up, measured]: [Duration; 2]) -> Outcome<Report> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    let arrived = async || -> Outcome<u64> {
        Ok(http
            .get(&job.count_url)
            .send()
            .await?
            .text()
            .await?
            .parse()?)
    };
    let before = arrived().await?;
    let emitted = AtomicU64::new(0);
    let mut database = PgConnection::connect(&job.database_url).await?;
    let emitting = async {
        let mut next = 0;
        loop {
            let ahead = emitted.load(Ordering::Relaxed) - (arrived().await? - before);
            if ahead > AHEAD {
                tokio::time::sleep(Duration::from_millis(2)).await;
                continue;
            }
            let emissions: Vec<Emission> = (0..BATCH)
                .map(|number| {
                    Emission::of(AppId(job.apps[(next + number) % job.apps.len()]), event())
                })
                .collect();
            next += BATCH;
            webhook_messages::emit(&mut database, &emissions, Utc::now()).await?;
            emitted.fetch_add(u64::try_from(BATCH)?, Ordering::Relaxed);
        }
    };
    let measuring = async {
        tokio::time::sleep(warm_up).await;
        let (began, first) = (Instant::now(), arrived().await?);
        println!("{MEASURING}");
        tokio::time::sleep(measured).await;
        let last = arrived().await?;
        println!("{MEASURED}");
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>((last - first, began.elapsed()))
    };
    let (messages, took) = tokio::select! {
        ended = emitting => { let never: Outcome<std::convert::Infallible> = ended; never.map(|never| match never {})? }
        measured = measuring => measured?,
    };
    // A batch that was under way may have been committed.
    let total = loop_until_quiet(&arrived).await? - before;
    if total < emitted.load(Ordering::Relaxed) {
        return Err(format!("{emitted:?} events were committed, and {total} arrived").into());
    }
    Ok(Report {
        messages,
        total,
        seconds: took.as_secs_f64(),
        p50: 0.0,
        p99: 0.0,
    })
}

async fn loop_until_quiet(arrived: &impl AsyncFn() -> Outcome<u64>) -> Outcome<u64> {
    let deadline = Instant::now() + DRAIN;
    let mut last = 0;
    loop {
        let now = arrived().await?;
        if now == last || Instant::now() > deadline {
            return Ok(now);
        }
        last = now;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
}
