//! SMTP listeners behind a balancer that says whose connection it passes on.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::gateway::{Builder, Gateway};
use crate::support::patience::PATIENCE;
use crate::support::smtp_client::SmtpClient;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A header for a client at 192.0.2.`last`, with a TLV behind it.
fn header(last: u8) -> Vec<u8> {
    let addresses = [192, 0, 2, last, 198, 51, 100, 1, 0x11, 0xd7, 0x02, 0x4b];
    let tlv = [0x04, 0, 2, 0, 0];
    [SIGNATURE, &[0x21, 0x11, 0, 17], &addresses, &tlv].concat()
}

fn balanced() -> Builder {
    Gateway::builder().set("SMTP__PROXY_PROTOCOL_FROM", "127.0.0.0/8,::1")
}

/// Whether the other side has closed, without a word.
async fn closed_in_silence(socket: &mut TcpStream) -> bool {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut bytes));
    drop(read.await.expect("it ends"));
    bytes.is_empty()
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_goes_through_both_ports_behind_a_balancer() {
    let gateway = balanced().start().await;
    for (address, implicit) in [
        (gateway.starttls_address(), false),
        (gateway.tls_address(), true),
    ] {
        let mut client = SmtpClient::connect(address).await;
        // The header in pieces, and nothing of what follows is lost with it.
        let header = header(1);
        client.write(&header[..7]).await;
        client.write(&header[7..20]).await;
        client.write(&header[20..]).await;
        let mut client = if implicit {
            let mut client = client.encrypt(&gateway.ca_file).await;
            client.reply().await;
            client
        } else {
            client.reply().await;
            client.command("EHLO client.example").await;
            assert!(client.command("STARTTLS").await.starts_with("220 "));
            client.encrypt(&gateway.ca_file).await
        };
        assert!(client.command("EHLO client.example").await.contains("AUTH"));
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_count_the_client_and_not_the_balancer() {
    let gateway = balanced()
        .set("LIMITS__SMTP_CONNECTIONS_PER_ADDRESS", 1)
        .start()
        .await;
    let connect = async |last| {
        let mut client = SmtpClient::connect(gateway.starttls_address()).await;
        client.write(&header(last)).await;
        let greeting = client.reply().await;
        (client, greeting)
    };
    let (_first, greeting) = connect(1).await;
    assert!(greeting.starts_with("220 "), "{greeting}");
    let (_other, greeting) = connect(2).await;
    assert!(greeting.starts_with("220 "), "another client: {greeting}");
    let (_second, refusal) = connect(1).await;
    assert!(refusal.starts_with("421 4.3.2"), "{refusal}");
    // The balancer speaks for itself: its own address counts.
    let mut own = SmtpClient::connect(gateway.starttls_address()).await;
    own.write(&[SIGNATURE, &[0x20, 0, 0, 0]].concat()).await;
    assert!(own.reply().await.starts_with("220 "));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balancer_that_says_nothing_right_is_cut_off() {
    let gateway = balanced().start().await;
    for beginning in [
        b"EHLO client.example\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.1 198.51.100.1 1 2\r\n".to_vec(),
        [SIGNATURE, &[0x31, 0x11, 0, 12]].concat(),
        [SIGNATURE, &[0x21, 0x11, 0xff, 0xff]].concat(),
        // Late: it never comes to an end.
        header(1)[..20].to_vec(),
        Vec::new(),
    ] {
        let mut socket = TcpStream::connect(gateway.starttls_address())
            .await
            .unwrap();
        socket.write_all(&beginning).await.unwrap();
        assert!(closed_in_silence(&mut socket).await, "{beginning:02x?}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_can_claim_an_address() {
    let other: SocketAddr = "192.0.2.0:0".parse().unwrap();
    let gateway = Gateway::builder()
        .set("SMTP__PROXY_PROTOCOL_FROM", other.ip())
        .start()
        .await;
    let mut client = SmtpClient::connect(gateway.starttls_address()).await;
    assert!(
        client.reply().await.starts_with("220 "),
        "no header is waited for"
    );
    client.write(&header(1)).await;
    let reply = client.reply().await;
    assert!(
        reply.starts_with("500 ") || reply.starts_with("501 "),
        "{reply}"
    );
    gateway.stop().await;
}

/// A wrong key with somebody's word on the client; whether that was slowed down.
async fn fails_slowly(gateway: &Gateway, client: &str) -> bool {
    let began = std::time::Instant::now();
    let request = gateway.http.get(format!("{}/me", gateway.daemon.base_url));
    let request = request
        .header("x-api-secret", "wrong")
        .header("x-forwarded-for", client);
    assert_eq!(request.send().await.unwrap().status().as_u16(), 401);
    began.elapsed() > Duration::from_secs(2)
}

/// Failures are slowed after two a minute from one address.
fn slow_after_two() -> Builder {
    Gateway::builder().set("LIMITS__AUTHENTICATION_FAILURES_PER_MINUTE", 2)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxys_word_on_the_client_counts_for_rest() {
    let gateway = slow_after_two()
        .set("HTTP__TRUSTED_PROXIES", "127.0.0.1")
        .start()
        .await;
    for _ in 0..2 {
        assert!(!fails_slowly(&gateway, "1.2.3.4, 192.0.2.1").await);
    }
    assert!(
        fails_slowly(&gateway, "5.6.7.8, 192.0.2.1").await,
        "the third of one client is slowed down"
    );
    assert!(
        !fails_slowly(&gateway, "192.0.2.2").await,
        "another one isn't"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_elses_word_on_the_client_counts_for_rest() {
    for proxies in ["", "192.0.2.0/24"] {
        let gateway = slow_after_two()
            .set("HTTP__TRUSTED_PROXIES", proxies)
            .start()
            .await;
        for client in ["192.0.2.1", "192.0.2.2"] {
            assert!(!fails_slowly(&gateway, client).await);
        }
        assert!(
            fails_slowly(&gateway, "192.0.2.3").await,
            "all come from one address"
        );
        gateway.stop().await;
    }
}
