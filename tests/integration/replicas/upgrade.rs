//! A new version takes the place of the one before, gateway by gateway, while both serve and the tables change under the
//! older one. Needs a build of that version: `make upgrade` makes it, and names it in `MAILGATE_UPGRADE_FROM`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _};

use super::balancer::Balancer;
use super::clients::Clients;
use super::fleet::{Fleet, HOSTS};
use super::rolling::assert_few;
use super::{sends_on, tell, told_all};
use crate::command_line::process::Invocation;
use crate::command_line::serve;
use crate::crash::ledger::Ledger;
use crate::crash::provider::Arrivals;
use crate::crash::{recorded, settle, tables};
use crate::history::rules;
use crate::support::database;
use crate::support::gateway::{Gateway, SEAL_KEY};
use crate::support::patience::PATIENCE;
use crate::support::receiver::Receiver;

/// Messages that must have been answered between two restarts.
const MEANWHILE: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a build of an older version: make upgrade"]
async fn a_rolling_upgrade_loses_nothing_and_sends_nothing_twice() {
    let older = std::env::var_os("MAILGATE_UPGRADE_FROM").expect("make upgrade names the program");
    let older = PathBuf::from(older);
    let mut gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    tell(&gateway, &receiver).await;
    gateway.stop_daemon().await;
    gateway.database_url = as_before(&gateway.database_url, &older).await;
    let tables_before = migrations(&gateway).await;
    let invocation = serve::replica(&gateway)
        .set("LIMITS__REQUESTS_PER_SECOND", "100000")
        .set("LIMITS__REQUESTS_BURST", "100000")
        .set("WEBHOOKS__ALLOW_PRIVATE", "true");
    let mut fleet = Fleet::start(&invocation.of(&older), &HOSTS, "upgrade").await;
    let balancer = Balancer::start(&gateway, &fleet).await;
    let account = balancer.account(&gateway).owned(&gateway).await;
    let arrivals = Arrivals::collect(gateway.sandbox.inbox.clone());
    let ledger = Ledger::default();
    let clients = Clients::start(&account, &ledger);

    let began = Instant::now();
    sends_on(&ledger, MEANWHILE).await;
    assert_eq!(migrations(&gateway).await, tables_before);
    for number in 0..HOSTS.len() {
        fleet.terminate(number).await;
        fleet.replicas[number].becomes(&Invocation::own_program());
        fleet.replicas[number].restart().await;
        balancer.sees(number, "UP").await;
        // By the older ones and the newer ones alike.
        sends_on(&ledger, MEANWHILE).await;
        assert!(migrations(&gateway).await > tables_before);
    }
    let took = began.elapsed();
    let retries = clients.finish().await;
    let left = settle(&gateway, PATIENCE).await;
    let arrived = arrivals.all().await;
    let tables = tables::read(&mut gateway.database().await).await;
    let twice = told_all(&gateway, &receiver, &tables).await;
    fleet.end().await;

    let sent = ledger.count("sent");
    println!(
        "{sent} messages in {took:.1?} while {tables_before} migrations became {}, sent again: {retries:?}; \
         {twice} events came twice",
        migrations(&gateway).await
    );
    let history = recorded(&ledger, arrived, tables, gateway.app.id, None);
    let mut wrong = rules::broken(&history);
    wrong.extend(left);
    assert!(
        wrong.is_empty(),
        "{} things are wrong; the logs are {}\n{}",
        wrong.len(),
        fleet.logs(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    // No answer but that one in the end, and what wasn't taken was sent again.
    assert_eq!(sent, ledger.all().len(), "all of them were sent");
    let (arrived, logged) = (history.arrived.len(), history.tables.logs.len());
    assert_eq!((arrived, logged), (sent, sent));
    assert_eq!(twice, 0, "an end in order gives back what it has not told");
    assert_few(&retries);
    fleet.forget_logs();
    gateway.stop().await;
}

async fn migrations(gateway: &Gateway) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM _sqlx_migrations")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

/// A database with the tables of the older program, and in them what `url` has, as far as they have a place for it.
async fn as_before(url: &str, older: &Path) -> String {
    let before = database::create_empty().await;
    let migrated = Invocation::new(["migrate"])
        .set("DATABASE__URL", &before)
        .set("SEAL__KEYS", SEAL_KEY)
        .of(older)
        .finish()
        .await;
    assert_eq!(migrated.status.code(), Some(0), "{}", migrated.stderr);
    let (mut from, mut to) = (
        database::connect(url).await,
        database::connect(&before).await,
    );
    // In any order, and with no trigger counting a row again.
    to.execute("SET session_replication_role = replica")
        .await
        .unwrap();
    let known = columns(&mut from).await;
    for (table, columns) in columns(&mut to).await {
        let Some((_, had)) = known.iter().find(|(name, _)| *name == table) else {
            continue;
        };
        let shared: Vec<&str> = columns
            .split(',')
            .filter(|it| had.split(',').any(|had| had == *it))
            .collect();
        let shared = shared.join(",");
        let rows = format!("SELECT {shared} FROM {table}");
        let count = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let count: i64 = sqlx::query_scalar(count)
            .fetch_one(&mut from)
            .await
            .unwrap();
        if count > 0 {
            // What a migration puts there.
            let empty = AssertSqlSafe(format!("DELETE FROM {table}"));
            to.execute(empty).await.unwrap();
            copy(&mut from, &rows, &mut to, &format!("{table} ({shared})")).await;
        }
    }
    before
}

async fn copy(from: &mut PgConnection, rows: &str, to: &mut PgConnection, place: &str) {
    use futures_util::StreamExt as _;

    let mut out = from
        .copy_out_raw(&format!("COPY ({rows}) TO STDOUT"))
        .await
        .unwrap();
    let mut copied = Vec::new();
    while let Some(piece) = out.next().await {
        copied.extend(piece.unwrap());
    }
    drop(out);
    let mut into = to
        .copy_in_raw(&format!("COPY {place} FROM STDIN"))
        .await
        .unwrap();
    into.send(copied).await.unwrap();
    into.finish().await.unwrap();
}

/// The tables, partitions apart, that no sequence numbers, each with its columns by their names.
async fn columns(database: &mut PgConnection) -> Vec<(String, String)> {
    sqlx::query_as(
        "SELECT table_name::text, string_agg(column_name::text, ',' ORDER BY ordinal_position)
         FROM information_schema.columns
              JOIN pg_class ON pg_class.oid = format('%I.%I', table_schema, table_name)::regclass
         WHERE table_schema = 'public' AND relkind IN ('r', 'p') AND NOT relispartition
               AND table_name <> '_sqlx_migrations' AND is_generated = 'NEVER'
         GROUP BY table_name
         HAVING NOT bool_or(is_identity = 'YES' OR coalesce(column_default, '') LIKE 'nextval%')
         ORDER BY table_name",
    )
    .fetch_all(database)
    .await
    .unwrap()
}
