//! The tables of the release before, with messages in every state: the new release brings each to its end.

use sqlx::PgConnection;

use super::{Gateway, send};
use crate::command_line::serve::replica;

/// Takes the newest way of holding messages out of the tables again.
const TURNED_BACK: [&str; 7] = [
    "ALTER TABLE spool DROP COLUMN gateway_id, DROP COLUMN idempotency_key",
    "ALTER TABLE billing_notices DROP COLUMN lease_until",
    "ALTER TABLE payprov_events DROP COLUMN lease_until",
    "DROP TABLE gateways",
    "DROP INDEX idempotency_keys_of_before",
    "DELETE FROM _sqlx_migrations WHERE version IN (17, 55)",
    "ANALYZE spool",
];

/// To whom, and how the release before holds it.
const HELD: [(&str, &str); 5] = [
    ("waits@example.com", "state = 'deferred'"),
    (
        "waits.long@example.com",
        "state = 'deferred', next_attempt_at = now() + interval '3 seconds'",
    ),
    (
        "in.dead.hands@example.com",
        "state = 'open', outcome_unknown = false, lease_until = now() - interval '1 minute'",
    ),
    (
        "in.living.hands@example.com",
        "state = 'open', outcome_unknown = false, lease_until = now() + interval '3 seconds'",
    ),
    // It was out when its process died, and no look into the mailbox shows it.
    (
        "out@example.com",
        "state = 'open', outcome_unknown = true, lease_until = now() - interval '1 minute'",
    ),
];

async fn run(database: &mut PgConnection, statement: String) -> u64 {
    sqlx::query(sqlx::AssertSqlSafe(statement))
        .execute(database)
        .await
        .unwrap()
        .rows_affected()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_the_release_before_are_brought_to_their_ends() {
    let gateway = Gateway::start().await;
    for _ in HELD {
        assert_eq!(gateway.send_to("tempfail@example.com").await.0, 202);
    }
    gateway.stop_daemon().await;
    let database = &mut gateway.database().await;
    run(
        database,
        "UPDATE spool SET next_attempt_at = now()".to_owned(),
    )
    .await;
    for (number, (recipient, held)) in HELD.iter().enumerate() {
        let changed = format!(
            "UPDATE spool SET recipients = '{{{recipient}}}', {held}
             WHERE id = (SELECT id FROM spool ORDER BY id OFFSET {number} LIMIT 1)"
        );
        assert_eq!(run(database, changed).await, 1);
    }
    for statement in TURNED_BACK {
        run(database, statement.to_owned()).await;
    }

    let mut child = replica(&gateway).start();
    let http = child.ready().await.http;
    gateway
        .eventually("the end of all messages", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
    assert_eq!(send(&gateway, http, "bob@example.com").await.0, 200);
    let mut arrived: Vec<String> = (gateway.sandbox.inbox.list(usize::MAX).iter())
        .flat_map(|message| message.envelope_to.clone())
        .collect();
    arrived.sort();
    assert_eq!(
        arrived,
        [
            "bob@example.com",
            "in.dead.hands@example.com",
            "in.living.hands@example.com",
            "waits.long@example.com",
            "waits@example.com",
        ]
    );
    let logged: Vec<(String, i64)> =
        sqlx::query_as("SELECT status, count(*) FROM email_logs GROUP BY status ORDER BY status")
            .fetch_all(database)
            .await
            .unwrap();
    let expected = [("failed_perm".to_owned(), 1), ("sent".to_owned(), 5)];
    assert_eq!(logged, expected);
    child.terminate().await;
    gateway.stop().await;
}
