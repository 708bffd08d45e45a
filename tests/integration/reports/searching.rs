//! Searches beside a plain look at every row, over random messages and filters, page by page: with the indexes, without
//! them, and while rows arrive. `MAILGATE_REPORTS_SEED` repeats a run.

use std::time::Duration;

use chrono::{DateTime, Days, TimeDelta, Utc};
use mailgate::workers;
use mailgate_domain::accounts::AppFields;
use mailgate_domain::reports::{AppReference, Filter, Reports, Search, Start};
use mailgate_storage::partitions;
use mailgate_types::clock::{Clock, SharedClock};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::{AppId, CredentialId, LogId, UserKey, uuid_at};
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio_util::sync::CancellationToken;

use crate::support::gateway::{Gateway, OPERATOR, create_app};

/// Messages, filters of each stage, and days that the messages lie in.
const MESSAGES: usize = 1_200;
const FILTERS: usize = 60;
const DAYS: u64 = 12;

const ADDRESSES: [&str; 6] = [
    "Hot@example.com",
    "bob@example.com",
    "\"a, b\"@example.com",
    "j\u{fc}rg@example.com",
    "carol@example.com",
    "dan@example.com",
];
const SUBJECTS: [&str; 5] = [
    "Your order 100% (new)",
    "GR\u{dc}SSE aus K\u{f6}ln",
    "gr\u{fc}\u{df}e",
    "a_b [c] \\d",
    "",
];
const PARTS: [&str; 8] = [
    "order",
    "ORDER 100%",
    "gr\u{dc}",
    "_B [",
    "\\D",
    ".",
    "\u{e9}",
    "zzz",
];

#[derive(Debug, Clone)]
struct Sample {
    id: LogId,
    app: usize,
    mailbox: usize,
    to: Vec<usize>,
    cc: Vec<usize>,
    bcc: Vec<usize>,
    subject: &'static str,
    message_id: Option<String>,
    plugin: Plugin,
    status: LogStatus,
    bounced: bool,
    at: DateTime<Utc>,
}

struct Mailbox {
    id: CredentialId,
    user: UserKey,
    user_id: &'static str,
    app: usize,
}

struct World {
    gateway: Gateway,
    reports: Reports,
    /// Two of the subscriber's, and one of another's.
    apps: Vec<AppId>,
    mailboxes: Vec<Mailbox>,
    samples: Vec<Sample>,
    random: StdRng,
    now: DateTime<Utc>,
    /// Rows that have come since.
    arrived: i64,
}

