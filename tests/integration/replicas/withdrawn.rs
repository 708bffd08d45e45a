//! A gateway that could not hear that a message was stored takes it back, unless another one has told the caller
//! meanwhile that it is queued.

use serde_json::{Value, json};

use crate::command_line::process::http_client;
use crate::command_line::serve;
use crate::crash::database::DurablePostgres;
use crate::crash::database_line::DatabaseLine;
use crate::support::gateway::Gateway;

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

/// A gateway that stores a message, and hears nothing of the database from the commit on: its caller is told to
/// come again, and nothing is taken back as long as the line is closed.
async fn stored_unheard(
    gateway: &Gateway,
    line: &DatabaseLine,
) -> crate::command_line::process::Running {
    let mut deaf = serve::replica(gateway)
        .set("DATABASE__URL", line.url())
        .start();
    let address = deaf.ready().await.http;
    let base_url = format!("http://{address}");
    let ((), (status, problem)) = tokio::join!(line.lose_stored(), send(gateway, &base_url));
    assert_eq!((status, &problem["code"]), (503, &json!("unavailable")));
    assert_eq!((gateway.spooled().await, keys(gateway).await), (1, 1));
    deaf
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_was_told_elsewhere_is_not_taken_back() {
    let postgres = DurablePostgres::start().await;
    let database = postgres.create_database().await;
    let gateway = Gateway::builder().database(&database).start().await;
    let line = DatabaseLine::start(postgres.socket());
    let mut deaf = stored_unheard(&gateway, &line).await;

    let (status, told) = send(&gateway, &gateway.daemon.base_url).await;
    assert_eq!(
        (status, &told["status"]),
        (202, &json!("failed_temp")),
        "{told}"
    );
    line.open();
    deaf.logged(
        "a message is not withdrawn: its sender asked again, and was answered that it is queued",
    )
    .await;
    assert_eq!((gateway.spooled().await, keys(&gateway).await), (1, 1));
    assert_eq!(gateway.logged().await[0].0, "failed_temp");
    let (status, again) = send(&gateway, &gateway.daemon.base_url).await;
    assert_eq!((status, &again["log_id"]), (202, &told["log_id"]));
    deaf.terminate().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_was_told_is_taken_back() {
    let postgres = DurablePostgres::start().await;
    let database = postgres.create_database().await;
    let gateway = Gateway::builder().database(&database).start().await;
    let line = DatabaseLine::start(postgres.socket());
    let mut deaf = stored_unheard(&gateway, &line).await;

    line.open();
    gateway
        .eventually("it is taken back", async |gateway| {
            gateway.spooled().await == 0 && keys(gateway).await == 0
        })
        .await;
    assert_eq!(gateway.logged().await, []);
    // The key is free: a new message.
    let (status, told) = send(&gateway, &gateway.daemon.base_url).await;
    assert_eq!(status, 202, "{told}");
    assert_eq!((gateway.spooled().await, keys(&gateway).await), (1, 1));
    deaf.terminate().await;
    gateway.stop().await;
}
