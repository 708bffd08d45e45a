//! What a message costs the database, with one gateway and with three.

use mailgate_types::plugin::Plugin;
use sqlx::PgConnection;
use tokio::task::JoinSet;

use super::fleet::{Fleet, HOSTS};
use crate::command_line::serve;
use crate::crash::clients::Account;
use crate::crash::database::DurablePostgres;
use crate::crash::ledger::{Message, Told};
use crate::crash::rest::RestClient;
use crate::support::database;
use crate::support::gateway::Gateway;

/// Clients in all, and the messages of each.
const CLIENTS: usize = 24;
const MESSAGES: usize = 30;

/// What the database did for one message.
struct Work {
    gateways: usize,
    wal_bytes: f64,
    rows_written: f64,
}

impl Work {
    fn tell(&self) {
        println!(
            "{} gateways: for each message {:.0} bytes of WAL, {:.1} rows written",
            self.gateways, self.wal_bytes, self.rows_written
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_gateways_cost_the_database_what_one_does() {
    // Of its own: the log is written by everybody who uses a server.
    let postgres = DurablePostgres::start().await;
    let gateway = Gateway::builder()
        .database(&postgres.create_database().await)
        .start()
        .await;
    gateway.stop_daemon().await;
    let one = measure(&gateway, 1).await;
    let three = measure(&gateway, 3).await;
    one.tell();
    three.tell();
    // Each process adds up what it has counted, each second, and its batches are smaller.
    for (what, one, three) in [
        ("bytes of WAL", one.wal_bytes, three.wal_bytes),
        ("rows written", one.rows_written, three.rows_written),
    ] {
        assert!(
            three < one * 1.5,
            "{what} of a message: {one}, then {three}"
        );
    }
    gateway.stop().await;
}

/// The counters of the server: bytes of WAL; rows inserted, updated and deleted.
async fn counters(database: &mut PgConnection) -> [f64; 2] {
    sqlx::query("SELECT pg_stat_force_next_flush()")
        .execute(&mut *database)
        .await
        .unwrap();
    let (wal, rows): (f64, f64) = sqlx::query_as(
        "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8,
                (tup_inserted + tup_updated + tup_deleted)::float8
         FROM pg_stat_database WHERE datname = current_database()",
    )
    .fetch_one(database)
    .await
    .unwrap();
    [wal, rows]
}

async fn measure(gateway: &Gateway, gateways: usize) -> Work {
    let invocation = serve::replica(gateway)
        .set("LIMITS__REQUESTS_PER_SECOND", "100000")
        .set("LIMITS__REQUESTS_BURST", "100000");
    let name = format!("work-{gateways}");
    let mut fleet = Fleet::start(&invocation, &HOSTS[..gateways], &name).await;
    let accounts: Vec<Account> = (fleet.replicas.iter())
        .map(|replica| Account {
            base_url: format!("http://{}", replica.http),
            ..Account::of(gateway)
        })
        .collect();
    // Connections are opened, and statements planned.
    send(&accounts, 1).await;
    let mut looking = database::connect(&gateway.database_url).await;
    sqlx::query("CHECKPOINT")
        .execute(&mut looking)
        .await
        .unwrap();
    let before = counters(&mut looking).await;
    send(&accounts, MESSAGES).await;
    // What each process did is counted by the time that its connections are closed.
    fleet.end().await;
    let after = counters(&mut looking).await;
    let messages = f64::from(u32::try_from(CLIENTS * MESSAGES).unwrap());
    let [wal_bytes, rows_written] =
        std::array::from_fn(|number| (after[number] - before[number]) / messages);
    fleet.forget_logs();
    Work {
        gateways,
        wal_bytes,
        rows_written,
    }
}

/// So many messages from each client, all of them at once.
async fn send(accounts: &[Account], messages: usize) {
    let mut clients = JoinSet::new();
    for (number, account) in (0..CLIENTS).zip(accounts.iter().cycle()) {
        let account = account.clone();
        clients.spawn(async move {
            let client = RestClient::new(account);
            for message in 0..messages {
                let message = Message {
                    marker: format!("work-{number}-{message}"),
                    plugin: Plugin::A,
                    recipient: "good@example.com".to_owned(),
                    key: None,
                    lines: 80,
                    in_a_long_life: true,
                    send_at: None,
                    is_cancelled: false,
                };
                let told = client.send(&message).await.expect("the gateway is there");
                assert!(matches!(told, Told::Sent(_)), "{told:?}");
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.expect("no client panics");
    }
}
