//! The drill of docs/postgres.md: a base backup with archived WAL, restored to a moment, and a dump. Its commands are
//! run as they stand, and a gateway goes on from what came back, while the provider has gone on since: nothing is sent
//! twice.

mod cluster;
mod sent_mail;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use mailgate_domain::sending::queue::Queue;
use mailgate_storage::database::wal_archive;
use mailgate_types::clock::{Clock as _, SharedClock};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, PgPool};

use crate::command_line::process::Invocation;
use crate::documents::{Use, the_block};
use crate::support::gateway::Gateway;
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::{database, patience};
use cluster::Cluster;
use sent_mail::Provider;

/// What was accepted at which time, and where the moment lies among it.
const BEFORE: &str = "sent before the base backup";
const BETWEEN: &str = "sent between the base backup and the moment";
const IN_HAND: &str = "in hand at the moment";
const LEFT_SINCE: &str = "waiting at the moment, sent since";
const DUE_SINCE: &str = "waiting at the moment, due since, not sent";
const LATER: &str = "waiting at the moment, due much later";
const AFTER: &str = "accepted and sent after the moment";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_restored_sends_nothing_twice() {
    let mut cluster = Cluster::start().await;
    cluster.run(&block("cd /\ninstall --directory ")).await;
    cluster
        .run(&block("cd /\nrunuser -u postgres -- psql "))
        .await;
    cluster.restart().await;
    let provider = Provider::start().await;
    let gateway = Gateway::builder()
        .database(&cluster.url())
        .plugins(provider.plugins.clone())
        .start()
        .await;
    provider.stand_in.connect(&gateway).await;

    send(&gateway, BEFORE).await;
    cluster
        .run(&block("cat > /usr/local/bin/mailgate-base-backup"))
        .await;
    cluster
        .run(&block("runuser -u postgres -- /usr/local/bin/"))
        .await;
    send(&gateway, BETWEEN).await;
    schedule(&gateway, LEFT_SINCE, TimeDelta::minutes(10)).await;
    schedule(&gateway, DUE_SINCE, TimeDelta::minutes(20)).await;
    schedule(&gateway, LATER, TimeDelta::days(1)).await;
    let submission = &provider.stand_in.submission;
    // The provider has it whole, and doesn't say so.
    submission.once(Stage::Content, Answer::Hang);
    let in_hand = send(&gateway, IN_HAND);
    let moment = async {
        patience::until("message in hand", async || {
            provider.has().iter().any(|subject| subject == IN_HAND)
        })
        .await;
        let moment = now(&gateway).await;
        cluster
            .run(&block("cd /\nrunuser -u postgres -- pg_dumpall "))
            .await;
        provider.file();
        submission.close_connections();
        moment
    };
    let ((), moment) = tokio::join!(in_hand, moment);

    gateway.clock.advance(TimeDelta::minutes(11));
    gateway
        .eventually("the scheduled message left", async |_| {
            provider.has().iter().any(|subject| subject == LEFT_SINCE)
        })
        .await;
    send(&gateway, AFTER).await;
    provider.file();
    let sent = [BEFORE, BETWEEN, IN_HAND, LEFT_SINCE, AFTER];
    assert_eq!(sorted(provider.has()), sorted(sent.map(str::to_owned)));
    cluster.archive().await;
    failing_archives_are_told(&cluster.url()).await;
    gateway.stop_daemon().await;

    // A while later, to the moment.
    gateway.clock.advance(TimeDelta::minutes(10));
    let restored = block("cp -a /var/backups/")
        .replace("2026-11-25T030000Z", &cluster.base_backup())
        .replace("2026-11-25 12:00:00+00", &moment);
    cluster.run(&restored).await;
    let url = cluster.start_restored().await;
    let further = go_on(&gateway, &provider, &url, 2).await;
    let waiting = subjects(&url, "SELECT subject FROM spool").await;
    assert_eq!(waiting, [LATER]);
    gateway.clock.advance(TimeDelta::days(1));
    settled(&further).await;
    let logged =
        sorted([BEFORE, BETWEEN, IN_HAND, LEFT_SINCE, DUE_SINCE, LATER].map(str::to_owned));
    let log = "SELECT subject FROM email_logs WHERE status = 'sent'";
    assert_eq!(subjects(&url, log).await, logged);
    let all = [
        BEFORE, BETWEEN, IN_HAND, LEFT_SINCE, DUE_SINCE, LATER, AFTER,
    ];
    assert_eq!(sorted(provider.has()), sorted(all.map(str::to_owned)));
    further.stop().await;

    // The dump is of the same moment, and by now all of it has left.
    provider.file();
    cluster
        .run(&block("cd /\nrunuser -u postgres -- createdb "))
        .await;
    let url = cluster.url_of("restored");
    let further = go_on(&gateway, &provider, &url, 3).await;
    settled(&further).await;
    assert_eq!(subjects(&url, log).await, logged);
    assert_eq!(sorted(provider.has()), sorted(all.map(str::to_owned)));
    further.stop().await;
    gateway.stop().await;
}

