//! What the database reads to end a message, whatever its statistics say.

use crate::support::gateway::Gateway;

/// Far more than are looked up here.
const WAITING: i64 = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn an_ending_reads_its_own_row_among_thousands_that_nobody_has_counted() {
    let gateway = Gateway::start().await;
    let database = &mut gateway.database().await;
    sqlx::query("ALTER TABLE spool SET (autovacuum_enabled = false)")
        .execute(&mut *database)
        .await
        .unwrap();
    wait(database).await;
    // As a busy table is that has just emptied: many pages, and nothing in them.
    for statement in ["DELETE FROM spool", "ANALYZE spool"] {
        sqlx::query(statement)
            .execute(&mut *database)
            .await
            .unwrap();
    }
    wait(database).await;
    let before = read(&gateway).await;
    for _ in 0..3 {
        let (status, answer) = gateway.send_to("bob@example.com").await;
        assert_eq!(status, 200, "{answer}");
    }
    gateway
        .eventually("three ends are counted", async |gateway| {
            let ends = "SELECT n_tup_del FROM pg_stat_user_tables WHERE relname = 'spool'";
            counted(gateway, ends).await >= 3
        })
        .await;
    let read = read(&gateway).await - before;
    assert!(read < WAITING / 10, "{read} rows were read for three ends");
    gateway.stop().await;
}

/// Rows of the spool that were read by id so far.
async fn read(gateway: &Gateway) -> i64 {
    let read = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'spool_pkey'";
    counted(gateway, read).await
}

/// Short statements would take hundreds of times as long if they were compiled.
#[tokio::test(flavor = "multi_thread")]
async fn no_statement_is_compiled() {
    let gateway = Gateway::start().await;
    let mut connections = vec![gateway.daemon.pool.acquire().await.unwrap().detach()];
    let maintenance = mailgate_storage::database::pool::maintenance(&gateway.daemon.pool).await;
    connections.push(maintenance.unwrap());
    for connection in &mut connections {
        let jit: String = sqlx::query_scalar("SHOW jit")
            .fetch_one(connection)
            .await
            .unwrap();
        assert_eq!(jit, "off");
    }
    gateway.stop().await;
}

async fn counted(gateway: &Gateway, query: &'static str) -> i64 {
    sqlx::query_scalar(query)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

/// [`WAITING`] messages wait for another time.
async fn wait(database: &mut sqlx::PgConnection) {
    sqlx::query(
        "INSERT INTO spool
             (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
              subject, plugin, size_bytes, has_attachments, recipients, smtputf8, opened_at, state,
              next_attempt_at)
         SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'ada@example.com',
                'bob@example.com', '{}', '{}', 'Hello', 'plugin_a', 1000, false,
                '{bob@example.com}', false, now(), 'deferred', '2200-01-01'
         FROM generate_series(1, $1)",
    )
    .bind(WAITING)
    .execute(database)
    .await
    .unwrap();
}
