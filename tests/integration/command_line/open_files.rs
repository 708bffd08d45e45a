//! A gateway that has run out of file descriptors: it waits for one, without spinning, and goes on.

use chrono::{DateTime, FixedOffset, TimeDelta};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;

use super::serve::replica;
use crate::support::gateway::Gateway;

/// What it may have open: what it needs itself, and some connections.
const FILES: &str = "--nofile=100";

/// More clients than that.
const CLIENTS: usize = 120;

/// The pause after a failed accept, and a little less.
const PAUSE: TimeDelta = TimeDelta::milliseconds(90);

#[tokio::test]
async fn without_a_free_file_it_pauses_and_goes_on() {
    let gateway = Gateway::start().await;
    let mut serve = replica(&gateway).under(["prlimit", FILES]).start();
    let address = serve.ready().await.starttls;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(TcpStream::connect(address).await.unwrap());
    }
    let failures = serve
        .wait_for("failed accepts", |running| {
            let failures: Vec<_> = (running.stderr().lines()).filter_map(failure).collect();
            (failures.len() >= 4).then_some(failures)
        })
        .await;
    for pair in failures.windows(2) {
        let pause = pair[1] - pair[0];
        assert!(pause >= PAUSE, "it tried again after {pause}");
    }

    drop(clients);
    let mut client = BufReader::new(TcpStream::connect(address).await.unwrap());
    let mut greeting = String::new();
    client.read_line(&mut greeting).await.unwrap();
    assert!(greeting.starts_with("220 "), "{greeting}");
    drop(client);
    serve.terminate().await;
    gateway.stop().await;
}

/// When the SMTP listener could not accept a connection, if that is what a line of the log says.
fn failure(line: &str) -> Option<DateTime<FixedOffset>> {
    let line: Value = serde_json::from_str(line).ok()?;
    let is_one = line["message"] == "a connection could not be accepted"
        && line["target"] == "mailgate_smtp::listener";
    is_one.then(|| line["timestamp"].as_str()?.parse().ok())?
}
