//! What strangers ask of the listeners that answer challenges.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mailgate_types::ids::CertificateId;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{MX, WEB, local, of_pebble};
use crate::peers::pebble::Pebble;
use crate::support::gateway::Gateway;
use crate::support::patience::PATIENCE;
use crate::support::ports;

/// Sends these bytes, and reads to the end.
async fn exchange(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(local(port)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    read.expect("the connection ends").unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(path: &str, host: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

const TOKEN: &str = "DGyRejmCefe7v4NfDGDKfA_-0123456789abcdefghi";

/// A challenge that some other replica has published.
async fn publish(gateway: &Gateway, seconds: i32) {
    sqlx::query(
        "WITH certificate AS (
             INSERT INTO certificates (id, name, directory_url, due_at)
             VALUES ($1, $2, 'https://other.example/dir', now() + interval '1 day')
             ON CONFLICT (name, directory_url) DO UPDATE SET due_at = EXCLUDED.due_at RETURNING id
         )
         INSERT INTO acme_challenges
         SELECT id, $3, $3 || '.thumbprint', now() + make_interval(secs => $4) FROM certificate
         ON CONFLICT (certificate_id) DO UPDATE SET expires_at = EXCLUDED.expires_at",
    )
    .bind(CertificateId::at(chrono::Utc::now()).0)
    .bind(MX)
    .bind(TOKEN)
    .bind(f64::from(seconds))
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_listener_answers_what_is_asked_for_at_the_moment_and_nothing_else() {
    let pebble = Pebble::start().await;
    let [port] = ports::reserve();
    let gateway = of_pebble(Gateway::builder(), &pebble, local(port))
        .start()
        .await;
    let path = format!("/.well-known/acme-challenge/{TOKEN}");
    assert!(
        exchange(port, &get(&path, MX))
            .await
            .starts_with("HTTP/1.1 404")
    );
    publish(&gateway, 60).await;
    // Whatever the Host: nothing in the answer is of it.
    for host in [MX, "evil.example", ""] {
        let answer = exchange(port, &get(&path, host)).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(
            answer.ends_with(&format!("\r\n\r\n{TOKEN}.thumbprint")),
            "{answer}"
        );
        assert!(!answer.contains("evil"), "{answer}");
    }
    let long = format!("/.well-known/acme-challenge/{}", "a".repeat(4_000));
    for path in [
        "/",
        "/readyz",
        "/send",
        "/.well-known/acme-challenge/",
        "/.well-known/acme-challenge",
        "/.well-known/acme-challenge/unknown",
        "/.well-known/acme-challenge/..%2f..%2fetc%2fpasswd",
        "/.well-known/acme-challenge/../../etc/passwd",
        "/.well-known/acme-challenge/%00",
        "/.well-known/acme-challenge/%ff",
        "/.well-known/acme-challenge/%25",
        "/.well-known/acme-challenge/'%20OR%201=1--",
        &long,
        &format!("{path}/"),
        &format!("{path}.thumbprint"),
        &path[..path.len() - 1],
        &path.to_lowercase(),
    ] {
        let answer = exchange(port, &get(path, MX)).await;
        let status = answer.get(9..12).unwrap_or_default();
        assert!(matches!(status, "404" | "400"), "{path}: {answer}");
        assert!(!answer.contains("thumbprint"), "{answer}");
    }
    let submitted = format!(
        "POST {path} HTTP/1.1\r\nHost: {MX}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    assert!(exchange(port, &submitted).await.starts_with("HTTP/1.1 405"));
    let huge = format!(
        "GET {path} HTTP/1.1\r\nHost: {MX}\r\nX: {}\r\n\r\n",
        "x".repeat(64 * 1024)
    );
    let answer = exchange_until_cut(port, &huge).await;
    assert!(!answer.contains("thumbprint"), "{answer}");
    publish(&gateway, -1).await;
    assert!(
        exchange(port, &get(&path, MX))
            .await
            .starts_with("HTTP/1.1 404")
    );
    gateway.stop().await;
}

/// A connection from this address of the machine, on which nothing is asked.
async fn silent(from: u8, port: u16) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .bind(SocketAddr::from(([127, 0, 0, from], 0)))
        .unwrap();
    socket.connect(local(port)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_ask_nothing_make_room() {
    let pebble = Pebble::start().await;
    let [port] = ports::reserve();
    let gateway = of_pebble(Gateway::builder(), &pebble, local(port))
        .start()
        .await;
    publish(&gateway, 60).await;
    let path = format!("/.well-known/acme-challenge/{TOKEN}");
    // Half of it is here already when the others come.
    let mut slow = TcpStream::connect(local(port)).await.unwrap();
    let request = get(&path, MX);
    let (begin, end) = request.split_at(40);
    slow.write_all(begin.as_bytes()).await.unwrap();
    let mut silents = Vec::new();
    for from in 2..=9 {
        for _ in 0..32 {
            silents.push(silent(from, port).await);
        }
    }
    for _ in 0..20 {
        let answer = timeout(Duration::from_secs(2), exchange(port, &request)).await;
        let answer = answer.expect("it is answered");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        silents.push(silent(2, port).await);
    }
    slow.write_all(end.as_bytes()).await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    // One answer, whether the client wants more or not, and HTTP/1.1 alone.
    let kept = format!("GET {path} HTTP/1.1\r\nHost: {MX}\r\n\r\n");
    assert!(exchange(port, &kept).await.contains("connection: close"));
    let answer = exchange_until_cut(port, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(!answer.contains('\0'), "{answer:?}");
    // Silence is short, too.
    let mut last = silent(3, port).await;
    let ended = timeout(Duration::from_secs(20), last.read_u8()).await;
    assert!(ended.expect("it ends").is_err());
    gateway.stop().await;
}

/// The same where the server may close while this end still writes.
async fn exchange_until_cut(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(local(port)).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.write_all(request.as_bytes()).await;
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer))
        .await
        .expect("the connection ends");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handshake_of_a_challenge_carries_nothing() {
    let pebble = Pebble::start().await;
    let [port] = ports::reserve();
    // Pebble asks elsewhere, so nothing is issued.
    let gateway = of_pebble(Gateway::builder(), &pebble, local(0))
        .set("ACME__CHALLENGE", "tls-alpn-01")
        .set("HTTP__TLS_LISTEN", local(port))
        .set("HTTP__BASE_URL", format!("https://{WEB}"))
        .start()
        .await;
    let shake = async |name: &str, protocols: &[&[u8]]| {
        let mut config = rustls::ClientConfig::builder()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate))
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(local(port)).await.unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        timeout(PATIENCE, connector.connect(name, stream))
            .await
            .expect("the handshake ends")
    };
    for unknown in ["other.example", "127.0.0.1"] {
        assert!(shake(unknown, &[b"acme-tls/1"]).await.is_err(), "{unknown}");
    }
    // With another protocol beside it, it is no challenge.
    let stream = shake(WEB, &[b"acme-tls/1", b"http/1.1"]).await.unwrap();
    assert_eq!(
        stream.get_ref().1.alpn_protocol(),
        Some(b"http/1.1".as_slice())
    );
    publish(&gateway, 60).await;
    let mut stream = shake(MX, &[b"acme-tls/1"]).await.unwrap();
    assert_eq!(
        stream.get_ref().1.alpn_protocol(),
        Some(b"acme-tls/1".as_slice())
    );
    let _ = stream.write_all(get("/readyz", MX).as_bytes()).await;
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer))
        .await
        .expect("the connection ends");
    assert!(answer.is_empty(), "{answer:?}");
    gateway.stop().await;
}

/// Takes any certificate, also one with an extension that it doesn't know.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
