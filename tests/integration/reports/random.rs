//! Totals, pages and sums beside a plain count over random messages and filters, at every stage of their
//! life. `MAILGATE_REPORTS_SEED` repeats a run.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Days, TimeDelta, Utc};
use mailgate_domain::accounts::AppFields;
use mailgate_domain::reports::{AppReference, Filter, Period, Reports, Start};
use mailgate_storage::database::journal;
use mailgate_storage::spool::{self, Attempt, Closing, Deferral, Opening};
use mailgate_storage::{bounced_messages, email_counters, partitions};
use mailgate_types::clock::{Clock, MovedClock, SharedClock};
use mailgate_types::door::Door;
use mailgate_types::ids::{AppId, CredentialId, GatewayId, LogId, SubscriberId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::metadata::Metadata;
use mailgate_types::plugin::Plugin;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sqlx::PgConnection;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::gateway::{Gateway, OPERATOR};
use crate::support::retention::{kept_for, look_after};

/// Messages, filters of each stage, and days that the messages lie in.
const MESSAGES: usize = 1_500;
const FILTERS: usize = 25;
const DAYS: u64 = 70;

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sent,
    FailedPerm,
    /// Fails once, and ends at the next attempt.
    Retried(LogStatus),
    /// Is being submitted: nobody sees it.
    Open,
}

#[derive(Debug, Clone)]
struct Sample {
    app: usize,
    plugin: Plugin,
    fate: Fate,
    back: i64,
    bounces: bool,
}

/// Milliseconds before now: everywhere, crowded in two hours, and about the bounds of hours.
fn moments() -> impl Strategy<Value = i64> {
    let all = i64::try_from(DAYS).unwrap() * 86_400_000;
    prop_oneof![
        4 => 1..all,
        6 => 40_000_000..47_000_000_i64,
        3 => 60_000_000..60_100_000_i64,
        1 => (1..1_600_i64, -2..2_i64).prop_map(|(hours, by)| hours * 3_600_000 + by),
    ]
}

fn plugins() -> impl Strategy<Value = Plugin> {
    prop_oneof![9 => Just(Plugin::A), 1 => Just(Plugin::B)]
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let fates = prop_oneof![
        10 => Just(Fate::Sent),
        1 => Just(Fate::FailedPerm),
        2 => Just(Fate::Retried(LogStatus::Sent)),
        1 => Just(Fate::Retried(LogStatus::FailedPerm)),
        1 => Just(Fate::Open),
    ];
    let bounces = prop_oneof![4 => Just(false), 1 => Just(true)];
    let sample = (0..4_usize, plugins(), fates, moments(), bounces).prop_map(
        |(app, plugin, fate, back, bounces)| Sample {
            app,
            plugin,
            fate,
            back,
            bounces,
        },
    );
    proptest::collection::vec(sample, MESSAGES)
}

/// A filter with the app by its place, and moments before now.
#[derive(Debug, Clone)]
struct Asked {
    app: Option<usize>,
    status: Option<LogStatus>,
    plugin: Option<Plugin>,
    bounced: Option<bool>,
    from: Option<i64>,
    before: Option<i64>,
    limit: i64,
    offset: i64,
}

fn asked() -> impl Strategy<Value = Asked> {
    (
        proptest::option::of(0..4_usize),
        proptest::option::of(select(&LogStatus::ALL[..])),
        proptest::option::of(select(&Plugin::ALL[..])),
        proptest::option::of(any::<bool>()),
        proptest::option::of(moments()),
        proptest::option::of(moments()),
        1..=100_i64,
        prop_oneof![Just(0), 0..50_i64, 0..3_000_i64],
    )
        .prop_map(
            |(app, status, plugin, bounced, from, before, limit, offset)| Asked {
                app,
                status,
                plugin,
                bounced,
                from,
                before,
                limit,
                offset,
            },
        )
}

struct World {
    gateway: Gateway,
    reports: Reports,
    /// Three of the subscriber's, and one of another's.
    apps: Vec<AppId>,
    /// Before all moments.
    now: DateTime<Utc>,
    /// Days before it are dropped.
    kept_since: DateTime<Utc>,
    /// In whose hands the messages are.
    serving: GatewayId,
    _lease: JoinSet<()>,
    runner: TestRunner,
}

impl World {
    fn at(&self, back: i64) -> DateTime<Utc> {
        self.now - TimeDelta::milliseconds(back)
    }

    fn subscriber(&self) -> SubscriberId {
        self.gateway.subscriber
    }

    fn draw<S: Strategy>(&mut self, strategy: &S) -> S::Value {
        strategy.new_tree(&mut self.runner).unwrap().current()
    }

