//! A mailbox provider made of software that nobody here wrote: npm `oidc-provider` gives and checks
//! the tokens, Postfix takes mail by SMTP with XOAUTH2, Dovecot keeps it and shows it by IMAP.
//! Beside it the APIs of Google and Microsoft ([`emulate`]), and a browser ([`browser`]).
//!
//! `tests/peers/install` installs all of it; nothing here is skipped when something is missing.
//! Everything runs on loopback, from one temporary folder, and ends with the [`Provider`] or with
//! the test process, however that ends.

pub mod browser;
mod certificate;
pub mod clients;
mod dovecot;
pub mod emulate;
mod inbox;
mod long_tokens;
mod mail_servers;
pub mod nginx;
mod oidc_provider;
pub mod pebble;
mod postfix;
pub mod process;
mod tests;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::support::patience::PATIENCE;
pub use dovecot::APP_PASSWORD;
use mail_servers::{MailServers, Terms};
use oidc_provider::OidcProvider;
use process::Household;

/// Lifetime of an access token unless the test says otherwise.
const ACCESS_TOKEN_LIFETIME: Duration = Duration::from_hours(1);

/// Longest that delivered mail may take to show up in the inbox.
const DELIVERY_TIME: Duration = PATIENCE;

/// The scopes of [`Provider::grant`], and all that the provider knows.
pub const SCOPES: &str = "openid email offline_access mail.send";

/// A running mailbox provider. Accounts need no setting up: every address is a mailbox, and the
/// `login_hint` of an authorization request logs its owner in (`deny…` refuses instead).
///
/// As recipients, `tempfail@…` is answered 451, `quota@…` 452, `permfail@…` 550, `limit@…` 554. `bounced@…` is accepted
/// and bounces, `delayed@…` is accepted and waits, of which the sender is told.
/// A sender other than the mailbox's own address is answered 553. Beside XOAUTH2 the servers take
/// [`APP_PASSWORD`] by PLAIN and LOGIN.
pub struct Provider {
    /// PEM file with the authority that signed the SMTP and IMAP certificates.
    pub ca_file: PathBuf,
    /// Name that the certificates are for.
    pub smtp_host: String,
    /// Submission with STARTTLS (required).
    pub starttls_port: u16,
    /// Submission with implicit TLS.
    pub tls_port: u16,
    /// IMAP with implicit TLS.
    pub imaps_port: u16,
    /// The OAuth issuer, `http://127.0.0.1:PORT`.
    pub issuer: String,
    pub authorize_url: String,
    pub token_url: String,
    pub revoke_url: String,
    pub userinfo_url: String,
    pub client_id: String,
    /// Shown to the token endpoint in the request's body (`client_secret_post`).
    pub client_secret: String,
    pub redirect_uri: String,
    oauth: OidcProvider,
    household: Household,
}

/// An answer of the token endpoint.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct Tokens {
    pub access_token: String,
    pub refresh_token: String,
    /// Lifetime of the access token in seconds.
    pub expires_in: u64,
    /// What was granted, separated by spaces.
    pub scope: String,
}

impl Provider {
    /// Starts all three programs; the OAuth client that they know may be redirected to
    /// `redirect_uri`, on loopback.
    pub async fn start(redirect_uri: &str) -> Self {
        Self::start_with(redirect_uri, ACCESS_TOKEN_LIFETIME).await
    }

    /// As [`Provider::start`], with access tokens that live for `access_token_lifetime`, in whole
    /// seconds.
    pub async fn start_with(redirect_uri: &str, access_token_lifetime: Duration) -> Self {
        // Fails when another test installed it before; either way it is there.
        let _ = rustls::crypto::ring::default_provider().install_default();
        require_installed();
        let household = Household::new();
        let oauth = OidcProvider::start(&household, redirect_uri, access_token_lifetime).await;
        let terms = Terms {
            introspection_url: &oauth.introspection_url(),
            mechanisms: dovecot::MECHANISMS,
            relay_port: None,
        };
        let servers = MailServers::start(&household, terms).await;

        Self {
            ca_file: servers.certificate.authority,
            smtp_host: "localhost".to_owned(),
            starttls_port: servers.starttls_port,
            tls_port: servers.tls_port,
            imaps_port: servers.imaps_port,
            issuer: oauth.issuer.clone(),
            authorize_url: format!("{}/auth", oauth.issuer),
            token_url: oauth.token_url(),
            revoke_url: format!("{}/token/revocation", oauth.issuer),
            userinfo_url: format!("{}/me", oauth.issuer),
            client_id: oidc_provider::CLIENT_ID.to_owned(),
            client_secret: oidc_provider::CLIENT_SECRET.to_owned(),
            redirect_uri: redirect_uri.to_owned(),
            oauth,
            household,
        }
    }

