//! Connections and headers: how many an address may have, also behind a proxy.

use super::raw::{Raw, first_of};
use crate::support::gateway::Gateway;

const ASK: &str = "GET /healthz HTTP/1.1\r\nHost: gateway.example\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_so_many_connections() {
    let gateway = Gateway::builder()
        .set("LIMITS__HTTP_CONNECTIONS_PER_ADDRESS", 3)
        .start()
        .await;
    let address = gateway.daemon.http_address;
    let from = |host: u8| Raw::connect_from([127, 0, 0, host], address);
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut client = from(7).await;
        client.write(ASK).await;
        assert_eq!(client.answer().await.status, 200);
        open.push(client);
    }
    let mut fourth = from(7).await;
    assert!(fourth.is_closed().await);
    let mut elsewhere = from(8).await;
    elsewhere.write(ASK).await;
    assert_eq!(elsewhere.answer().await.status, 200);
    open.pop();
    gateway
        .eventually("the place", async |_| {
            let mut client = from(7).await;
            client.try_write(ASK).await.is_ok()
                && client.answer_within(super::raw::PATIENCE).await.is_some()
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_the_clients_are_counted_and_not_the_proxy() {
    let gateway = Gateway::builder()
        .set("HTTP__TRUSTED_PROXIES", "127.0.0.9")
        .set("LIMITS__HTTP_CONNECTIONS_PER_ADDRESS", 2)
        .start()
        .await;
    let key = gateway.app.send_key.expose();
    let begin = async |client: &str| {
        let mut connection = Raw::connect_from([127, 0, 0, 9], gateway.daemon.http_address).await;
        let fields = format!(
            "X-Forwarded-For: {client}\r\nX-Send-Key: {key}\r\nContent-Type: application/json\r\n\
             Content-Length: 10\r\nExpect: 100-continue\r\n"
        );
        connection.begin("POST", "/send", &fields).await;
        let answered = connection.answer().await;
        (connection, answered)
    };
    let mut open = Vec::new();
    for client in ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"] {
        let (connection, answered) = begin(client).await;
        assert_eq!(answered.status, 100, "{client}");
        open.push(connection);
    }
    let (_, answered) = begin("192.0.2.1").await;
    assert_eq!(answered.problem(), (429, "too_many_connections"));
    assert!(answered.header.contains("retry-after: "));
    assert_eq!(begin("192.0.2.3").await.1.status, 100);
    drop(open);
    gateway
        .eventually("the place", async |_| {
            begin("192.0.2.1").await.1.status == 100
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_in_part_share_a_small_room() {
    let gateway = Gateway::builder()
        .set("LIMITS__UNAUTHENTICATED_BYTES", 100_000)
        .start()
        .await;
    // Each holds 8 KiB beyond what is free; the address has 25,000 bytes.
    let head = format!(
        "GET / HTTP/1.1\r\nHost: a.example\r\nX: {}",
        "x".repeat(12 * 1024)
    );
    let mut open = Vec::new();
    for _ in 0..12 {
        let mut client = Raw::to(&gateway).await;
        // It may be closed before all of it is written.
        drop(client.try_write(&head).await);
        open.push(client);
    }
    let closed = first_of(&mut open, 8).await;
    assert!(closed.len() == 8 && closed.iter().all(Option::is_none));
    // A header of the usual size needs no room of them.
    let mut small = Raw::to(&gateway).await;
    small.begin("GET", "/healthz", "").await;
    assert_eq!(small.answer().await.status, 200);
    gateway.stop().await;
}
