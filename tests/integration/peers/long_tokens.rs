//! Access tokens of any length, shown to Dovecot (its IMAP and its submission server) and to Postfix.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::routing::post;
use axum::{Form, Json, Router};
use bytes::Bytes;
use mailgate_providers::mail::reader::ReadError;
use mailgate_providers::mail::transport::{AlwaysPermitted, Recipients};
use mailgate_providers::mail::verdict::Verdict;
use mailgate_types::message::Message;
use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::dovecot;
use super::mail_servers::{MailServers, Terms};
use super::process::Household;
use crate::imap_reader::{ADA, account, providers};
use crate::support::sought;
use crate::support::stand_in::StandIn;

/// Lengths of tokens.
const LENGTHS: [usize; 10] = [20, 300, 345, 700, 1_024, 1_500, 2_500, 4_000, 6_000, 8_000];

/// The longest of them that Dovecot's own servers take, of 8,192 octets in base64 (`LOGIN_MAX_AUTH_BUF_SIZE`).
const LONGEST_AT_DOVECOT: usize = 6_000;

/// A token that nobody could cut or change without being found out.
fn token(length: usize) -> String {
    let mut token = String::new();
    while token.len() < length {
        write!(token, "{length}.{}.", token.len()).unwrap();
    }
    token.truncate(length);
    token
}

#[derive(serde::Deserialize)]
struct Introspection {
    token: String,
}

/// RFC 7662: says which tokens are valid, and that they are Ada's.
async fn introspect(
    State(valid): State<Arc<HashSet<String>>>,
    Form(asked): Form<Introspection>,
) -> Json<Value> {
    let is_active = valid.contains(&asked.token);
    Json(json!({ "active": is_active, "sub": ADA }))
}

/// PHPMailer#3169, angus-mail#155 and #201, MailKit#1343.
#[tokio::test]
async fn a_token_of_any_length_is_shown_to_real_servers() {
    show(dovecot::MECHANISMS).await;
}

#[tokio::test]
async fn a_server_without_xoauth2_is_shown_it_by_oauthbearer() {
    show("plain login oauthbearer").await;
}

async fn show(mechanisms: &str) {
    let valid: HashSet<String> = LENGTHS.iter().map(|length| token(*length)).collect();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let introspection_url = format!("http://{}/introspect", listener.local_addr().unwrap());
    let service = Router::new()
        .route("/introspect", post(introspect))
        .with_state(Arc::new(valid));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, service).await.unwrap() });

    let relay = StandIn::start().await;
    let household = Household::new();
    let terms = Terms {
        introspection_url: &introspection_url,
        mechanisms,
        relay_port: Some(relay.submission.port()),
    };
    let servers = MailServers::start(&household, terms).await;

    let recipients = Recipients {
        addresses: vec!["bob@provider.test".to_owned()],
        smtputf8: false,
    };
    let content = format!("From: {ADA}\r\nSubject: x\r\n\r\nHello\r\n");
    let message = Message::from_pieces(vec![Bytes::from(content)]);
    let mut failures = Vec::new();
    for (server, port) in [
        ("Postfix", servers.tls_port),
        ("Dovecot", servers.submission_port),
    ] {
        let port = port.to_string();
        let settings = [
            ("PLUGINS__PLUGIN_B__SMTP_PORT", port.as_str()),
            ("PLUGINS__PLUGIN_B__SMTP_TLS", "implicit"),
        ];
        let providers = providers(
            servers.imaps_port,
            &servers.certificate.authority,
            30,
            &settings,
        );
        let provider = providers.get(Plugin::B).unwrap();
        let reader = provider.reader.as_ref().unwrap();
        for length in LENGTHS {
            // The last character tells whether all of it arrived.
            let (good, mut bad) = (token(length), token(length - 1));
            bad.push('!');
            let sent = (provider.transport)
                .submit(&account(&good), &recipients, &message, &AlwaysPermitted)
                .await;
            let is_dovecot = server == "Dovecot";
            if is_dovecot && length > LONGEST_AT_DOVECOT {
                // The server's own words, rather than silence.
                let words = format!("{sent:?}");
                assert!(
                    words.contains("500") && words.contains("Line too long"),
                    "{words}"
                );
                let found = reader.find_sent(&account(&good), sought("<a@b>")).await;
                assert!(
                    matches!(found, Err(ReadError::Unavailable { .. })),
                    "{found:?}"
                );
                continue;
            }
            if !matches!(sent, Verdict::Sent { .. }) {
                failures.push(format!("{server}, {length}: {sent:?}"));
            }
            let refused = (provider.transport)
                .submit(&account(&bad), &recipients, &message, &AlwaysPermitted)
                .await;
            if !matches!(refused, Verdict::TokenRefused(_)) {
                failures.push(format!("{server}, {length}, wrong: {refused:?}"));
            }
            if is_dovecot {
                let found = reader.find_sent(&account(&good), sought("<a@b>")).await;
                if let Err(error) = found {
                    failures.push(format!("IMAP, {length}: {error}"));
                }
                let refused = reader.find_sent(&account(&bad), sought("<a@b>")).await;
                if !matches!(refused, Err(ReadError::TokenRefused(_))) {
                    failures.push(format!("IMAP, {length}, wrong: {refused:?}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}\n{}", household.logs());
}