    /// The temporary folder with the configurations and logs of all three programs.
    pub fn folder(&self) -> &Path {
        self.household.folder()
    }

    /// Connects the mailbox `account` as a browser would, and exchanges the code.
    pub async fn grant(&self, account: &str) -> Tokens {
        self.oauth.grant(account, &self.redirect_uri).await
    }

    /// Opens an authorization request in a fresh browser session and follows the redirects within
    /// the provider. Returns the URL that it redirects to at the end, which begins with the
    /// redirect URI; that one isn't opened.
    pub async fn authorize(&self, authorize_url_with_query: &str) -> String {
        self.oauth
            .authorize(authorize_url_with_query, &self.redirect_uri)
            .await
    }

    /// The messages in the inbox of `account`, oldest first, exactly as IMAP gives them.
    pub async fn messages(&self, account: &str) -> Vec<Vec<u8>> {
        inbox::read(self, account, 0, Duration::ZERO).await
    }

    /// As [`Provider::messages`], once there are `count` of them.
    ///
    /// # Panics
    ///
    /// When there are fewer after some minutes; the message shows Postfix's log.
    pub async fn wait_for_messages(&self, account: &str, count: usize) -> Vec<Vec<u8>> {
        let messages = inbox::read(self, account, count, DELIVERY_TIME).await;
        assert!(
            messages.len() >= count,
            "{} of {count} messages in the inbox of {account} after {DELIVERY_TIME:?}\n{}",
            messages.len(),
            self.household.logs(),
        );
        messages
    }

    /// Puts messages into the mailbox `name` of `account` past Postfix, as if they had come at `time`.
    pub fn put(&self, account: &str, name: &str, messages: &[String], time: SystemTime) {
        inbox::put(self, account, name, messages, time);
    }

    /// The messages of a mailbox as its files have them, with CRLF.
    pub fn filed(&self, account: &str, name: &str) -> Vec<String> {
        let folder = dovecot::maildir(&self.household, account, name);
        let folders = ["new", "cur"].map(|part| std::fs::read_dir(folder.join(part)));
        let files = folders.into_iter().flatten().flatten().flatten();
        files
            .filter_map(|file| std::fs::read(file.path()).ok())
            .map(|file| String::from_utf8(file).unwrap())
            .map(|text| text.replace("\r\n", "\n").replace('\n', "\r\n"))
            .collect()
    }

    /// How many messages of a mailbox are marked as read.
    pub async fn seen(&self, account: &str, name: &str) -> usize {
        let arguments = ["search", "-u", account, "mailbox", name, "SEEN"];
        let found = dovecot::doveadm(&self.household, &arguments).await;
        found.lines().count()
    }

    /// Removes all mailboxes of `account`.
    pub fn remove(&self, account: &str) {
        std::fs::remove_dir_all(dovecot::maildir(&self.household, account, "INBOX")).unwrap();
    }

    /// Gives a mailbox another UIDVALIDITY.
    pub async fn number_anew(&self, account: &str, name: &str, uid_validity: u32) {
        let uid_validity = uid_validity.to_string();
        let arguments = [
            "mailbox",
            "update",
            "-u",
            account,
            "--uid-validity",
            &uid_validity,
            name,
        ];
        dovecot::doveadm(&self.household, &arguments).await;
    }

    /// The user takes back what was granted: access and refresh tokens of `account` are void.
    pub async fn withdraw(&self, account: &str) {
        self.oauth.withdraw(account).await;
    }

    /// How many refresh tokens were redeemed so far.
    pub async fn refreshes(&self) -> u64 {
        self.oauth.refreshes().await
    }

    /// Makes all access tokens given so far invalid, as if their time were over.
    pub async fn lapse_access_tokens(&self) {
        self.oauth.lapse_access_tokens().await;
    }
}

/// Where the sources of the peers are.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers")
}

/// The Node that `tests/peers/install` brought, with its packages beside it.
pub fn node() -> PathBuf {
    let link = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/node/node");
    // Node looks for packages from its real place.
    link.canonicalize()
        .unwrap_or_else(|error| panic!("no {} ({error}): run tests/peers/install", link.display()))
}

/// The Python that `tests/peers/install` brought, with its packages.
pub fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/python/bin/python")
}

/// The npm packages that `tests/peers/install` brought.
fn node_packages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/node/node_modules")
}

fn require_installed() {
    node();
    for program in ["dovecot", "postfix", "postconf", "swaks", "curl", "python3"] {
        assert!(
            process::find(program).is_some(),
            "{program} isn't installed: run tests/peers/install as root"
        );
    }
    assert!(
        process::is_root(),
        "Postfix and Dovecot change to their own users, which only root can: \
         run the integration tests as root, for instance in a container"
    );
}
