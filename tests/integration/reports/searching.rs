//! Searches beside a plain look at every row, over random messages and filters, page by page: with the indexes, without
//! them, and while rows arrive. `MAILGATE_REPORTS_SEED` repeats a run.

mod filters;
mod rows;

use std::time::Duration;

use chrono::{DateTime, Days, TimeDelta, Utc};
use mailgate::workers;
use mailgate_domain::accounts::AppFields;
use mailgate_domain::reports::Reports;
use mailgate_storage::partitions;
use mailgate_types::clock::{Clock, SharedClock};
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
