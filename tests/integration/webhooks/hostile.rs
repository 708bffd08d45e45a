//! What strangers' addresses and receivers may try.

use super::{attempted, configure, connected, gateway, happen, queued};
use crate::support::gateway::{Gateway, create_app};
use crate::support::patience;
use crate::support::receiver::{Receiver, Reply};

const EVENTS: &[&str] = &["user.connected"];

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_strangers_have_no_business_at() {
    let gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    let port = receiver.address.port();
    let urls = [
        receiver.url("/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://localhost:{port}/"),
        format!("https://localhost.:{port}/"),
        format!("https://0x7f.1:{port}/"),
        format!("https://2130706433:{port}/"),
        format!("https://0177.0.0.1:{port}/"),
        format!("https://127.1:{port}/"),
        format!("https://0:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("https://[::]:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://[64:ff9b::7f00:1]:{port}/"),
        format!("https://[2002:7f00:1::]:{port}/"),
        format!("https://user:password@127.0.0.1:{port}/"),
        format!("https://1.1.1.1@127.0.0.1:{port}/"),
        "https://169.254.169.254/latest/meta-data/".to_owned(),
        "https://10.0.0.1/".to_owned(),
        "https://100.64.0.1/".to_owned(),
        "https://[fd00::1]/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "not a URL".to_owned(),
    ];
    for url in &urls {
        configure(&gateway, gateway.app.id, url, EVENTS, super::SECRET).await;
    }
    happen(&gateway, &[connected(gateway.app.id)]).await;
    let deliveries = attempted(&gateway, urls.len()).await;
    for delivery in deliveries {
        assert!(!delivery.success);
        assert_eq!(delivery.http_status, None);
        let message = delivery.error_message.unwrap();
        assert!(message.starts_with("the URL "), "{message}");
        assert!(!message.contains("127."), "{message}");
    }
    // None is tried again, and nobody was called.
    assert!(queued(&gateway).await.is_empty());
    assert_eq!(receiver.count(), 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_without_an_end() {
    let gateway = gateway().set("WEBHOOKS__EXCHANGE_SECONDS", 2).start().await;
    for (reply, status, success, most, least) in [
        (Reply::Endless, Some(200), true, 16_384, 8_192),
        // As much as comes within the time.
        (Reply::Drip, Some(200), true, 30, 1),
        (Reply::Hang, None, false, 0, 0),
        (
            Reply::Bytes(500, vec![0xff; 100_000]),
            Some(500),
            false,
            16_383,
            8_191,
        ),
        (
            Reply::Bytes(400, b"\0\x1b[31m\0".to_vec()),
            Some(400),
            false,
            11,
            5,
        ),
    ] {
        let receiver = Receiver::start().await;
        receiver.always(reply.clone());
        sqlx::query("DELETE FROM webhook_queue")
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        sqlx::query("DELETE FROM webhook_deliveries")
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        super::set_own_url(&gateway, &receiver.url("/")).await;
        happen(&gateway, &[connected(gateway.app.id)]).await;
        let delivery = attempted(&gateway, 1).await.pop().unwrap();
        assert_eq!(
            (delivery.http_status, delivery.success),
            (status, success),
            "{reply:?}"
        );
        let kept = delivery.response_body.len();
        assert!((least..=most).contains(&kept), "{reply:?}: {kept}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_head() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let gateway = gateway().set("WEBHOOKS__EXCHANGE_SECONDS", 2).start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = socket.read(&mut [0; 4_096]).await;
                let _ = socket.write_all(b"HTTP/1.1 200 OK\r\n").await;
                while socket
                    .write_all(b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")
                    .await
                    .is_ok()
                {}
            });
        }
    });
    super::set_own_url(&gateway, &url).await;
    happen(&gateway, &[connected(gateway.app.id)]).await;
    let delivery = attempted(&gateway, 1).await.pop().unwrap();
    assert!(!delivery.success && delivery.http_status.is_none());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_endpoints_that_hang_leave_places_to_another_subscriber() {
    let gateway = gateway()
        .set("WEBHOOKS__CONCURRENCY", 8)
        .set("WEBHOOKS__EXCHANGE_SECONDS", 300)
        .start()
        .await;
    let (hanging, receiver) = (Receiver::start().await, Receiver::start().await);
    hanging.always(Reply::Hang);
    for number in 0..12 {
        let url = hanging.url(&format!("/{number}"));
        configure(&gateway, gateway.app.id, &url, EVENTS, super::SECRET).await;
    }
    happen(&gateway, &[connected(gateway.app.id)]).await;
    patience::until("hanging deliveries", async || hanging.count() >= 4).await;
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    configure(
        &gateway,
        other.id,
        &receiver.url("/"),
        EVENTS,
        super::SECRET,
    )
    .await;
    for number in 1..=3 {
        happen(&gateway, &[connected(other.id)]).await;
        patience::until("the other one's", async || receiver.count() == number).await;
    }
    assert_eq!(hanging.count(), 4, "no more than it leaves to the others");
    drop(hanging);
    gateway.stop().await;
}
