//! More keys than one would create by hand.

use crate::portal::visitor::Visitor;
use crate::strangers::raw::Raw;
use crate::support::caller::Caller;
use crate::support::gateway::Gateway;
use crate::support::lock_waits::until_waiting;

/// Additional send keys of the gateway's app.
async fn insert_send_keys(gateway: &Gateway, count: i32) {
    sqlx::query(
        "INSERT INTO send_keys (id, app_id, name, hash_sealed, digest, created_at,
                                allowed_addresses, credential_ids)
         SELECT gen_random_uuid(), $1, 'Key ' || n, '', n::text::bytea, now(), '{}', '{}'
         FROM generate_series(1, $2) AS n",
    )
    .bind(gateway.app.id.0)
    .bind(count)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_keys_end_by_a_few_statements_whether_or_not_the_client_waits() {
    const KEYS: i32 = 2_000;
    let gateway = Gateway::start().await;
    insert_send_keys(&gateway, KEYS).await;
    let page = Visitor::signed_in(&gateway).await;
    let page = page.get("/portal/settings/api-secret/renew").await.text;
    assert_eq!(page.matches("Additional send key ").count(), 100);
    assert!(page.contains("1\u{202f}900 more"), "{page}");
    let mut database = gateway.database().await;
    sqlx::raw_sql(
        "CREATE SEQUENCE statements;
         CREATE FUNCTION count_statement() RETURNS trigger LANGUAGE plpgsql
             AS $$ BEGIN PERFORM nextval('statements'); RETURN NULL; END $$;
         CREATE TRIGGER deletions AFTER DELETE ON send_keys EXECUTE FUNCTION count_statement();
         CREATE TRIGGER entries AFTER INSERT ON audit_entries EXECUTE FUNCTION count_statement();
         BEGIN; SELECT FROM subscribers FOR KEY SHARE",
    )
    .execute(&mut database)
    .await
    .unwrap();
    let owner = Caller::owner(&gateway).await;
    let mut client = Raw::to(&gateway).await;
    let fields = format!("X-Api-Secret: {}\r\nContent-Length: 0\r\n", owner.secret);
    client
        .begin("POST", "/me/reset-api-secret?revoke=all", &fields)
        .await;
    until_waiting(&gateway, "FROM subscribers WHERE id = $1 FOR UPDATE", 1).await;
    drop(client);
    // The gateway has seen that it is gone, once it serves what came after.
    for _ in 0..10 {
        owner.get("/me").await.success(200);
    }
    sqlx::raw_sql("COMMIT")
        .execute(&mut database)
        .await
        .unwrap();
    gateway
        .eventually("the renewal", async |_| {
            owner.get("/me").await.status == 401
        })
        .await;
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM send_keys")
        .fetch_one(&mut database)
        .await
        .unwrap();
    let recorded = "SELECT count(*) FROM audit_entries
                    WHERE action = 'send_key.deleted' AND details ->> 'name' LIKE 'Key %'
                          AND target LIKE 'skey_%' AND app_slug IS NOT NULL";
    let recorded: i64 = sqlx::query_scalar(recorded)
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert_eq!((left, recorded), (0, i64::from(KEYS)));
    let statements: i64 = sqlx::query_scalar("SELECT last_value FROM statements")
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert!(statements < 10, "{statements} statements");
    gateway.stop().await;
}
