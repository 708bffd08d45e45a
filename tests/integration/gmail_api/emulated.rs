//! Against npm `emulate`, which keeps what is sent in Gmail's shapes: connected with a code, sent by
//! both addresses, found again.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mailgate_domain::mailboxes::NewConnection;
use mailgate_types::plugin::Plugin;
use serde_json::json;
use sha2::{Digest, Sha256};
use toml::Table;
use url::Url;

use crate::peers::emulate::{ACCOUNT, Emulate, OAuthClient};
use crate::support::gateway::Gateway;
use crate::support::gmail_stand_in::FULL_SCOPE;
use crate::support::smtp_client::SmtpClient;

const CLIENT: OAuthClient<'static> = OAuthClient {
    id: "mailgate-tests",
    secret: "mailgate-tests-secret",
    redirect_uri: "http://127.0.0.1:9/oauth/callback",
};

const CODE_VERIFIER: &str = "a-code-verifier-that-is-always-the-same-in-these-tests";

/// Settings of `plugin_b`, of Google's kind but at the peer's addresses.
fn plugins(emulate: &Emulate) -> Table {
    let google = &emulate.google;
    let settings = [
        ("kind", "google"),
        ("transport", "gmail_api"),
        ("client_id", CLIENT.id),
        ("client_secret", CLIENT.secret),
        ("authorize_url", &google.authorize_url),
        ("token_url", &google.token_url),
        ("revoke_url", &google.revoke_url),
        ("userinfo_url", &google.userinfo_url),
        ("api_base_url", &google.base_url),
    ];
    let mut plugin: Table = (settings.into_iter())
        .map(|(name, value)| (name.to_owned(), value.to_owned().into()))
        .collect();
    let scopes = ["openid", "email", FULL_SCOPE].map(str::to_owned);
    plugin.insert("scopes".to_owned(), scopes.to_vec().into());
    Table::from_iter([("plugin_b".to_owned(), plugin.into())])
}

/// Has the peer's user grant, and connects the mailbox with the code.
async fn connect(emulate: &Emulate, gateway: &Gateway) {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(CODE_VERIFIER));
    let parameters = [
        ("response_type", "code"),
        ("client_id", CLIENT.id),
        ("redirect_uri", CLIENT.redirect_uri),
        ("scope", &format!("openid email {FULL_SCOPE}")),
        ("state", "any"),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    let url = Url::parse_with_params(&emulate.google.authorize_url, parameters).unwrap();
    let redirect = emulate.authorize(url.as_str(), ACCOUNT).await;
    let redirect = Url::parse(&redirect).unwrap();
    let code = redirect.query_pairs().find(|(name, _)| name == "code");
    let connected = gateway
        .daemon
        .mailboxes
        .connect(&NewConnection {
            app: gateway.app.id,
            user_id: None,
            plugin: Plugin::B,
            code: &code.unwrap().1,
            redirect_uri: CLIENT.redirect_uri,
            code_verifier: CODE_VERIFIER,
        })
        .await
        .unwrap();
    assert_eq!(connected.email, ACCOUNT);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_kept_as_they_were_submitted() {
    let emulate = Emulate::start(CLIENT).await;
    let gateway = Gateway::builder().plugins(plugins(&emulate)).start().await;
    connect(&emulate, &gateway).await;

    let fields = json!({
        "to": "bob@example.com", "subject": "Grüße", "body": "It works.", "plugin": "plugin_b",
    });
    let (status, answer) = gateway.send(fields).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["from"], ACCOUNT);
    let kept = emulate.sent().await;
    assert_eq!(kept.len(), 1);
    let raw = String::from_utf8(emulate.message(&kept[0]).await).unwrap();
    let id = answer["message_id"].as_str().unwrap();
    assert!(raw.contains(&format!("Message-ID: {id}\r\n")), "{raw}");
    assert_eq!(emulate.recipients(&kept[0]).await, ["bob@example.com"]);

    // The second one is too large for JSON, and goes by the upload address.
    let lines = "0123456789 Grüße\r\n";
    for (repeated, subject) in [(10, "small"), (4_000_000 / lines.len(), "large")] {
        let content = format!(
            "From: {ACCOUNT}\r\nTo: Bob <bob@example.com>\r\nCc: carol@example.com\r\n\
             Bcc: client@example.com\r\nSubject: {subject}\r\n\r\n{}",
            lines.repeat(repeated)
        );
        let mut client = SmtpClient::authenticated(&gateway).await;
        client
            .command(&format!("MAIL FROM:<{ACCOUNT}> BODY=8BITMIME"))
            .await;
        for recipient in ["bob", "carol", "dan"] {
            let reply = client
                .command(&format!("RCPT TO:<{recipient}@example.com>"))
                .await;
            assert!(reply.starts_with("250 "), "{reply}");
        }
        client.command("DATA").await;
        client.write(content.as_bytes()).await;
        client.write(b"\r\n.\r\n").await;
        let reply = client.reply().await;
        assert!(reply.starts_with("250 2.0.0"), "{reply}");

        let (newest, raw) = with_subject(&emulate, subject).await;
        assert!(
            raw.starts_with("Bcc: dan@example.com\r\n") && raw.contains("\r\nReceived: by "),
            "{subject}: {}",
            &raw[..raw.len().min(500)]
        );
        assert!(!raw.contains("client@example.com"), "{subject}");
        let own = content.replace("Bcc: client@example.com\r\n", "");
        assert!(raw.ends_with(&format!("{own}\r\n")), "{subject}");
        assert_eq!(
            emulate.recipients(&newest).await,
            [
                "Bob <bob@example.com>",
                "carol@example.com",
                "dan@example.com"
            ]
        );
    }
    assert_eq!(emulate.sent().await.len(), 3);
    gateway.stop().await;
}

/// The sent message of this subject: its id, and its bytes.
async fn with_subject(emulate: &Emulate, subject: &str) -> (String, String) {
    for id in emulate.sent().await {
        let raw = String::from_utf8(emulate.message(&id).await).unwrap();
        if raw.contains(&format!("\r\nSubject: {subject}\r\n")) {
            return (id, raw);
        }
    }
    panic!("nothing was sent about {subject}");
}
