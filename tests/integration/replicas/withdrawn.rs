//! A gateway that could not hear that a message was stored takes it back, unless another one has told the caller
//! meanwhile that it is queued.

use serde_json::{Value, json};

use crate::command_line::process::{Running, http_client};
use crate::command_line::serve;
use crate::crash::database::DurablePostgres;
use crate::crash::database_line::DatabaseLine;
use crate::support::gateway::Gateway;
use crate::support::patience;

/// What a gateway logs that has given up storing a message.
const WITHDRAWN: &str = "a message that failed may have been stored: it is withdrawn";

/// `POST /send` of a message that its provider refuses for now; always under the same key.
async fn send(gateway: &Gateway, base_url: &str) -> (u16, Value) {
    let request = http_client()
        .post(format!("{base_url}/send"))
        .header("x-send-key", gateway.app.send_key.expose())
        .header("idempotency-key", "order 17")
        .json(&json!({
            "pk": gateway.app.pushable_key.expose(),
            "to": "tempfail@example.com",
            "subject": "Hello",
            "body": "It works.",
        }));
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

async fn keys(gateway: &Gateway) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM idempotency_keys")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

/// A gateway that hears nothing of the database from the commit on by which it stores a message, until the line is
/// opened.
async fn deaf(gateway: &Gateway, line: &DatabaseLine) -> (Running, String) {
    let mut deaf = serve::replica(gateway)
        .set("DATABASE__URL", line.url())
        .set("LOG__FILTER", "debug")
        .start();
    let address = deaf.ready().await.http;
    (deaf, format!("http://{address}"))
}

/// The caller of a gateway that can't know what became of its message is told so, and the message is sent.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_stored_is_not_called_unsent() {
    let postgres = DurablePostgres::start().await;
    let database = postgres.create_database().await;
    let gateway = Gateway::builder().database(&database).start().await;
    let line = DatabaseLine::start(postgres.socket());
    let (mut deaf, base_url) = deaf(&gateway, &line).await;

    let ((), (status, problem)) = tokio::join!(line.lose_stored(), send(&gateway, &base_url));
    assert_eq!((status, &problem["code"]), (500, &json!("outcome_unknown")));
    assert_eq!((gateway.spooled().await, keys(&gateway).await), (1, 1));
    line.open();
    let (status, told) = send(&gateway, &gateway.daemon.base_url).await;
    assert_eq!((status, &told["status"]), (202, &json!("failed_temp")));
    assert_eq!((gateway.spooled().await, keys(&gateway).await), (1, 1));
    deaf.terminate().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_was_told_elsewhere_is_not_taken_back() {
    let postgres = DurablePostgres::start().await;
    let database = postgres.create_database().await;
    let gateway = Gateway::builder().database(&database).start().await;
    let line = DatabaseLine::start(postgres.socket());
    let (mut deaf, base_url) = deaf(&gateway, &line).await;

    let elsewhere = async {
        line.lose_stored().await;
        deaf.logged(WITHDRAWN).await;
        let told = send(&gateway, &gateway.daemon.base_url).await;
        line.open();
        told
    };
    let ((status, told), unheard) = tokio::join!(elsewhere, send(&gateway, &base_url));
    assert_eq!((status, &told["status"]), (202, &json!("failed_temp")));
    let (status, problem) = unheard;
    assert_eq!((status, &problem["code"]), (500, &json!("outcome_unknown")));
    assert_eq!((gateway.spooled().await, keys(&gateway).await), (1, 1));
    assert_eq!(gateway.logged().await[0].0, "failed_temp");
    let (status, again) = send(&gateway, &gateway.daemon.base_url).await;
    assert_eq!((status, &again["log_id"]), (202, &told["log_id"]));
    deaf.terminate().await;
    gateway.stop().await;
}

/// What another gateway has sent meanwhile is nowhere in the queue, and was sent all the same.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_elsewhere_is_not_called_withdrawn() {
    let postgres = DurablePostgres::start().await;
    let database = postgres.create_database().await;
    let gateway = Gateway::builder().database(&database).start().await;
    let line = DatabaseLine::start(postgres.socket());
    let (mut deaf, base_url) = deaf(&gateway, &line).await;

    let ended = async {
        line.lose_stored().await;
        deaf.logged(WITHDRAWN).await;
        // Another gateway has tried it again, and it has ended.
        let mut database = gateway.database().await;
        for statement in [
            "DELETE FROM spool",
            "UPDATE email_logs SET status = 'sent', error_message = NULL",
        ] {
            sqlx::query(statement).execute(&mut database).await.unwrap();
        }
        line.open();
    };
    let ((), (status, problem)) = tokio::join!(ended, send(&gateway, &base_url));
    assert_eq!((status, &problem["code"]), (500, &json!("outcome_unknown")));
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    deaf.terminate().await;
    gateway.stop().await;
}

/// A gateway that is cut off can't know whether it has opened a message, but that it has sent nothing. Another one that takes
/// the message over can only say that it may have arrived, and is corrected.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_over_unsent_is_said_to_be_unsent() {
    let postgres = DurablePostgres::start().await;
    let database = postgres.create_database().await;
    let gateway = Gateway::builder().database(&database).start().await;
    let line = DatabaseLine::start(postgres.socket());
    let (deaf, base_url) = deaf(&gateway, &line).await;

    let taken_over = async {
        line.lose_commit("INSERT INTO idempotency_keys").await;
        let mut database = gateway.database().await;
        sqlx::query(
            "UPDATE gateways SET ended_at = now() WHERE id = (SELECT gateway_id FROM spool)",
        )
        .execute(&mut database)
        .await
        .unwrap();
        patience::until("another gateway ends it", async || {
            let logged = gateway.logged().await;
            let told = logged.first().and_then(|(_, error)| error.clone());
            told.is_some_and(|told| told.contains("it may have arrived"))
        })
        .await;
        line.open();
    };
    let ((), (status, problem)) = tokio::join!(taken_over, send(&gateway, &base_url));
    assert_eq!((status, &problem["code"]), (503, &json!("unavailable")));
    patience::until("the log is corrected", async || {
        let error = gateway.logged().await.remove(0).1.unwrap();
        error.starts_with("Nothing was sent: ") && keys(&gateway).await == 0
    })
    .await;
    // The key is free: a new message.
    let (status, told) = send(&gateway, &gateway.daemon.base_url).await;
    assert_eq!(status, 202, "{told}");
    assert_eq!((gateway.spooled().await, keys(&gateway).await), (1, 1));
    drop(deaf);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_was_told_is_taken_back() {
    let postgres = DurablePostgres::start().await;
    let database = postgres.create_database().await;
    let gateway = Gateway::builder().database(&database).start().await;
    let line = DatabaseLine::start(postgres.socket());
    let (mut deaf, base_url) = deaf(&gateway, &line).await;

    let cut = async {
        line.lose_stored().await;
        deaf.logged(WITHDRAWN).await;
        line.open();
    };
    let ((), (status, problem)) = tokio::join!(cut, send(&gateway, &base_url));
    assert_eq!((status, &problem["code"]), (503, &json!("unavailable")));
    assert_eq!((gateway.spooled().await, keys(&gateway).await), (0, 0));
    assert_eq!(gateway.logged().await, []);
    // The key is free: a new message.
    let (status, told) = send(&gateway, &gateway.daemon.base_url).await;
    assert_eq!(status, 202, "{told}");
    assert_eq!((gateway.spooled().await, keys(&gateway).await), (1, 1));
    deaf.terminate().await;
    gateway.stop().await;
}