impl World {
    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.random.random_range(0..of.len())].clone()
    }

    fn some(&mut self, most: usize) -> Vec<usize> {
        let count = self.random.random_range(0..=most);
        (0..count)
            .map(|_| self.random.random_range(0..ADDRESSES.len()))
            .collect()
    }

    fn sample(&mut self, at: DateTime<Utc>) -> Sample {
        let mailbox = self.random.random_range(0..self.mailboxes.len());
        // Others' messages have the same Message-IDs and recipients.
        let app = self.mailboxes[mailbox].app;
        let is_hot = self.random.random_bool(0.4);
        let to = if is_hot { vec![0] } else { self.some(3) };
        // One with a comma in quotes is told apart from others only where it stands alone.
        let to = if to.len() > 1 {
            to.into_iter().filter(|it| *it != 2).collect()
        } else {
            to
        };
        let status = self.one(&LogStatus::ALL);
        Sample {
            id: LogId::at(at),
            app,
            mailbox,
            to,
            cc: if is_hot { Vec::new() } else { self.some(2) },
            bcc: if is_hot { Vec::new() } else { self.some(1) },
            subject: self.one(&SUBJECTS),
            message_id: match self.random.random_range(0..10) {
                0 => None,
                1 => Some("no brackets".to_owned()),
                number => Some(format!("<{}@x>", number * self.random.random_range(1..40))),
            },
            plugin: self.one(&Plugin::ALL),
            status,
            bounced: status == LogStatus::Sent && self.random.random_bool(0.3),
            at,
        }
    }

    async fn log(&mut self, samples: &[Sample]) {
        let mut transaction = self.gateway.daemon.pool.begin().await.unwrap();
        let named = |of: &[usize]| -> Vec<&str> { of.iter().map(|it| ADDRESSES[*it]).collect() };
        for sample in samples {
            sqlx::query(
                "INSERT INTO email_logs
                     (id, app_id, credential_id, from_address, to_address, cc_addresses,
                      bcc_addresses, subject, plugin, status, message_id, size_bytes,
                      has_attachments, sent_at, subscriber_id)
                 VALUES ($1, $2, $3, 'ada@example.com', $4, $5, $6, $7, $8, $9, $10, 1, false, $11,
                         (SELECT subscriber_id FROM apps WHERE apps.id = $2))",
            )
            .bind(sample.id.0)
            .bind(self.apps[sample.app].0)
            .bind(self.mailboxes[sample.mailbox].id.0)
            .bind(named(&sample.to).join(", "))
            .bind(named(&sample.cc))
            .bind(named(&sample.bcc))
            .bind(sample.subject)
            .bind(sample.plugin.as_str())
            .bind(sample.status.as_str())
            .bind(&sample.message_id)
            .bind(sample.at)
            .execute(&mut *transaction)
            .await
            .unwrap();
            if sample.bounced {
                sqlx::query(
                    "INSERT INTO bounced_messages
                     SELECT id, app_id, subscriber_id, plugin FROM email_logs WHERE id = $1",
                )
                .bind(sample.id.0)
                .execute(&mut *transaction)
                .await
                .unwrap();
            }
        }
        transaction.commit().await.unwrap();
        self.samples.extend(samples.iter().cloned());
        self.samples
            .sort_by_key(|sample| std::cmp::Reverse(sample.id));
    }

    fn filter(&mut self) -> Filter {
        let mut search = Search::default();
        while search.is_empty() {
            if self.random.random_bool(0.3) {
                let address = self.one(&ADDRESSES);
                let address = if self.random.random_bool(0.5) {
                    address.to_ascii_uppercase()
                } else {
                    address.to_owned()
                };
                search.recipient = Some(EmailAddress::parse(&address).unwrap());
            }
            if self.random.random_bool(0.15) {
                let samples = self.samples.clone();
                let id = self.one(&samples).message_id.unwrap_or_default();
                search.message_id = Some(id.trim_matches(['<', '>']).to_owned());
            }
            if self.random.random_bool(0.05) {
                let samples = self.samples.clone();
                search.log = Some(self.one(&samples).id);
            }
            if self.random.random_bool(0.2) {
                let mailbox = self.random.random_range(0..self.mailboxes.len());
                let mailbox = &self.mailboxes[mailbox];
                search.user = Some(if self.random.random_bool(0.5) {
                    mailbox.user_id.to_owned()
                } else {
                    mailbox.user.to_string()
                });
            }
            if self.random.random_bool(0.2) {
                let mailbox = self.random.random_range(0..self.mailboxes.len());
                search.credential = Some(self.mailboxes[mailbox].id);
            }
            if self.random.random_bool(0.3) {
                search.subject = Some(self.one(&PARTS).to_owned());
            }
        }
        let mut rarely = |chance: f64| self.random.random_bool(chance);
        let (app, status, plugin) = (rarely(0.2), rarely(0.2), rarely(0.2));
        let (from, before, bounced) = (rarely(0.2), rarely(0.2), rarely(0.3));
        let app = app.then(|| self.random.random_range(0..self.apps.len()));
        let back = |random: &mut StdRng| {
            TimeDelta::milliseconds(
                random.random_range(0..i64::try_from(DAYS).unwrap() * 86_400_000),
            )
        };
        Filter {
            app: app.map(|app| AppReference::parse(&self.apps[app].to_string()).unwrap()),
            status: status.then(|| self.one(&LogStatus::ALL)),
            plugin: plugin.then(|| self.one(&Plugin::ALL)),
            bounced: bounced.then(|| self.random.random_bool(0.5)),
            from: from.then(|| self.now - back(&mut self.random)),
            before: before.then(|| self.now - back(&mut self.random)),
            search,
        }
    }

    /// Looks at every message.
    fn expected(&self, filter: &Filter) -> Vec<LogId> {
        let search = &filter.search;
        let of_app = |app: &AppReference, sample: &Sample| {
            *app == AppReference::parse(&self.apps[sample.app].to_string()).unwrap()
        };
        let lower = |text: &str| text.to_lowercase();
        let matches = |sample: &&Sample| {
            let mailbox = &self.mailboxes[sample.mailbox];
            let everybody = sample.to.iter().chain(&sample.cc).chain(&sample.bcc);
            let mut everybody = everybody.map(|it| ADDRESSES[*it]);
            let message_id = sample.message_id.as_deref();
            sample.app < 2
                && filter.app.as_ref().is_none_or(|app| of_app(app, sample))
                && filter.status.is_none_or(|it| it == sample.status)
                && filter.plugin.is_none_or(|it| it == sample.plugin)
                && filter.bounced.is_none_or(|it| it == sample.bounced)
                && filter.from.is_none_or(|from| sample.at >= from)
                && filter.before.is_none_or(|before| sample.at < before)
                && (search.recipient.as_ref())
                    .is_none_or(|it| everybody.any(|one| one.eq_ignore_ascii_case(it.as_str())))
                && (search.message_id.as_ref()).is_none_or(|it| {
                    message_id == Some(it) || message_id == Some(&format!("<{it}>"))
                })
                && search.log.is_none_or(|it| it == sample.id)
                && search.credential.is_none_or(|it| it == mailbox.id)
                && (search.user.as_ref())
                    .is_none_or(|it| *it == mailbox.user.to_string() || it == mailbox.user_id)
                && (search.subject.as_ref())
                    .is_none_or(|it| lower(sample.subject).contains(&lower(it)))
        };
        let matching = self.samples.iter().filter(matches);
        matching.map(|sample| sample.id).collect()
    }

    /// Searches page by page; `arriving`: with newer rows that come in between.
    async fn check(&mut self, stage: &str, arriving: bool) {
        for _ in 0..FILTERS {
            let filter = self.filter();
            let expected = self.expected(&filter);
            let limit = self.random.random_range(1..=100);
            let offset = if self.random.random_bool(0.3) {
                self.random.random_range(0..50)
            } else {
                0
            };
            let place = format!("{stage}: {filter:?}, {limit}, {offset}");
            let mut found = Vec::new();
            let mut start = Start::Offset(i64::try_from(offset).unwrap());
            loop {
                let page = self
                    .reports
                    .logs(self.gateway.subscriber, &filter, limit, start)
                    .await
                    .unwrap();
                assert_eq!(page.total, None, "{place}");
                assert_eq!(page.has_more, page.next.is_some(), "{place}");
                let is_whole = page.searched_until.is_none();
                assert!(
                    page.logs.len() == limit || !is_whole || !page.has_more,
                    "{place}"
                );
                found.extend(page.logs.iter().map(|log| log.id));
                let Some(next) = page.next else { break };
                start = Start::At(next);
                if arriving {
                    // Newer than all that came before.
                    self.arrived += 1;
                    let at = self.now + TimeDelta::milliseconds(self.arrived);
                    let sample = self.sample(at);
                    self.log(&[sample]).await;
                }
            }
            let wanted: Vec<LogId> = expected.into_iter().skip(offset).collect();
            assert_eq!(found, wanted, "{place}");
        }
    }

    async fn run(&self, statements: &'static str) {
        sqlx::raw_sql(statements)
            .execute(&mut self.gateway.database().await)
            .await
            .unwrap();
    }
}

