//! What the database reads before a grant is revoked, however many mailboxes others have.

use mailgate_storage::mailboxes::end::is_account_connected;
use mailgate_types::plugin::Plugin;
use sqlx::{Connection as _, PgConnection};

use crate::support::gateway::{Gateway, MAILBOX};

/// Of other users: as many that are connected, and far more that were.
const CONNECTED: i64 = 2_000;
const FORMER: i64 = 20_000;

/// A statement is planned anew for its first few calls, and once for all others.
const CALLS: i64 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn whether_an_account_is_connected_costs_the_same_among_thousands() {
    let gateway = Gateway::start().await;
    // Nothing else is to read the table.
    gateway.stop_daemon().await;
    let mut connection = gateway.database().await;
    insert(&mut connection, "disconnected", FORMER).await;
    insert(&mut connection, "active", CONNECTED).await;
    sqlx::query("ANALYZE mailboxes")
        .execute(&mut connection)
        .await
        .unwrap();
    end(&gateway, connection).await;
    for (address, expected) in [
        (Some(MAILBOX), true),
        (Some("active-7@example.com"), true),
        (Some("disconnected-7@example.com"), false),
        (Some("nobody@example.com"), false),
        (None, true),
    ] {
        let before = read(&gateway).await;
        let mut connection = gateway.database().await;
        for _ in 0..CALLS {
            let found = is_account_connected(&mut connection, Plugin::A, address);
            assert_eq!(found.await.unwrap(), expected, "{address:?}");
        }
        end(&gateway, connection).await;
        let read = read(&gateway).await - before;
        assert!(read <= CALLS, "{address:?}: {read} rows for {CALLS} calls");
    }
    gateway.stop().await;
}

/// Ends a connection: what it has counted is there for others once it has ended.
async fn end(gateway: &Gateway, mut connection: PgConnection) {
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    gateway
        .eventually("the end of the connection", async |gateway| {
            let pids = sqlx::query_scalar("SELECT pid FROM pg_stat_activity WHERE pid IS NOT NULL");
            let database = &mut gateway.database().await;
            let pids: Vec<i32> = pids.fetch_all(database).await.unwrap();
            !pids.contains(&pid)
        })
        .await;
}

/// Rows of the mailboxes that were read so far, by whatever way.
async fn read(gateway: &Gateway) -> i64 {
    let read = "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
                FROM pg_stat_user_tables WHERE relname = 'mailboxes'";
    sqlx::query_scalar(read)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

async fn insert(connection: &mut PgConnection, status: &str, number: i64) {
    sqlx::query(
        "INSERT INTO mailboxes
             (id, app_id, user_key, plugin, email, email_lookup, status, scopes, connected_at,
              disconnected_at)
         SELECT gen_random_uuid(), app_id, user_key, 'plugin_a', address, address, $1, '{}', now(),
                CASE WHEN $1 <> 'active' THEN now() END
         FROM end_users, generate_series(1, $2) AS number,
              LATERAL (SELECT $1 || '-' || number || '@example.com' AS address) AS named",
    )
    .bind(status)
    .bind(number)
    .execute(connection)
    .await
    .unwrap();
}
