//! That the peers themselves behave as the other tests take for granted.

mod browser;
mod emulate;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::clients::{self, Client, Door, Mechanism, Submission};
use super::{APP_PASSWORD, Provider, Tokens, process};
use crate::support::patience::PATIENCE;

const REDIRECT_URI: &str = "http://127.0.0.1:9/oauth/callback";

#[tokio::test]
async fn mail_goes_from_one_mailbox_to_another_on_both_ports() {
    let provider = Provider::start(REDIRECT_URI).await;
    let tokens = provider.grant("ada@provider.test").await;
    assert_eq!(tokens.expires_in, 3600);
    assert_eq!(tokens.scope, super::SCOPES);

    for scheme in ["smtp", "smtps"] {
        let message = format!("Subject: {scheme}\r\n\r\n.dots\r\ncaf\u{e9}  \r\n");
        let recipient = format!("{scheme}@provider.test");
        let outcome = submit(
            &provider,
            scheme,
            &tokens,
            "ada@provider.test",
            &recipient,
            &message,
        );
        let (accepted, transcript) = outcome.await;
        assert!(accepted, "{transcript}");
        let delivered = provider.wait_for_messages(&recipient, 1).await;
        let delivered = String::from_utf8(delivered[0].clone()).unwrap();
        assert!(delivered.ends_with(&message), "{delivered:?}");
    }
    assert!(provider.messages("nobody@provider.test").await.is_empty());
}

#[tokio::test]
async fn refusals_are_answered_as_documented() {
    let provider = Provider::start(REDIRECT_URI).await;
    let tokens = provider.grant("ada@provider.test").await;
    let cases = [
        ("ada@provider.test", "tempfail@provider.test", "451 4.3.0"),
        ("ada@provider.test", "quota@provider.test", "452 4.2.2"),
        ("ada@provider.test", "permfail@provider.test", "550 5.1.1"),
        ("ada@provider.test", "limit@provider.test", "554 5.2.0"),
        ("eve@provider.test", "bob@provider.test", "553 5.7.1"),
    ];
    for (from, to, code) in cases {
        let (accepted, transcript) =
            submit(&provider, "smtp", &tokens, from, to, "Subject: x\r\n\r\n").await;
        assert!(!accepted && transcript.contains(code), "{transcript}");
    }
}

#[tokio::test]
async fn a_bad_token_is_a_challenge_before_it_is_refused() {
    let provider = Provider::start(REDIRECT_URI).await;
    let good = provider.grant("ada@provider.test").await.access_token;
    let (mut stream, capabilities) = connect(&provider).await;
    for capability in ["XOAUTH2", "SIZE 62914560", "8BITMIME"] {
        assert!(capabilities.contains(capability), "{capabilities}");
    }
    for (user, token) in [
        ("ada", "no-such-token"),
        ("eve@provider.test", good.as_str()),
    ] {
        let challenge = exchange(&mut stream, &xoauth2(user, token)).await;
        let json = challenge.strip_prefix("334 ").unwrap().trim_end();
        let json: serde_json::Value =
            serde_json::from_slice(&STANDARD.decode(json).unwrap()).unwrap();
        assert!(json["status"].is_string(), "{json}");
        let answer = exchange(&mut stream, "").await;
        assert!(answer.starts_with("535 5.7.8"), "{answer}");
    }
    let accepted = exchange(&mut stream, &xoauth2("ada@provider.test", &good)).await;
    assert!(accepted.starts_with("235"), "{accepted}");

    provider.lapse_access_tokens().await;
    let (mut stream, _) = connect(&provider).await;
    let challenge = exchange(&mut stream, &xoauth2("ada@provider.test", &good)).await;
    assert!(challenge.starts_with("334 "), "{challenge}");
}

