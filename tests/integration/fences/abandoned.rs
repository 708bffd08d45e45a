//! Callers that are dropped while their transaction begins, as handlers are when their client hangs up.

use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use mailgate_settings::DatabaseSettings;
use mailgate_storage::database::{pool, transaction};
use secrecy::SecretString;
use sqlx::{PgPool, Row};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::portal::visitor::api_secret;
use crate::support::database;
use crate::support::gateway::Gateway;

/// Polls a future so often, with all that waits in between, and drops it.
async fn abandon<T>(future: impl Future<Output = T>, polls: usize) -> bool {
    let mut future = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        let Some(fewer) = left.checked_sub(1) else {
            return Poll::Ready(false);
        };
        left = fewer;
        future.as_mut().poll(context).map(|_| true)
    })
    .await
}

/// Whether a statement on the pool's only connection is a transaction of its own: both begin at the same time then, by
/// the simple protocol.
async fn is_alone(pool: &PgPool) -> bool {
    sqlx::raw_sql("SELECT now() = statement_timestamp()")
        .fetch_one(pool)
        .await
        .unwrap()
        .get(0)
}

#[tokio::test]
async fn a_transaction_that_nobody_waits_for_any_more_is_rolled_back() {
    let settings = DatabaseSettings {
        url: SecretString::from(database::create().await),
        max_connections: 1,
        statement: Duration::from_mins(1),
    };
    let pool = pool::connect(&settings).await.unwrap();
    let (mut begun, mut snapshots) = (0, 0);
    for polls in 1..12 {
        begun += usize::from(abandon(transaction::begin(&pool), polls).await);
        assert!(is_alone(&pool).await, "after {polls} polls of begin");
        snapshots += usize::from(abandon(pool::snapshot(&pool), polls).await);
        assert!(is_alone(&pool).await, "after {polls} polls of snapshot");
    }
    assert!(
        begun > 0 && snapshots > 0,
        "{begun} and {snapshots} were waited for"
    );
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_hang_up_leave_no_transaction_open() {
    let gateway = Gateway::start().await;
    let address = gateway.daemon.http_address;
    let request = format!(
        "GET /logs HTTP/1.1\r\nHost: localhost\r\nX-Api-Secret: {}\r\n\r\n",
        api_secret(&gateway).await
    );
    for round in 0..60 {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
    }
    let mut connection = gateway.database().await;
    gateway
        .eventually("no transaction is open", async |_| {
            let open: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND state LIKE 'idle in transaction%'",
            )
            .fetch_one(&mut connection)
            .await
            .unwrap();
            open == 0
        })
        .await;
    gateway.stop().await;
}
