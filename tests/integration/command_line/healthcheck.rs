//! `mailgate healthcheck`: what a container's engine asks.

use std::time::{Duration, Instant};

use tokio::net::TcpListener;

use super::process::{Finished, Invocation, certificates};
use crate::support::{database, patience};

async fn healthcheck(listen: &str) -> Finished {
    Invocation::new(["healthcheck"])
        .set("HTTP__LISTEN", listen)
        .finish()
        .await
}

#[tokio::test]
async fn it_tells_whether_the_gateway_is_ready() {
    let url = database::create().await;
    let (_folder, files) = certificates();
    let mut serve = Invocation::serve(&url, &files).start();
    let port = serve.ready().await.http.port();
    // As a container listens; nobody connects to all addresses.
    for all in ["0.0.0.0", "[::]"] {
        let ready = healthcheck(&format!("{all}:{port}")).await;
        ready.succeeds();
        assert_eq!((ready.stdout.as_str(), ready.stderr.as_str()), ("", ""));
    }

    let (server, rest) = url.split_once("/test_").unwrap();
    let (name, parameters) = rest.split_once('?').unwrap();
    let mut other = database::connect(&format!("{server}/postgres?{parameters}")).await;
    sqlx::query(sqlx::AssertSqlSafe(format!(
        "DROP DATABASE test_{name} WITH (FORCE)"
    )))
    .execute(&mut other)
    .await
    .unwrap();
    let address = format!("127.0.0.1:{port}");
    let without_database = patience::found("a look that finds the database gone", async || {
        let checked = healthcheck(&address).await;
        (!checked.stderr.is_empty()).then_some(checked)
    })
    .await;
    without_database.fails(1, &["is not ready: GET /readyz answers 503"]);
    serve.terminate().await;
    let ended = healthcheck(&address).await;
    ended.fails(1, &["nothing answers on 127.0.0.1"]);
}

#[tokio::test]
async fn it_does_not_wait_for_ever() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let began = Instant::now();
    let late = healthcheck(&address).await;
    late.fails(1, &["has not answered within 5 seconds"]);
    assert!(began.elapsed() >= Duration::from_secs(5));
}

#[tokio::test]
async fn what_speaks_no_http_is_not_ready() {
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = other.local_addr().unwrap().to_string();
    let accepts = async {
        use tokio::io::AsyncWriteExt as _;
        let (mut stream, _) = other.accept().await.unwrap();
        stream
            .write_all(b"220 mail.example ESMTP\r\n")
            .await
            .unwrap();
        drop(stream);
    };
    let (answer, ()) = tokio::join!(healthcheck(&address), accepts);
    answer.fails(1, &["doesn't answer in HTTP"]);
}

#[tokio::test]
async fn without_an_address_it_says_what_is_wrong() {
    healthcheck("127.0.0.1:0")
        .await
        .fails(1, &["http.listen: the port is 0"]);
    healthcheck("nowhere")
        .await
        .fails(1, &["http.listen: must be"]);
}
