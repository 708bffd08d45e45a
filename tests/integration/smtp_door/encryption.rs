//! What is said in clear, what under TLS, and the border between them.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::{RECIPIENT, message, plain, subjects};
use crate::peers::{process, python, sources};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

/// Longest that the scan of a port may take, on a busy machine.
const SCAN: Duration = Duration::from_mins(2);

/// The extensions in an answer to EHLO; the first line is the server's name.
fn extensions(reply: &str) -> BTreeSet<&str> {
    reply
        .lines()
        .skip(1)
        .map(|line| line.get(4..).unwrap_or(line))
        .collect()
}

/// One gateway for all of these, each with an empty inbox.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_crosses_from_clear_to_tls() {
    let gateway = Gateway::start().await;
    extensions_are_those_of_the_encryption(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    nothing_is_done_in_clear(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    a_message_goes_by_implicit_tls(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    what_is_injected_behind_starttls_has_no_effect(&gateway).await;
}

/// What sslyze finds on either port; both have the same TLS.
#[tokio::test(flavor = "multi_thread")]
async fn both_ports_pass_a_scan_of_their_tls() {
    let gateway = Gateway::start().await;
    for (tls, address) in [
        ("starttls", gateway.starttls_address()),
        ("implicit", gateway.tls_address()),
    ] {
        let mut command = Command::new(python());
        command
            .arg(sources().join("tls_scan.py"))
            .args(["localhost", &address.port().to_string(), tls])
            .arg(&gateway.ca_file);
        let output = process::run(command, b"", SCAN).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tls}: {errors}");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["issues"], json!({}), "{tls}");
        assert_eq!(found["early_data"], false, "{tls}");
        let curves = json!(["X25519", "secp256r1", "secp384r1"]);
        assert_eq!(found["curves"], curves, "{tls}");
        let suites = found["suites"].as_object().unwrap();
        let protocols: Vec<&String> = suites.keys().collect();
        assert_eq!(protocols, ["tls_1_2", "tls_1_3"], "{tls}");
        for suite in suites["tls_1_2"].as_array().unwrap() {
            let name = suite.as_str().unwrap();
            let is_modern = name.starts_with("TLS_ECDHE_ECDSA_")
                && (name.contains("_GCM_") || name.contains("_CHACHA20_POLY1305_"));
            assert!(is_modern, "{tls}: {name}");
        }
    }
    gateway.stop().await;
}

async fn extensions_are_those_of_the_encryption(gateway: &Gateway) {
    let mut client = SmtpClient::connect(gateway.starttls_address()).await;
    let greeting = client.reply().await;
    assert!(greeting.starts_with("220 localhost ESMTP"), "{greeting}");
    let mut clear = BTreeSet::from([
        "PIPELINING",
        "8BITMIME",
        "SMTPUTF8",
        "ENHANCEDSTATUSCODES",
        "SIZE 26214400",
        "CHUNKING",
    ]);
    let mut encrypted = clear.clone();
    clear.insert("STARTTLS");
    encrypted.insert("AUTH LOGIN PLAIN");
    let reply = client.command("EHLO client.example").await;
    assert_eq!(extensions(&reply), clear, "{reply}");
    let reply = client.command("STARTTLS").await;
    assert!(reply.starts_with("220 2.0.0"), "{reply}");
    let mut client = client.encrypt(&gateway.ca_file).await;
    let reply = client.command("EHLO client.example").await;
    assert_eq!(extensions(&reply), encrypted, "{reply}");

    let client = SmtpClient::connect(gateway.tls_address()).await;
    let mut client = client.encrypt(&gateway.ca_file).await;
    assert_eq!(client.reply().await, greeting);
    let reply = client.command("EHLO client.example").await;
    assert_eq!(extensions(&reply), encrypted, "{reply}");
    let reply = client.command("STARTTLS").await;
    assert!(reply.starts_with("503 5.5.1"), "{reply}");
}

async fn nothing_is_done_in_clear(gateway: &Gateway) {
    let app = &gateway.app;
    let mut client = SmtpClient::connect(gateway.starttls_address()).await;
    client.reply().await;
    client.command("EHLO client.example").await;
    for command in [
        format!("MAIL FROM:<{MAILBOX}>"),
        "AUTH PLAIN".to_owned(),
        "AUTH LOGIN".to_owned(),
        format!("AUTH PLAIN {}", plain(&app.slug, app.send_key.expose())),
        format!("RCPT TO:<{RECIPIENT}>"),
        "DATA".to_owned(),
    ] {
        assert_eq!(client.command(&command).await, "530 5.7.0 TLS required");
    }
    assert!(client.command("NOOP").await.starts_with("250 "));
}

async fn a_message_goes_by_implicit_tls(gateway: &Gateway) {
    let client = SmtpClient::connect(gateway.tls_address()).await;
    let mut client = client.encrypt(&gateway.ca_file).await;
    client.reply().await;
    client.command("EHLO client.example").await;
    let response = plain(&gateway.app.slug, gateway.app.send_key.expose());
    let reply = client.command(&format!("AUTH PLAIN {response}")).await;
    assert!(reply.starts_with("235 2.7.0"), "{reply}");
    let reply = client.submit(RECIPIENT, &message("implicit")).await;
    assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
    assert_eq!(subjects(gateway), ["implicit"]);
    assert!(client.command("QUIT").await.starts_with("221 2.0.0"));
    assert_eq!(client.next_reply().await, None);
}

/// RFC 3207 §4.2: what came in clear behind STARTTLS must not be read as if it had come under TLS.
async fn what_is_injected_behind_starttls_has_no_effect(gateway: &Gateway) {
    for injected in [
        "EHLO injected.example\r\n",
        "EHLO injected.example\r\nMAIL FROM:<eve@example.com>\r\nRCPT TO:<eve@example.com>\r\n",
        "NOOP\r\n",
        "MAIL FROM:<eve@exam",
    ] {
        let mut client = SmtpClient::connect(gateway.starttls_address()).await;
        client.reply().await;
        client.command("EHLO client.example").await;
        client
            .write(format!("STARTTLS\r\n{injected}").as_bytes())
            .await;
        let reply = client.reply().await;
        assert!(reply.starts_with("220 2.0.0"), "{reply}");
        let mut client = client.encrypt(&gateway.ca_file).await;
        // Neither the client's EHLO in clear nor the injected one counts.
        let reply = client.command("AUTH PLAIN").await;
        assert_eq!(reply, "503 5.5.1 Send EHLO first", "{injected:?}");
        let reply = client.command("EHLO client.example").await;
        assert!(
            reply.starts_with("250-localhost\n"),
            "{injected:?}: {reply}"
        );
        let response = plain(&gateway.app.slug, gateway.app.send_key.expose());
        let reply = client.command(&format!("AUTH PLAIN {response}")).await;
        assert!(reply.starts_with("235 "), "{injected:?}: {reply}");
        let reply = client.command(&format!("RCPT TO:<{RECIPIENT}>")).await;
        assert_eq!(reply, "503 5.5.1 Send MAIL first", "{injected:?}");
        let reply = client.submit(RECIPIENT, &message("own")).await;
        assert!(reply.starts_with("250 2.0.0 log_"), "{injected:?}: {reply}");
    }
    for arrived in gateway.sandbox.inbox.list(usize::MAX) {
        assert_eq!(arrived.envelope_to, [RECIPIENT]);
    }
    assert_eq!(gateway.sandbox.inbox.count(), 4);
}
