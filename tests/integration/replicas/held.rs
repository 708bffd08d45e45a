//! Commits that Postgres holds back, as it does for a synchronous standby that can't be reached: what was answered must
//! stay true once they land.

use serde_json::{Value, json};

use crate::command_line::process::http_client;
use crate::command_line::serve;
use crate::crash::database::DurablePostgres;
use crate::support::gateway::Gateway;
use crate::support::patience;

/// Names a standby that isn't there, or none.
async fn hold(gateway: &Gateway, held: bool) {
    let standby = if held { "nobody" } else { "" };
    let mut database = gateway.database().await;
    let names = format!("ALTER SYSTEM SET synchronous_standby_names = '{standby}'");
    for statement in [names.as_str(), "SELECT pg_reload_conf()"] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
            .execute(&mut database)
            .await
            .unwrap();
    }
    patience::until("the setting", async || {
        let now: String = sqlx::query_scalar("SHOW synchronous_standby_names")
            .fetch_one(&mut database)
            .await
            .unwrap();
        now == standby
    })
    .await;
}

async fn held_commits(gateway: &Gateway) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

async fn send(gateway: &Gateway, base_url: &str, key: &str) -> (u16, Value) {
    let request = http_client()
        .post(format!("{base_url}/send"))
        .header("x-send-key", gateway.app.send_key.expose())
        .header("idempotency-key", key)
        .json(&json!({
            "pk": gateway.app.pushable_key.expose(),
            "to": "bob@example.com",
            "subject": "Hello",
            "body": "It works.",
        }));
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

async fn left(gateway: &Gateway) -> (i64, i64) {
    sqlx::query_as("SELECT (SELECT count(*) FROM spool), (SELECT count(*) FROM idempotency_keys)")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_opening_lands_late_is_nowhere_and_its_key_is_free() {
    let postgres = DurablePostgres::start().await;
    let database = postgres.create_database().await;
    let gateway = Gateway::builder().database(&database).start().await;
    let base_url = gateway.daemon.base_url.clone();
    hold(&gateway, true).await;
    let (status, problem) = send(&gateway, &base_url, "order 17").await;
    assert_eq!((status, &problem["code"]), (503, &json!("unavailable")));
    hold(&gateway, false).await;
    gateway
        .eventually("nothing of it", async |gateway| {
            held_commits(gateway).await == 0 && left(gateway).await == (0, 0)
        })
        .await;
    assert_eq!(gateway.logged().await, []);
    let (status, answer) = send(&gateway, &base_url, "order 17").await;
    assert_eq!(
        (status, &answer["status"]),
        (200, &json!("sent")),
        "{answer}"
    );
    assert_eq!(gateway.arrived().await.len(), 1);
    gateway.stop().await;
}

/// Somebody changes the row of a key, and doesn't commit: repeats under it hold up nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_being_changed_holds_up_nobody_else() {
    let gateway = Gateway::start().await;
    let base_url = &gateway.daemon.base_url;
    let (status, first) = send(&gateway, base_url, "order 17").await;
    assert_eq!(status, 200, "{first}");
    let mut database = gateway.database().await;
    for statement in ["BEGIN", "DELETE FROM idempotency_keys"] {
        sqlx::query(statement).execute(&mut database).await.unwrap();
    }
    let keys = ["order 17", "1", "order 17", "2", "order 17", "3"];
    let sent = keys.map(|key| send(&gateway, base_url, key));
    let answered = futures_util::future::join_all(sent).await;
    for (key, (status, answer)) in keys.iter().zip(answered) {
        assert_eq!(status, 200, "{key}: {answer}");
        let is_first = answer["log_id"] == first["log_id"];
        assert_eq!(is_first, *key == "order 17", "{key}: {answer}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_commit_is_held_holds_up_nobody_else() {
    let postgres = DurablePostgres::start().await;
    let database = postgres.create_database().await;
    // Its own commits wait for nobody.
    let local = format!("{database}&options[synchronous_commit]=local");
    let gateway = Gateway::builder().database(&local).start().await;
    let mut held = serve::replica(&gateway)
        .set("DATABASE__URL", &database)
        .start();
    let its_url = format!("http://{}", held.ready().await.http);
    hold(&gateway, true).await;
    let beside = async {
        gateway
            .eventually("the commit that is held", async |gateway| {
                held_commits(gateway).await > 0
            })
            .await;
        let base_url = &gateway.daemon.base_url;
        let keys = ["order 17", "1", "2", "3", "4", "5", "6", "7"];
        let sent = keys.map(|key| send(&gateway, base_url, key));
        let answered = futures_util::future::join_all(sent).await;
        hold(&gateway, false).await;
        answered
    };
    let (_, answered) = tokio::join!(send(&gateway, &its_url, "order 17"), beside);
    let (its, others) = answered.split_first().unwrap();
    assert_ne!(its.0, 200, "{its:?}");
    for other in others {
        assert_eq!(other.0, 200, "{other:?}");
    }
    held.terminate().await;
    gateway.stop().await;
}