/// For how long the archive is overdue, while it works and while it fails.
async fn failing_archives_are_told(url: &str) {
    let mut database = PgConnection::connect(url).await.unwrap();
    let works = wal_archive::overdue_seconds(&mut database).await.unwrap();
    assert_eq!(works, Some(0.0));
    let command: String = sqlx::query_scalar("SHOW archive_command")
        .fetch_one(&mut database)
        .await
        .unwrap();
    let archive_by = |command: String| {
        let statement = format!("ALTER SYSTEM SET archive_command = '{command}'");
        [statement, "SELECT pg_reload_conf()".to_owned()]
    };
    for statement in archive_by("/bin/false".to_owned()) {
        database.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    database.execute("SELECT pg_switch_wal()").await.unwrap();
    let mut looking = PgConnection::connect(url).await.unwrap();
    patience::until("failure to archive", async || {
        let overdue = wal_archive::overdue_seconds(&mut looking).await.unwrap();
        overdue.is_some_and(|seconds| seconds > 0.0)
    })
    .await;
    for statement in archive_by(command) {
        database.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    patience::until("archive that works again", async || {
        wal_archive::overdue_seconds(&mut looking).await.unwrap() == Some(0.0)
    })
    .await;
}

fn block(start: &str) -> String {
    the_block(Use::Backup, start)
}

/// What an operator does with a database that came back, and a gateway on it, whose clock goes on from the former's;
/// waits until it has done what was due. So many messages may have left since.
async fn go_on(gateway: &Gateway, provider: &Provider, url: &str, marked: u64) -> Gateway {
    let clock: SharedClock = gateway.clock.clone();
    let pool = PgPool::connect(url).await.unwrap();
    let queue = Queue::new(pool.clone(), clock.clone());
    assert_eq!(queue.verify(false).await.unwrap(), marked);
    pool.close().await;
    // As it is typed, by the machine's own time: what that finds due is marked already.
    let command = block("mailgate queue verify");
    let mut arguments = command.trim_end().split(' ').skip(1).collect::<Vec<_>>();
    arguments.truncate(2);
    let mut typed = Invocation::new(arguments)
        .argument("--json")
        .set("DATABASE__URL", url)
        .set("SEAL__KEYS", crate::support::gateway::SEAL_KEY)
        .start();
    let status = typed.end(patience::PATIENCE).await;
    assert_eq!(status.code(), Some(0), "{}", typed.stderr());
    assert_eq!(typed.stdout().trim(), r#"{"marked":0}"#);

    let further = Gateway::builder()
        .database(url)
        .plugins(provider.plugins.clone())
        .clock(clock)
        .start()
        .await;
    further
        .eventually("what was in hand or due has ended", async |further| {
            // What is missing was not sent only once its provider must have finished with it.
            gateway.clock.advance(TimeDelta::minutes(1));
            let left = "SELECT count(*) FROM spool WHERE state = 'open' OR outcome_unknown";
            let left: i64 = sqlx::query_scalar(left)
                .fetch_one(&mut further.database().await)
                .await
                .unwrap();
            left == 0
        })
        .await;
    further
}

async fn settled(gateway: &Gateway) {
    gateway
        .eventually("an empty spool", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
}

async fn send(gateway: &Gateway, subject: &str) {
    let message = json!({
        "to": "bob@example.com", "subject": subject, "body": "It works.", "plugin": "plugin_b",
    });
    let (status, answer) = gateway.send(message).await;
    assert_eq!(
        (status, &answer["status"]),
        (200, &json!("sent")),
        "{answer}"
    );
}

async fn schedule(gateway: &Gateway, subject: &str, wait: TimeDelta) {
    let time: DateTime<Utc> = gateway.clock.now() + wait;
    let message = json!({
        "to": "bob@example.com", "subject": subject, "body": "It works.", "plugin": "plugin_b",
        "send_at": time.to_rfc3339_opts(SecondsFormat::Millis, true),
    });
    let (status, answer) = gateway.send(message).await;
    assert_eq!(
        (status, &answer["status"]),
        (202, &json!("scheduled")),
        "{answer}"
    );
}

/// The time by the database's clock, which is behind all that is committed.
async fn now(gateway: &Gateway) -> String {
    let mut database = gateway.database().await;
    // Later than the last commit, though the clock ticks in microseconds.
    database.execute("SELECT pg_sleep(0.01)").await.unwrap();
    let moment: DateTime<Utc> = sqlx::query_scalar("SELECT now()")
        .fetch_one(&mut database)
        .await
        .unwrap();
    moment.format("%Y-%m-%d %H:%M:%S%.6f+00").to_string()
}

async fn subjects(url: &str, query: &'static str) -> Vec<String> {
    let found = sqlx::query_scalar(query)
        .fetch_all(&mut database::connect(url).await)
        .await;
    sorted(found.unwrap())
}

fn sorted(subjects: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut subjects: Vec<String> = subjects.into_iter().collect();
    subjects.sort();
    subjects
}