    /// Opens all, and brings them to their first end.
    async fn log(&self, samples: &[Sample]) -> Vec<(LogId, Fate)> {
        let mut transaction = self.gateway.daemon.pool.begin().await.unwrap();
        let openings: Vec<Opening> = samples.iter().map(|sample| self.opening(sample)).collect();
        let opened: Vec<&Opening> = openings.iter().collect();
        let opening = journal::open(&mut transaction, self.serving, &opened);
        assert!(opening.await.unwrap().is_ok());
        let all: Vec<(LogId, Fate)> = openings
            .iter()
            .zip(samples)
            .map(|(opening, sample)| (opening.id, sample.fate))
            .collect();
        let closings: Vec<Closing> = all
            .iter()
            .filter_map(|(id, fate)| match fate {
                Fate::Sent => Some(closing(*id, LogStatus::Sent, 1)),
                Fate::FailedPerm => Some(closing(*id, LogStatus::FailedPerm, 1)),
                _ => None,
            })
            .collect();
        let (sent, failed): (Vec<&Closing>, Vec<&Closing>) =
            (closings.iter()).partition(|closing| closing.status == LogStatus::Sent);
        let written = journal::write_sent(&mut transaction, self.serving, &[], &sent);
        assert_eq!(written.await.unwrap().unwrap().ended.len(), sent.len());
        let written =
            journal::write(&mut transaction, self.serving, &[], &failed, &[], self.now).await;
        assert!(written.unwrap().is_ok());
        for (id, _) in all
            .iter()
            .filter(|(_, fate)| matches!(fate, Fate::Retried(_)))
        {
            let deferral = Deferral {
                id: *id,
                attempts: 1,
                error_message: "451 later".to_owned(),
                next_attempt_at: self.now + TimeDelta::days(500),
                left_by: None,
                awaits_subscription: false,
                awaits_pace: false,
                attempt: None,
                due_at: None,
            };
            let deferred = spool::defer(&mut transaction, self.serving, &deferral).await;
            let deferred = deferred.unwrap().unwrap();
            email_counters::count_deferred(&mut transaction, &deferred, 1)
                .await
                .unwrap();
        }
        transaction.commit().await.unwrap();
        all
    }

    /// Marks what bounces; only what is sent by now.
    async fn bounce(&self, samples: &[Sample], all: &[(LogId, Fate)]) {
        let bounced = samples.iter().zip(all).filter(|(sample, _)| sample.bounces);
        let bounced: Vec<LogId> = bounced.map(|(_, (id, _))| *id).collect();
        let mut connection = self.gateway.database().await;
        // Twice is once.
        for _ in 0..2 {
            bounced_messages::mark(&mut connection, &bounced)
                .await
                .unwrap();
        }
    }

    fn opening(&self, sample: &Sample) -> Opening {
        let at = self.at(sample.back);
        Opening {
            id: LogId::at(at),
            app: self.apps[sample.app],
            credential: CredentialId(self.apps[sample.app].0),
            from_address: "ada@example.com".to_owned(),
            to_address: "bob@example.com".to_owned(),
            cc_addresses: Vec::new(),
            bcc_addresses: Vec::new(),
            subject: String::new(),
            plugin: sample.plugin,
            message_id: None,
            size_bytes: 1,
            has_attachments: false,
            metadata: Metadata::default(),
            door: Door::Rest,
            recipients: vec!["bob@example.com".to_owned()],
            smtputf8: false,
            opened_at: at,
            key: None,
            version: None,
        }
    }

    /// Ends what was tried again.
    async fn end(&self, all: &[(LogId, Fate)]) {
        let closings: Vec<Closing> = all
            .iter()
            .filter_map(|(id, fate)| match fate {
                Fate::Retried(status) => Some(closing(*id, *status, 2)),
                _ => None,
            })
            .collect();
        let mut connection = self.gateway.database().await;
        let closings: Vec<&Closing> = closings.iter().collect();
        let written = journal::write(&mut connection, self.serving, &[], &closings, &[], self.now);
        assert!(written.await.unwrap().is_ok());
    }

