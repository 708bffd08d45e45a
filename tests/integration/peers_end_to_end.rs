//! The gateway between programs that nobody here wrote: common mail clients submit to it, and it
//! sends on through oidc-provider's tokens and Postfix into Dovecot's mailboxes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use mail_parser::MessageParser;
use mailgate_domain::mailboxes::{Connected, NewConnection};
use mailgate_types::plugin::Plugin;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use toml::{Table, Value};
use url::Url;

use crate::peers::clients::{self, Client, Door, Mechanism, Submission};
use crate::peers::{Provider, SCOPES};
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;

pub const REDIRECT_URI: &str = "http://127.0.0.1:9/oauth/callback";
const CODE_VERIFIER: &str = "one-code-verifier-for-every-connection-of-these-tests";

/// The mailbox that sends.
pub const ADA: &str = "ada@provider.test";

/// The gateway's own headers end before these: the peers write them when they take a message.
const TRACE_HEADERS: [&str; 3] = ["Return-Path:", "Delivered-To:", "Received:"];

#[derive(Clone, Copy)]
pub enum Encryption {
    StartTls,
    Implicit,
}

/// The peers, and a gateway that has them at `plugin_b` with [`ADA`] connected.
async fn start(encryption: Encryption) -> (Provider, Gateway) {
    let provider = Provider::start(REDIRECT_URI).await;
    let builder = Gateway::builder().plugins(plugins(&provider, encryption));
    let gateway = builder.start().await;
    let connected = connect(&provider, &gateway, ADA).await;
    assert_eq!(connected.email, ADA);
    (provider, gateway)
}

pub fn plugins(provider: &Provider, encryption: Encryption) -> Table {
    let text = |name: &str, value: &str| (name.to_owned(), Value::String(value.to_owned()));
    let (smtp_tls, port) = match encryption {
        Encryption::StartTls => ("starttls", provider.starttls_port),
        Encryption::Implicit => ("implicit", provider.tls_port),
    };
    let scopes = SCOPES
        .split(' ')
        .map(|scope| Value::String(scope.to_owned()));
    let plugin = Table::from_iter([
        text("kind", "generic"),
        text("client_id", &provider.client_id),
        text("client_secret", &provider.client_secret),
        text("client_auth", "post"),
        text("authorize_url", &provider.authorize_url),
        text("token_url", &provider.token_url),
        text("revoke_url", &provider.revoke_url),
        text("userinfo_url", &provider.userinfo_url),
        ("scopes".to_owned(), Value::Array(scopes.collect())),
        text("smtp_host", &provider.smtp_host),
        ("smtp_port".to_owned(), Value::Integer(port.into())),
        text("smtp_tls", smtp_tls),
        text("ca_file", &provider.ca_file.display().to_string()),
    ]);
    Table::from_iter([("plugin_b".to_owned(), Value::Table(plugin))])
}

/// Connects an account's mailbox with the code that its user's browser brings back.
pub async fn connect(provider: &Provider, gateway: &Gateway, account: &str) -> Connected {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(CODE_VERIFIER));
    let question = Url::parse_with_params(
        &provider.authorize_url,
        [
            ("response_type", "code"),
            ("client_id", &provider.client_id),
            ("redirect_uri", REDIRECT_URI),
            ("scope", SCOPES),
            ("prompt", "consent"),
            ("login_hint", account),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("state", "of-this-test"),
        ],
    );
    let callback = provider.authorize(question.unwrap().as_str()).await;
    let callback = Url::parse(&callback).unwrap();
    let code = callback.query_pairs().find(|(name, _)| name == "code");
    gateway
        .daemon
        .mailboxes
        .connect(&NewConnection {
            app: gateway.app.id,
            user_id: None,
            plugin: Plugin::B,
            code: &code.unwrap().1,
            redirect_uri: REDIRECT_URI,
            code_verifier: CODE_VERIFIER,
        })
        .await
        .unwrap()
}

async fn send(gateway: &Gateway, to: &str, subject: &str, bodies: Json) -> (u16, Json) {
    let mut fields = json!({ "to": to, "subject": subject, "plugin": "plugin_b" });
    for (name, value) in bodies.as_object().unwrap() {
        fields[name] = value.clone();
    }
    gateway.send(fields).await
}

async fn send_well(gateway: &Gateway, to: &str) {
    let (status, answer) = send(gateway, to, "Hello", json!({ "body": "It works." })).await;
    assert_eq!(status, 200, "{answer}");
}