#[tokio::test]
async fn grants_are_refreshed_refused_revoked_and_withdrawn() {
    let provider = Provider::start_with(REDIRECT_URI, Duration::from_mins(2)).await;
    let first = provider.grant("ada@provider.test").await;
    assert_eq!(first.expires_in, 120);
    assert_eq!(
        userinfo(&provider, &first).await["email"],
        "ada@provider.test"
    );

    let second = refresh(&provider, &first.refresh_token).await;
    assert_eq!(provider.refreshes().await, 1);
    assert_ne!(second["refresh_token"], first.refresh_token.as_str());
    provider.withdraw("ada@provider.test").await;
    let refused = refresh(&provider, second["refresh_token"].as_str().unwrap()).await;
    assert_eq!(refused["error"], "invalid_grant");
    assert_eq!(provider.refreshes().await, 1);

    let third = provider.grant("ada@provider.test").await;
    let form = [("token", third.refresh_token.as_str())];
    post(&provider, &provider.revoke_url, &form).await;
    let refused = refresh(&provider, &third.refresh_token).await;
    assert_eq!(refused["error"], "invalid_grant");

    let refused = provider
        .authorize(&format!(
            "{}?response_type=code&client_id={}&redirect_uri={REDIRECT_URI}&scope=openid&state=s\
             &login_hint=deny@provider.test&code_challenge_method=S256\
             &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            provider.authorize_url, provider.client_id
        ))
        .await;
    assert!(refused.starts_with(REDIRECT_URI), "{refused}");
    assert!(refused.contains("error=access_denied"), "{refused}");
    assert!(refused.contains("state=s"), "{refused}");
    assert!(provider.issuer.starts_with("http://127.0.0.1:"));
}

#[tokio::test]
async fn every_client_submits_and_tells_when_it_is_refused() {
    let provider = Provider::start(REDIRECT_URI).await;
    let mut expected = 0;
    for client in Client::ALL {
        for (mechanism, implicit_tls) in [(Mechanism::Login, true), (Mechanism::Plain, false)] {
            let door = Door {
                host: &provider.smtp_host,
                port: if implicit_tls {
                    provider.tls_port
                } else {
                    provider.starttls_port
                },
                implicit_tls,
                ca_file: &provider.ca_file,
            };
            let submission = Submission {
                mechanism,
                username: "ada@provider.test",
                password: APP_PASSWORD,
                from: "ada@provider.test",
                to: &["bob@provider.test", "eve@provider.test"],
                message: "Subject: by hand\n\n.dots\nlast line\n",
            };
            let outcome = clients::send(client, door, submission).await;
            assert!(outcome.accepted, "{client:?}: {}", outcome.transcript);
            expected += 1;

            let wrong = Submission {
                password: "wrong",
                ..submission
            };
            let outcome = clients::send(client, door, wrong).await;
            assert!(!outcome.accepted, "{client:?}: {}", outcome.transcript);
            assert!(outcome.transcript.contains("535"), "{}", outcome.transcript);

            let untrusted = Door {
                ca_file: "/etc/ssl/certs/ca-certificates.crt".as_ref(),
                ..door
            };
            let outcome = clients::send(client, untrusted, submission).await;
            assert!(!outcome.accepted, "{client:?}: {}", outcome.transcript);
        }
    }
    for account in ["bob@provider.test", "eve@provider.test"] {
        let messages = provider.wait_for_messages(account, expected).await;
        assert_eq!(messages.len(), expected);
        for message in messages {
            let message = String::from_utf8(message).unwrap();
            assert!(
                message.contains("\r\n\r\n.dots\r\nlast line\r\n"),
                "{message}"
            );
        }
    }
}

#[tokio::test]
async fn addresses_and_headers_may_be_utf8() {
    let provider = Provider::start(REDIRECT_URI).await;
    let door = Door {
        host: &provider.smtp_host,
        port: provider.starttls_port,
        implicit_tls: false,
        ca_file: &provider.ca_file,
    };
    let message = "Subject: Gr\u{fc}\u{df}e\r\n\r\nna\u{ef}ve\r\n";
    for to in ["bob@provider.test", "zo\u{eb}@provider.test"] {
        let submission = Submission {
            mechanism: Mechanism::Plain,
            username: "ada@provider.test",
            password: APP_PASSWORD,
            from: "ada@provider.test",
            to: &[to],
            message,
        };
        let outcome = clients::send(Client::Smtplib, door, submission).await;
        assert!(outcome.accepted, "{}", outcome.transcript);
        let delivered = provider.wait_for_messages(to, 1).await;
        let delivered = String::from_utf8(delivered[0].clone()).unwrap();
        assert!(delivered.ends_with(message), "{delivered}");
    }
}

