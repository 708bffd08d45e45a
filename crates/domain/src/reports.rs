//! Floor 2: reports to subscribers about their messages: the log, and statistics. Independent of `sending` and of the
//! mailboxes.
//!
//! A report is read in one snapshot of the database, so its parts agree to the message. It adds up counters of
//! months, days and hours, and reads the log only for the hours that a filter cuts through and for the rows that it
//! shows: the cost doesn't depend on the number of rows.

mod audit;
mod audit_objects;
mod by_mailbox;
mod calendar;
mod counters;
mod csv;
mod email_stats;
mod export;
mod filter;
mod log_detail;
mod logs;
mod page_range;
pub mod queues;
mod refusals;
mod scheduled;
mod stats;
mod tally;
mod turns;
mod walk;

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use tokio::sync::Semaphore;
use uuid::Uuid;

use mailgate_storage::database::pool;
use mailgate_storage::email_counters::Counts;
use mailgate_storage::email_logs::Window;
use mailgate_storage::{apps, deleted_apps};
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::{AppId, LogId, Owner, SubscriberId, moment_of};
use mailgate_types::log_status::LogStatus;

use turns::Turns;

pub use audit::{AuditFilter, AuditPage};
pub use by_mailbox::NEWEST;
pub use csv::CutOff;
pub use email_stats::{EmailStats, Period, PeriodCounts, Summary};
pub use export::{Export, ExportError, ScheduledExport};
pub use filter::{Filter, Search};
pub use log_detail::{FoundMessage, LogDetail};
pub use logs::{LogPage, Position, Start};
pub use mailgate_storage::audit_entries::{AuditObject, StoredEntry};
pub use mailgate_storage::bounces::LoggedBounce;
pub use mailgate_storage::email_attempts::LoggedAttempt;
pub use mailgate_storage::email_counters::Counts as MessageCounts;
pub use mailgate_storage::email_logs::{Details, LogRow, MailboxCounts};
pub use mailgate_storage::replies::LoggedReply;
pub use mailgate_storage::spool::waiting::Scheduled;
pub use mailgate_storage::webhook_deliveries::LoggedDelivery;
pub use refusals::{LAST, RefusalReport, Refusals};
pub use scheduled::ScheduledPage;
pub use stats::{PluginStats, Stats};
pub use turns::NoTurn;

/// The reports.
#[derive(Debug, Clone)]
pub struct Reports {
    pool: PgPool,
    clock: SharedClock,
    /// Turns at long searches, and at exports.
    searches: Turns,
    exports: Turns,
    /// Limits the exports that read from the database. One with a slow client holds only its turn.
    exports_reading: Arc<Semaphore>,
}

/// Long searches of a process at the same time; exports, and those of them that read from the database.
const SEARCHES: usize = 4;
const EXPORTS: usize = 100;
const EXPORTS_READING: usize = 4;

/// An app reference given by a caller: a UUID or a slug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppReference(String);

/// The text is neither a UUID nor a slug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an app's UUID or its app_id")]
pub struct InvalidAppReference;

/// The longest slug, including the suffix that makes it unique.
const SLUG_LENGTH: usize = 69;

impl AppReference {
    /// Parses a UUID in hyphenated form, or a slug.
    pub fn parse(text: &str) -> Result<Self, InvalidAppReference> {
        let is_slug = (1..=SLUG_LENGTH).contains(&text.len())
            && (text.bytes()).all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if is_slug || Self(text.to_owned()).id().is_some() {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidAppReference)
        }
    }

    fn id(&self) -> Option<AppId> {
        // The library accepts further forms, with braces or without hyphens.
        let is_usual = self.0.len() == uuid::fmt::Hyphenated::LENGTH;
        let id = is_usual.then(|| self.0.parse().ok()).flatten();
        id.map(AppId)
    }
}

/// The messages that a report covers.
struct Scope {
    owner: Owner,
    /// Deleted apps of the subscriber whose rows may still exist.
    deleted: Vec<AppId>,
}

impl Scope {
    fn window(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Window<'_> {
        Window {
            owner: self.owner,
            deleted: &self.deleted,
            from,
            to,
            older_than: None,
        }
    }

    /// The rows before an id, back to a time.
    fn behind(&self, id: Uuid, from: DateTime<Utc>) -> Window<'_> {
        Window {
            older_than: Some(LogId(id)),
            ..self.window(from, moment_of(id) + TimeDelta::milliseconds(1))
        }
    }

    fn app(&self) -> Option<AppId> {
        match self.owner {
            Owner::App(app) => Some(app),
            Owner::Subscriber(_) => None,
        }
    }
}

impl Reports {
    /// Creates the reports over a database.
    #[must_use]
    pub fn new(pool: PgPool, clock: SharedClock) -> Self {
        Self {
            pool,
            clock,
            searches: Turns::new(SEARCHES),
            exports: Turns::new(EXPORTS),
            exports_reading: Arc::new(Semaphore::new(EXPORTS_READING)),
        }
    }

    /// Opens one snapshot for a whole report.
    async fn snapshot(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        pool::snapshot(&self.pool).await
    }
}

/// The scope of a subscriber's report, with or without an app; `None` if it has no such app.
async fn scope(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    app: Option<&AppReference>,
) -> Result<Option<Scope>, sqlx::Error> {
    let Some(app) = app else {
        return Ok(Some(Scope {
            owner: Owner::Subscriber(subscriber),
            deleted: deleted_apps::of_subscriber(connection, subscriber).await?,
        }));
    };
    let app = apps::find_referred(connection, subscriber, app.id(), &app.0).await?;
    Ok(app.map(|app| Scope {
        owner: Owner::App(app),
        deleted: Vec::new(),
    }))
}

/// The fraction of all messages that were sent, from 0 to 1; 1 if there are none, since nothing has failed.
fn success_rate(counts: &Counts) -> f64 {
    let all = counts.sum(None, None);
    if all == 0 {
        return 1.0;
    }
    float(counts.sum(None, Some(LogStatus::Sent))) / float(all)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nobody sends as many messages as an f64 can't hold"
)]
fn float(count: i64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailgate_types::plugin::Plugin;

    #[test]
    fn references() {
        for (text, is_good) in [
            ("demo", true),
            ("demo-x7k2", true),
            ("019aa7f2-6a4e-7c11-8000-0123456789ab", true),
            ("019AA7F2-6A4E-7C11-8000-0123456789AB", true),
            ("019aa7f26a4e7c1180000123456789ab", true),
            ("{019aa7f2-6a4e-7c11-8000-0123456789ab}", false),
            ("", false),
            ("Demo", false),
            ("a b", false),
            ("a\0", false),
            (&"a".repeat(70), false),
        ] {
            assert_eq!(AppReference::parse(text).is_ok(), is_good, "{text:?}");
        }
        let plain = AppReference::parse("019aa7f26a4e7c1180000123456789ab");
        assert_eq!(plain.map(|it| it.id()), Ok(None), "a slug");
    }

    #[test]
    fn rates() {
        let mut counts = Counts::default();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(success_rate(&counts), 1.0));
        counts.add(Plugin::A, LogStatus::FailedPerm, 1);
        assert!(close(success_rate(&counts), 0.0));
        counts.add(Plugin::B, LogStatus::Sent, 2);
        counts.add(Plugin::B, LogStatus::FailedTemp, 1);
        assert!(close(success_rate(&counts), 0.5));
    }
}