    /// Asks random questions, and answers them by counting.
    async fn check(&mut self, stage: &str) {
        for _ in 0..FILTERS {
            let asked = self.draw(&asked());
            let filter = Filter {
                app: asked
                    .app
                    .map(|app| AppReference::parse(&self.apps[app].to_string()).unwrap()),
                status: asked.status,
                plugin: asked.plugin,
                bounced: asked.bounced,
                from: asked.from.map(|back| self.at(back)),
                before: asked.before.map(|back| self.at(back)),
                ..Filter::default()
            };
            let limit = usize::try_from(asked.limit).unwrap();
            let page = self
                .reports
                .logs(
                    self.subscriber(),
                    &filter,
                    limit,
                    Start::Offset(asked.offset),
                )
                .await
                .unwrap();
            let expected = self.counted(&filter, &asked).await;
            let place = format!("{stage}: {asked:?}");
            let total = i64::try_from(expected.len()).unwrap();
            assert_eq!(page.total, Some(total), "{place}");
            let ids: Vec<LogId> = page.logs.iter().map(|log| log.id).collect();
            let skip = usize::try_from(asked.offset).unwrap();
            let wanted: Vec<LogId> = expected.iter().skip(skip).take(limit).copied().collect();
            assert_eq!(ids, wanted, "{place}");
            assert_eq!(page.has_more, asked.offset + asked.limit < total, "{place}");
            assert_eq!(page.has_more, page.next.is_some(), "{place}");
            let mut next = page.next;
            let mut found = skip + ids.len();
            // Some pages further.
            for _ in 0..4 {
                let Some(at) = next else { break };
                let page = self
                    .reports
                    .logs(self.subscriber(), &filter, limit, Start::At(at));
                let page = page.await.unwrap();
                let ids: Vec<LogId> = page.logs.iter().map(|log| log.id).collect();
                let wanted = &expected[found..expected.len().min(found + limit)];
                assert_eq!(ids, wanted, "behind {found}: {place}");
                found += ids.len();
                assert_eq!(page.total, Some(total), "{place}");
                assert_eq!(page.next.is_some(), found < expected.len(), "{place}");
                assert_eq!(page.has_more, page.next.is_some(), "{place}");
                next = page.next;
            }
        }
    }

    /// The ids of all rows that a filter lets through, as plain SQL has them.
    async fn counted(&self, filter: &Filter, asked: &Asked) -> Vec<LogId> {
        let ids: Vec<Uuid> = sqlx::query_scalar(
            "SELECT email_logs.id FROM email_logs JOIN apps ON apps.id = app_id
             WHERE apps.subscriber_id = $1 AND ($2::uuid IS NULL OR app_id = $2)
               AND ($3::text IS NULL OR status = $3) AND ($4::text IS NULL OR plugin = $4)
               AND ($5::timestamptz IS NULL OR date_trunc('milliseconds', sent_at) >= $5)
               AND ($6::timestamptz IS NULL OR date_trunc('milliseconds', sent_at) < $6)
               AND sent_at >= $7
               AND ($8::boolean IS NULL
                    OR $8 = EXISTS (SELECT FROM bounced_messages WHERE log_id = email_logs.id))
             ORDER BY email_logs.id DESC",
        )
        .bind(self.subscriber().0)
        .bind(asked.app.map(|app| self.apps[app].0))
        .bind(filter.status.map(LogStatus::as_str))
        .bind(filter.plugin.map(Plugin::as_str))
        .bind(filter.from)
        .bind(filter.before)
        .bind(self.kept_since)
        .bind(filter.bounced)
        .fetch_all(&mut self.gateway.database().await)
        .await
        .unwrap();
        ids.into_iter().map(LogId).collect()
    }

    /// The statistics beside what the log holds; all of it is in there yet.
    async fn check_sums(&self, stage: &str) {
        for (period, unit) in [(Period::Day, "day"), (Period::Month, "month")] {
            let stats = self.reports.email_stats(self.subscriber(), period, None);
            for data in stats.await.unwrap().data {
                for status in LogStatus::ALL {
                    let counted: i64 = sqlx::query_scalar(
                        "SELECT count(*) FROM email_logs JOIN apps ON apps.id = app_id
                         WHERE apps.subscriber_id = $1 AND status = $2
                           AND date_trunc($3, sent_at, 'UTC') = $4",
                    )
                    .bind(self.subscriber().0)
                    .bind(status.as_str())
                    .bind(unit)
                    .bind(partitions::midnight(data.start))
                    .fetch_one(&mut self.gateway.database().await)
                    .await
                    .unwrap();
                    let place = format!("{stage}: {} {status:?}", data.start);
                    assert_eq!(data.counts.sum(None, Some(status)), counted, "{place}");
                }
                let bounced: i64 = sqlx::query_scalar(
                    "SELECT count(*) FROM bounced_messages
                          JOIN email_logs ON email_logs.id = log_id
                          JOIN apps ON apps.id = email_logs.app_id
                     WHERE apps.subscriber_id = $1 AND status = 'sent'
                       AND date_trunc($2, sent_at, 'UTC') = $3",
                )
                .bind(self.subscriber().0)
                .bind(unit)
                .bind(partitions::midnight(data.start))
                .fetch_one(&mut self.gateway.database().await)
                .await
                .unwrap();
                assert_eq!(
                    data.counts.bounced(None),
                    bounced,
                    "{stage}: {}",
                    data.start
                );
            }
        }
    }
}

