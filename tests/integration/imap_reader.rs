//! Reading mailboxes by IMAP: Dovecot's, and what a scripted server does to its readers.

mod dovecot;
mod filed;
mod interrupted;
mod refused;
pub mod scripted;

use std::path::Path;
use std::sync::Arc;

use chrono::Utc;
use mailgate_providers::mail::MailProviders;
use mailgate_providers::mail::reader::{MailReader, ReadError};
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_types::clock::{MovedClock, SharedClock};
use mailgate_types::ids::CredentialId;
use mailgate_types::plugin::Plugin;
use secrecy::SecretString;

use crate::support::gateway::SEAL_KEY;

/// The mailbox that is read.
pub const ADA: &str = "ada@provider.test";

/// The reader of a provider whose IMAP server is at `localhost:port`; each stage may take `seconds`.
fn reader(
    port: u16,
    ca_file: &Path,
    seconds: u32,
    further: &[(&str, &str)],
) -> Arc<dyn MailReader> {
    let providers = providers(port, ca_file, seconds, further);
    let provider = providers.get(Plugin::B).unwrap();
    Arc::clone(provider.reader.as_ref().unwrap())
}

/// As [`reader`], with all else that the provider is for.
pub fn providers(
    port: u16,
    ca_file: &Path,
    seconds: u32,
    further: &[(&str, &str)],
) -> MailProviders {
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut environment = vec![
        (
            "DATABASE__URL",
            "postgres://nobody@localhost/none".to_owned(),
        ),
        ("SEAL__KEYS", SEAL_KEY.to_owned()),
        ("SENDING__CONNECT_SECONDS", seconds.to_string()),
        ("SENDING__COMMAND_SECONDS", seconds.to_string()),
        ("PLUGINS__PLUGIN_B__KIND", "generic".to_owned()),
        ("PLUGINS__PLUGIN_B__CLIENT_ID", "tests".to_owned()),
        (
            "PLUGINS__PLUGIN_B__AUTHORIZE_URL",
            "http://localhost:9/auth".to_owned(),
        ),
        (
            "PLUGINS__PLUGIN_B__TOKEN_URL",
            "http://localhost:9/token".to_owned(),
        ),
        (
            "PLUGINS__PLUGIN_B__USERINFO_URL",
            "http://localhost:9/me".to_owned(),
        ),
        ("PLUGINS__PLUGIN_B__SMTP_HOST", "localhost".to_owned()),
        ("PLUGINS__PLUGIN_B__IMAP_HOST", "localhost".to_owned()),
        ("PLUGINS__PLUGIN_B__IMAP_PORT", port.to_string()),
        ("PLUGINS__PLUGIN_B__CA_FILE", ca_file.display().to_string()),
    ];
    environment.extend(
        further
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned())),
    );
    let environment = environment
        .into_iter()
        .map(|(name, value)| (format!("MAILGATE__{name}"), value));
    let settings = mailgate_settings::load_operator(None, environment)
        .unwrap_or_else(|error| panic!("{error}"));
    let clock: SharedClock = Arc::new(MovedClock::default());
    MailProviders::new(&settings.plugins, &settings.sending, "localhost", &clock).unwrap()
}

pub fn account(access_token: &str) -> MailboxAccess {
    MailboxAccess {
        credential: CredentialId::at(Utc::now()),
        address: ADA.to_owned(),
        generation: 1,
        access_token: SecretString::from(access_token),
        scopes: Arc::from([]),
    }
}

/// What kind of error it is, and its words.
fn failure<T>(result: Result<T, ReadError>) -> (&'static str, String) {
    let error = result.err().expect("it fails");
    let kind = match &error {
        ReadError::TokenRefused(_) => "token refused",
        ReadError::Forbidden(_) => "forbidden",
        ReadError::Unexplained(_) => "unexplained",
        ReadError::Unavailable { .. } => "unavailable",
    };
    (kind, error.to_string())
}

#[test]
fn who_may_read() {
    let kinds = [
        ("generic", "openid", true),
        ("google", "https://mail.google.com/", true),
        (
            "google",
            "https://www.googleapis.com/auth/gmail.send",
            false,
        ),
        (
            "microsoft",
            "https://outlook.office.com/IMAP.AccessAsUser.All",
            true,
        ),
        ("microsoft", "IMAP.AccessAsUser.All", true),
        ("microsoft", "https://outlook.office.com/SMTP.Send", false),
    ];
    let folder = tempfile::tempdir().unwrap();
    let files = mailgate_sandbox::certificates::ensure(folder.path(), &[], Utc::now()).unwrap();
    for (kind, scope, expected) in kinds {
        let reader = reader(1, &files.ca, 1, &[("PLUGINS__PLUGIN_B__KIND", kind)]);
        let scopes = ["openid".to_owned(), scope.to_owned()];
        assert_eq!(reader.may_read(&scopes), expected, "{kind} {scope}");
        // Exchange may give a message another Message-ID; a generic provider says so itself.
        assert_eq!(reader.keeps_sent_mail(), kind == "google");
    }
    assert!(
        reader(
            1,
            &files.ca,
            1,
            &[("PLUGINS__PLUGIN_B__KEEPS_SENT_MAIL", "yes")]
        )
        .keeps_sent_mail()
    );
}