async fn world() -> World {
    let seed = match std::env::var("MAILGATE_REPORTS_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => rand::random(),
    };
    println!("MAILGATE_REPORTS_SEED={seed}");
    let gateway = Gateway::start().await;
    let mut connection = gateway.database().await;
    let now = DateTime::from_timestamp_millis(gateway.clock.now().timestamp_millis()).unwrap();
    for back in 1..=DAYS + 1 {
        let day = now.date_naive() - Days::new(back);
        partitions::create(&mut connection, day).await.unwrap();
    }
    let accounts = &gateway.daemon.accounts;
    let fields = AppFields::named("Two");
    let second = accounts.create_own_app(gateway.subscriber, &fields, OPERATOR);
    let (_, others) = create_app(&gateway.daemon, "Other").await;
    let apps = vec![gateway.app.id, second.await.unwrap().id, others.id];
    let mut mailboxes = Vec::new();
    for (app, user_id, count) in [(0, "one", 1), (0, "many", 60), (1, "one", 2), (2, "one", 1)] {
        let user = UserKey(uuid_at(now));
        sqlx::query("INSERT INTO end_users VALUES ($1, $2, $3, now())")
            .bind(user.0)
            .bind(apps[app].0)
            .bind(user_id)
            .execute(&mut connection)
            .await
            .unwrap();
        for number in 0..count {
            let id = CredentialId::at(now);
            sqlx::query(
                "INSERT INTO mailboxes (id, app_id, user_key, plugin, email, email_lookup, status,
                                        scopes, connected_at)
                 VALUES ($1, $2, $3, 'plugin_a', $4, $4, 'disconnected', '{}', now())",
            )
            .bind(id.0)
            .bind(apps[app].0)
            .bind(user.0)
            .bind(format!("{user_id}{number}@example.com"))
            .execute(&mut connection)
            .await
            .unwrap();
            mailboxes.push(Mailbox {
                id,
                user,
                user_id,
                app,
            });
        }
    }
    let clock: SharedClock =
        std::sync::Arc::<mailgate_types::clock::MovedClock>::clone(&gateway.clock);
    let mut world = World {
        reports: Reports::new(gateway.daemon.pool.clone(), clock),
        gateway,
        apps,
        mailboxes,
        samples: Vec::new(),
        random: StdRng::seed_from_u64(seed),
        now,
        arrived: 0,
    };
    let samples: Vec<Sample> = (0..MESSAGES)
        .map(|_| {
            let back = world
                .random
                .random_range(0..i64::try_from(DAYS).unwrap() * 86_400_000);
            world.sample(now - TimeDelta::milliseconds(back))
        })
        .collect();
    world.log(&samples).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_find_what_a_look_at_every_row_finds() {
    let mut world = Box::pin(world()).await;
    world.check("indexed", false).await;
    world.check("while rows arrive", true).await;

    // As the release before has left it, with one part of an index that a process was at when it died.
    world
        .run(
            "DROP INDEX email_logs_by_recipient, email_logs_by_credential, email_logs_by_message;
             CREATE INDEX email_logs_by_recipient ON ONLY email_logs
                 (subscriber_id, recipient_key(first_recipient(to_address)), id);
             CREATE INDEX email_logs_by_credential ON ONLY email_logs (credential_id, id);
             CREATE INDEX email_logs_by_message ON ONLY email_logs (message_id, credential_id)
                 WHERE message_id IS NOT NULL;
             CREATE INDEX IF NOT EXISTS email_logs_by_message_id
                 ON email_logs (credential_id, message_id) WHERE message_id IS NOT NULL;
             DO $$ BEGIN
                 EXECUTE format('CREATE INDEX email_logs_%1$s_by_credential
                                 ON email_logs_%1$s (credential_id, id)',
                                to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'));
                 UPDATE pg_index SET indisvalid = false
                 WHERE indexrelid = to_regclass(format('email_logs_%s_by_credential',
                                    to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')));
             END $$",
        )
        .await;
    world.check("without indexes", false).await;

    world.run("TRUNCATE email_recipients").await;
    let pool = world.gateway.daemon.pool.clone();
    world
        .gateway
        .eventually("all indexes are whole", async |gateway| {
            // Another round may be at it, which the worker leaves alone.
            let stop = CancellationToken::new();
            let building = workers::build_log_indexes(pool.clone(), stop.clone());
            let _ = tokio::time::timeout(Duration::from_secs(5), building).await;
            let left: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_index
                 WHERE indrelid::regclass::text LIKE 'email\\_logs%' AND NOT indisvalid",
            )
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
            left == 0
        })
        .await;
    let former: Option<String> =
        sqlx::query_scalar("SELECT to_regclass('email_logs_by_message_id')::text")
            .fetch_one(&mut world.gateway.database().await)
            .await
            .unwrap();
    assert_eq!(former, None);
    world.check("built", false).await;

    // What goes with an app, goes from the table of recipients too.
    let app = world.apps[0];
    let deleted = world.gateway.daemon.mailboxes.delete_app(app, OPERATOR);
    assert!(deleted.await.unwrap());
    world.samples.retain(|sample| sample.app != 0);
    world.check("an app deleted", false).await;
    let app_rows = "SELECT count(*) FROM email_recipients
                    WHERE NOT EXISTS (SELECT FROM email_logs WHERE email_logs.id = log_id)
                          OR EXISTS (SELECT FROM email_logs WHERE email_logs.id = log_id AND app_id = $1)";
    world
        .gateway
        .eventually("its rows are gone", async |gateway| {
            let left: i64 = sqlx::query_scalar(app_rows)
                .bind(app.0)
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap();
            left == 0
        })
        .await;
    world.gateway.stop().await;
}