fn closing(id: LogId, status: LogStatus, number: i32) -> Closing {
    Closing {
        id,
        status,
        error_message: None,
        message_id: None,
        attempt: Some(Attempt {
            number,
            at: Utc::now(),
            milliseconds: 1,
        }),
    }
}

/// As a process does for itself: the gateway would take over what one has in hand that falls silent.
async fn keep_lease(mut connection: PgConnection, serving: GatewayId) {
    loop {
        sqlx::query("UPDATE gateways SET lease_until = clock_timestamp() WHERE id = $1")
            .bind(serving.0)
            .execute(&mut connection)
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn world(seed: u64) -> World {
    let gateway = Gateway::start().await;
    let mut connection = gateway.database().await;
    // A whole millisecond, so that moments that are counted back from it are, too.
    let now = gateway.clock.now().timestamp_millis();
    let now = DateTime::from_timestamp_millis(now).unwrap();
    for back in 1..=DAYS + 1 {
        let day = now.date_naive() - Days::new(back);
        partitions::create(&mut connection, day).await.unwrap();
    }
    let accounts = &gateway.daemon.accounts;
    let mut apps = vec![gateway.app.id];
    for name in ["Second", "Third"] {
        let fields = AppFields::named(name);
        let app = accounts.create_own_app(gateway.subscriber, &fields, OPERATOR);
        apps.push(app.await.unwrap().id);
    }
    let (_, others) = crate::support::gateway::create_app(&gateway.daemon, "Other").await;
    apps.push(others.id);
    let clock: SharedClock = Arc::<MovedClock>::clone(&gateway.clock);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let serving = GatewayId::at(now);
    sqlx::query("INSERT INTO gateways VALUES ($1, now(), now())")
        .bind(serving.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let mut lease = JoinSet::new();
    lease.spawn(keep_lease(gateway.database().await, serving));
    World {
        reports: Reports::new(gateway.daemon.pool.clone(), clock),
        gateway,
        apps,
        now,
        kept_since: DateTime::UNIX_EPOCH,
        serving,
        _lease: lease,
        runner: TestRunner::new_with_rng(
            Config::default(),
            TestRng::from_seed(RngAlgorithm::ChaCha, &bytes),
        ),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_say_what_counting_says() {
    let seed = match std::env::var("MAILGATE_REPORTS_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => rand::random(),
    };
    println!("MAILGATE_REPORTS_SEED={seed}");
    let mut world = world(seed).await;
    let samples = world.draw(&samples());
    let all = world.log(&samples).await;
    world.bounce(&samples, &all).await;
    world.check("logged").await;
    world.reports.fold_counters().await.unwrap();
    world.check("added up").await;
    world.check_sums("added up").await;

    world.end(&all).await;
    world.bounce(&samples, &all).await;
    world.check("tried again").await;
    world.check_sums("tried again").await;
    world.reports.fold_counters().await.unwrap();
    world.check("tried again and added up").await;

    // What isn't added up when its app goes is nobody's.
    let further = world.draw(&samples_of_one());
    let all = world.log(&further).await;
    world.bounce(&further, &all).await;
    let deleted = world
        .gateway
        .daemon
        .mailboxes
        .delete_app(world.apps[1], OPERATOR);
    assert!(deleted.await.unwrap());
    world.check("an app deleted").await;
    world.reports.fold_counters().await.unwrap();
    world.check("an app deleted, and added up").await;
    world.check_sums("an app deleted").await;

    let before = world
        .reports
        .email_stats(world.subscriber(), Period::Month, None)
        .await
        .unwrap();
    sqlx::query("DELETE FROM spool")
        .execute(&mut world.gateway.database().await)
        .await
        .unwrap();
    look_after(&world.gateway, kept_for(20)).await;
    world.kept_since = partitions::midnight(world.now.date_naive() - Days::new(20));
    world.check("old days dropped").await;
    let after = world
        .reports
        .email_stats(world.subscriber(), Period::Month, None)
        .await
        .unwrap();
    assert_eq!(after, before, "statistics outlive the log");
    world.gateway.stop().await;
}

fn samples_of_one() -> impl Strategy<Value = Vec<Sample>> {
    samples().prop_map(|samples| {
        samples
            .into_iter()
            .take(100)
            .map(|sample| Sample { app: 1, ..sample })
            .collect()
    })
}