/// Submits by SMTP with a sender and parameters of the test's own.
async fn submit(gateway: &Gateway, parameters: &str, to: &str, content: &[u8]) -> String {
    let mut client = SmtpClient::authenticated(gateway).await;
    for (command, code) in [
        (format!("MAIL FROM:<{ADA}>{parameters}"), "250 "),
        (format!("RCPT TO:<{to}>"), "250 "),
        ("DATA".to_owned(), "354 "),
    ] {
        let reply = client.command(&command).await;
        assert!(reply.starts_with(code), "{command}: {reply}");
    }
    let mut stuffed = Vec::with_capacity(content.len() + 1_000);
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    client.write(&stuffed).await;
    client.write(b".\r\n").await;
    client.reply().await
}

/// That `delivered` is `content` with nothing but trace headers in front: the peers' and one of the
/// gateway's.
fn assert_same_below_trace(delivered: &[u8], content: &[u8]) {
    assert!(delivered.ends_with(content), "the content was changed");
    let trace = &delivered[..delivered.len() - content.len()];
    let trace = String::from_utf8(trace.to_vec()).unwrap();
    let mut received = 0;
    for line in trace.lines().filter(|line| !line.starts_with([' ', '\t'])) {
        // The gateway's own, where the client gave none.
        let known = (["Date: ", "Message-ID: <log_", "X-Mailgate-Id: log_"].iter())
            .chain(&TRACE_HEADERS)
            .any(|name| line.starts_with(name));
        assert!(known, "{trace}");
        received += usize::from(line.starts_with("Received:"));
    }
    assert!(received >= 2, "{trace}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_both_doors_arrive_to_the_byte() {
    let (provider, gateway) = start(Encryption::StartTls).await;
    let subject = "Grüße aus Zürich – 你好 🚀";
    let text = "naïve\n.dots\n..\n\nFrom here\nlast";
    let html = "<p>naïve <b>你好</b></p>";
    for (to, bodies) in [
        ("text@provider.test", json!({ "body": text })),
        ("html@provider.test", json!({ "html": html })),
        ("both@provider.test", json!({ "body": text, "html": html })),
        ("zoë@provider.test", json!({ "body": text })),
    ] {
        let (status, answer) = send(&gateway, to, subject, bodies.clone()).await;
        assert_eq!(status, 200, "{to}: {answer}");
        assert_eq!(answer["from"], ADA);
        assert_eq!(answer["plugin"], "plugin_b");
        let delivered = provider.wait_for_messages(to, 1).await;
        let parsed = MessageParser::new().parse(&delivered[0]).unwrap();
        assert_eq!(parsed.subject(), Some(subject));
        let message_id = answer["message_id"].as_str().unwrap();
        assert_eq!(format!("<{}>", parsed.message_id().unwrap()), message_id);
        if bodies["body"].is_string() {
            let shown = parsed.body_text(0).unwrap().replace("\r\n", "\n");
            assert_eq!(shown.trim_end(), text, "{to}");
        }
        if bodies["html"].is_string() {
            assert_eq!(parsed.body_html(0).unwrap().trim_end(), html, "{to}");
        }
    }

    let content = format!(
        "Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\nX-Odd:  two  spaces \r\n\tfolded\r\nFrom: Ada <{ADA}>\r\n\
         To: smtp@provider.test\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: 8bit\r\n\r\n.dot\r\n..\r\nna\u{ef}ve  \r\n\r\nend\r\n"
    );
    let reply = submit(
        &gateway,
        " BODY=8BITMIME",
        "smtp@provider.test",
        content.as_bytes(),
    )
    .await;
    assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
    let delivered = provider.wait_for_messages("smtp@provider.test", 1).await;
    assert_same_below_trace(&delivered[0], content.as_bytes());

    let content =
        format!("From: {ADA}\r\nTo: zoë@provider.test\r\nSubject: Grüße\r\n\r\nnaïve\r\n");
    let reply = submit(
        &gateway,
        " BODY=8BITMIME SMTPUTF8",
        "zoë@provider.test",
        content.as_bytes(),
    )
    .await;
    assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
    let delivered = provider.wait_for_messages("zoë@provider.test", 2).await;
    assert_same_below_trace(&delivered[1], content.as_bytes());
    gateway.stop().await;
}

/// As jstedfast/MailKit#1780 and bitwarden/server#1512 ask for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_smtputf8_gets_domains_in_ascii() {
    let (provider, gateway) = start(Encryption::Implicit).await;
    let ascii = "bob@xn--bcher-kva.example";
    let by_rest = json!({ "body": "Hello", "reply_to": "ada@b\u{fc}cher.example" });
    let (status, answer) = send(&gateway, "bob@b\u{fc}cher.example", "Hello", by_rest).await;
    assert_eq!(
        (status, &answer["status"]),
        (200, &json!("sent")),
        "{answer}"
    );
    assert_eq!(answer["to"], "bob@b\u{fc}cher.example");
    let delivered = provider.wait_for_messages(ascii, 1).await;
    let text = String::from_utf8_lossy(&delivered[0]);
    assert!(text.contains(&format!("\r\nTo: {ascii}\r\n")), "{text}");
    assert!(
        text.contains("\r\nReply-To: ada@xn--bcher-kva.example\r\n"),
        "{text}"
    );

    let content = format!(
        "From: {ADA}\r\nTo: bob@b\u{fc}cher.example\r\nSubject: Gr\u{fc}\u{df}e\r\n\r\nna\u{ef}ve\r\n"
    );
    let parameters = " BODY=8BITMIME SMTPUTF8";
    let reply = submit(
        &gateway,
        parameters,
        "bob@B\u{dc}CHER.example",
        content.as_bytes(),
    )
    .await;
    assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
    let delivered = provider.wait_for_messages(ascii, 2).await;
    assert_same_below_trace(&delivered[1], content.as_bytes());

    // There is no other form of what stands before the @.
    let content = content.replace("bob@", "zo\u{eb}@");
    let to = "zo\u{eb}@provider.test";
    let reply = submit(&gateway, parameters, to, content.as_bytes()).await;
    assert!(reply.starts_with("550 5.6.7 "), "{reply}");
    let (status, answer) = send(&gateway, to, "Hello", json!({ "body": "Hello" })).await;
    assert_eq!(
        (status, &answer["code"]),
        (502, &json!("provider_rejected")),
        "{answer}"
    );
    gateway.stop().await;
}