#[tokio::test]
async fn nothing_is_left_when_the_provider_ends() {
    let provider = Provider::start(REDIRECT_URI).await;
    let folder = provider.folder().to_owned();
    let ports = [
        provider.starttls_port,
        provider.tls_port,
        provider.imaps_port,
    ];
    drop(provider);
    assert!(!folder.exists());
    for port in ports {
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    }
}

/// Submits with curl and XOAUTH2: whether it was accepted, and the dialogue.
async fn submit(
    provider: &Provider,
    scheme: &str,
    tokens: &Tokens,
    from: &str,
    to: &str,
    message: &str,
) -> (bool, String) {
    let port = match scheme {
        "smtps" => provider.tls_port,
        _ => provider.starttls_port,
    };
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--show-error", "--verbose", "--ssl-reqd"])
        .args(["--noproxy", "*"])
        .arg("--cacert")
        .arg(&provider.ca_file)
        .args([
            "--url",
            &format!("{scheme}://{}:{port}", provider.smtp_host),
        ])
        .args(["--user", "ada@provider.test:"])
        .args(["--oauth2-bearer", &tokens.access_token])
        .args(["--login-options", "AUTH=XOAUTH2"])
        .args(["--mail-from", from, "--mail-rcpt", to])
        .args(["--upload-file", "-"]);
    let output = process::run(command, message.as_bytes(), PATIENCE).await;
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// An SMTP session over implicit TLS, and what the server says it can.
async fn connect(provider: &Provider) -> (BufStream<TlsStream<TcpStream>>, String) {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(&provider.ca_file).unwrap())
        .unwrap();
    let settings = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(provider.smtp_host.clone()).unwrap();
    let stream = TcpStream::connect(("127.0.0.1", provider.tls_port)).await;
    let stream = TlsConnector::from(Arc::new(settings))
        .connect(name, stream.unwrap())
        .await
        .unwrap();
    let mut stream = BufStream::new(stream);
    let mut greeting = String::new();
    stream.read_line(&mut greeting).await.unwrap();
    assert!(greeting.starts_with("220 "), "{greeting}");
    let capabilities = exchange(&mut stream, "EHLO client.test").await;
    (stream, capabilities)
}

/// Sends a line and reads the whole reply to it.
async fn exchange(stream: &mut BufStream<TlsStream<TcpStream>>, line: &str) -> String {
    stream.write_all(line.as_bytes()).await.unwrap();
    stream.write_all(b"\r\n").await.unwrap();
    stream.flush().await.unwrap();
    let mut reply = String::new();
    loop {
        let start = reply.len();
        let reading = stream.read_line(&mut reply);
        let read = tokio::time::timeout(PATIENCE, reading).await;
        assert_ne!(read.unwrap().unwrap(), 0, "closed after {reply:?}");
        if reply.as_bytes().get(start + 3) != Some(&b'-') {
            return reply;
        }
    }
}

fn xoauth2(user: &str, token: &str) -> String {
    let initial = format!("user={user}\u{1}auth=Bearer {token}\u{1}\u{1}");
    format!("AUTH XOAUTH2 {}", STANDARD.encode(initial))
}

async fn refresh(provider: &Provider, refresh_token: &str) -> serde_json::Value {
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh_token),
    ];
    let body = post(provider, &provider.token_url, &form).await;
    serde_json::from_str(&body).unwrap()
}

async fn post(provider: &Provider, url: &str, form: &[(&str, &str)]) -> String {
    let mut form = form.to_vec();
    form.push(("client_id", &provider.client_id));
    form.push(("client_secret", &provider.client_secret));
    let request = reqwest::Client::new().post(url).form(&form);
    request.send().await.unwrap().text().await.unwrap()
}

async fn userinfo(provider: &Provider, tokens: &Tokens) -> serde_json::Value {
    let request = reqwest::Client::new()
        .get(&provider.userinfo_url)
        .bearer_auth(&tokens.access_token);
    let response = request.send().await.unwrap();
    response.error_for_status().unwrap().json().await.unwrap()
}