/// Addresses that Japanese providers gave out before they held to RFC 5321 (jstedfast/MimeKit#728).
#[tokio::test(flavor = "multi_thread")]
async fn dots_that_need_quotes_get_them() {
    let (provider, gateway) = start(Encryption::StartTls).await;
    for (number, local_part) in ["try..this", "xxx.yyy.", ".zzz", "a...b"]
        .into_iter()
        .enumerate()
    {
        let to = format!("{local_part}@provider.test");
        let quoted = format!("\"{local_part}\"@provider.test");
        let (status, answer) = send(&gateway, &to, "Hello", json!({ "body": "Hello" })).await;
        assert_eq!((status, &answer["to"]), (200, &json!(to)), "{answer}");
        let delivered = provider.wait_for_messages(&to, 1).await;
        let text = String::from_utf8_lossy(&delivered[0]);
        assert!(text.contains(&format!("\r\nTo: <{quoted}>\r\n")), "{text}");

        let content = format!("From: {ADA}\r\nTo: {to}\r\nSubject: {number}\r\n\r\nHello\r\n");
        for recipient in [&to, &quoted] {
            let reply = submit(&gateway, "", recipient, content.as_bytes()).await;
            assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
        }
        let delivered = provider.wait_for_messages(&to, 3).await;
        assert_same_below_trace(&delivered[1], content.as_bytes());
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_message_arrives_whole_over_implicit_tls() {
    let (provider, gateway) = start(Encryption::Implicit).await;
    let mut content = format!("From: {ADA}\r\nTo: bob@provider.test\r\n\r\n").into_bytes();
    let mut number = 0;
    while content.len() < 20_000_000 {
        number += 1;
        content.extend_from_slice(format!(".{number} is a line that has a dot\r\n").as_bytes());
    }
    let reply = submit(&gateway, "", "bob@provider.test", &content).await;
    assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
    assert!(!reply.contains("queued"), "{reply}");
    let delivered = provider.wait_for_messages("bob@provider.test", 1).await;
    assert_same_below_trace(&delivered[0], &content);
    send_well(&gateway, "eve@provider.test").await;
    provider.wait_for_messages("eve@provider.test", 1).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_sends_through_both_ports_with_both_mechanisms() {
    let (provider, gateway) = start(Encryption::StartTls).await;
    let mut number = 0;
    for client in Client::ALL {
        for implicit_tls in [false, true] {
            for mechanism in [Mechanism::Login, Mechanism::Plain] {
                number += 1;
                let message = format!(
                    "From: {ADA}\nTo: bob@provider.test\nSubject: by hand {number}\n\n.dots\nend\n"
                );
                let address = if implicit_tls {
                    gateway.tls_address()
                } else {
                    gateway.starttls_address()
                };
                let door = Door {
                    host: "localhost",
                    port: address.port(),
                    implicit_tls,
                    ca_file: &gateway.ca_file,
                };
                let submission = Submission {
                    mechanism,
                    username: &gateway.app.slug,
                    password: gateway.app.send_key.expose(),
                    from: ADA,
                    to: &["bob@provider.test", "unnamed@provider.test"],
                    message: &message,
                };
                let outcome = clients::send(client, door, submission).await;
                assert!(outcome.accepted, "{client:?}: {}", outcome.transcript);
            }
        }
    }
    for account in ["bob@provider.test", "unnamed@provider.test"] {
        let delivered = provider.wait_for_messages(account, number).await;
        assert_eq!(delivered.len(), number);
        let mut texts = delivered
            .iter()
            .map(|message| String::from_utf8_lossy(message));
        assert!(texts.all(|text| text.contains("\r\n\r\n.dots\r\nend\r\n")));
        for number in 1..=number {
            let subject = format!("Subject: by hand {number}\r\n");
            let of_it = delivered
                .iter()
                .filter(|message| String::from_utf8_lossy(message).contains(&subject));
            assert_eq!(of_it.count(), 1, "{subject}");
        }
    }

    // A refusal of the provider's reaches whoever submitted, and nobody gets the message.
    let door = Door {
        host: "localhost",
        port: gateway.starttls_address().port(),
        implicit_tls: false,
        ca_file: &gateway.ca_file,
    };
    let message = format!("From: {ADA}\nSubject: refused\n\nHello\n");
    let submission = Submission {
        mechanism: Mechanism::Plain,
        username: &gateway.app.slug,
        password: gateway.app.send_key.expose(),
        from: ADA,
        to: &["bob@provider.test", "permfail@provider.test"],
        message: &message,
    };
    for client in Client::ALL {
        let outcome = clients::send(client, door, submission).await;
        assert!(!outcome.accepted, "{client:?}: {}", outcome.transcript);
        let told = outcome.transcript.contains("5.1.1");
        assert!(told, "{client:?}: {}", outcome.transcript);
    }
    assert_eq!(provider.messages("bob@provider.test").await.len(), number);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_lapse_rotate_and_are_withdrawn() {
    let (provider, gateway) = start(Encryption::StartTls).await;
    assert_eq!(provider.refreshes().await, 0);
    // The first lapse only the provider's 535 tells of, the others the gateway's clock.
    for round in 1..=3 {
        provider.lapse_access_tokens().await;
        if round > 1 {
            gateway.clock.advance(TimeDelta::hours(2));
        }
        send_well(&gateway, "bob@provider.test").await;
        assert_eq!(provider.refreshes().await, round);
    }
    let delivered = provider.wait_for_messages("bob@provider.test", 3).await;
    assert_eq!(delivered.len(), 3);

    provider.withdraw(ADA).await;
    gateway.clock.advance(TimeDelta::hours(2));
    let (status, answer) = send(&gateway, "bob@provider.test", "x", json!({ "body": "x" })).await;
    assert_eq!(status, 502, "{answer}");
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("connect it again"), "{answer}");
    let (status, reason): (String, String) =
        sqlx::query_as("SELECT status, disconnect_reason FROM mailboxes WHERE plugin = 'plugin_b'")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("disconnected", "invalid_grant")
    );

    connect(&provider, &gateway, ADA).await;
    send_well(&gateway, "bob@provider.test").await;
    let delivered = provider.wait_for_messages("bob@provider.test", 4).await;
    assert_eq!(delivered.len(), 4);

    // What the provider refuses is told in its words; what it refuses for now is kept.
    for (to, expected, words) in [
        ("tempfail@provider.test", 202, "451 4.3.0"),
        ("quota@provider.test", 202, "452 4.2.2"),
        ("permfail@provider.test", 502, "550 5.1.1"),
        ("limit@provider.test", 502, "554 5.2.0"),
    ] {
        let (status, answer) = send(&gateway, to, "x", json!({ "body": "x" })).await;
        assert_eq!(status, expected, "{to}: {answer}");
        let field = if expected == 202 { "error" } else { "detail" };
        assert!(answer[field].as_str().unwrap().contains(words), "{answer}");
    }
    assert_eq!(gateway.spooled().await, 2);
    gateway.stop().await;
}
