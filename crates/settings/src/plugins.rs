//! The settings of one mail provider.

mod account;
mod defaults;
mod mailbox_limits;
mod sent_mail;
mod server;

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use secrecy::SecretString;

pub use self::account::{AccountSettings, UserinfoAuthentication};
use self::defaults::Defaults;
pub use self::mailbox_limits::MailboxLimits;
pub(super) use self::server::usual_port;
pub use self::server::{Endpoint, SubmissionTls};
use self::server::{read_imap, read_smtp};
use super::reader::Reader;
use mailgate_types::plugin::{Plugin, TransportKind};

/// How the OAuth client authenticates at the token endpoint (RFC 6749 §2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// In the form.
    Post,
    /// By HTTP Basic.
    Basic,
}

/// The vendor whose conventions a provider follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// Google.
    Google,
    /// Microsoft.
    Microsoft,
    /// Any other OAuth 2 provider.
    Generic,
}

/// One mail provider, complete.
#[derive(Debug, Clone)]
pub struct PluginSettings {
    /// The plugin.
    pub plugin: Plugin,
    /// The kind of provider.
    pub kind: ProviderKind,
    /// The name shown to users.
    pub label: String,
    /// The OAuth client.
    pub client_id: String,
    /// The OAuth client's secret; empty for a public client.
    pub client_secret: SecretString,
    /// When the secret expires, if it does: at the beginning of that day (UTC).
    pub client_secret_expires: Option<DateTime<Utc>>,
    /// How the client authenticates.
    pub client_authentication: ClientAuthentication,
    /// RFC 6749 §3.1.
    pub authorize_url: String,
    /// RFC 6749 §3.2.
    pub token_url: String,
    /// RFC 7009; empty if the provider has none.
    pub revoke_url: String,
    /// Returns the account's address as JSON; empty if the ID token has it.
    pub userinfo_url: String,
    /// How the account's address is found, for the kind generic.
    pub account: AccountSettings,
    /// The requested scopes, all of them required.
    pub scopes: Vec<String>,
    /// How mail is sent.
    pub transport: TransportKind,
    /// The base URL of the provider's REST API, without a trailing slash; empty with SMTP.
    pub api_base_url: String,
    /// The submission server; its host is empty with other transports.
    pub smtp: Endpoint,
    /// How the connection is encrypted.
    pub smtp_tls: SubmissionTls,
    /// The IMAP server for the SMTP transport, with implicit TLS.
    pub imap: Option<Endpoint>,
    /// Whether the provider files messages submitted by SMTP in the mailbox's Sent folder.
    pub keeps_sent_mail: bool,
    /// Whether the gateway files sent messages in the mailbox's Sent folder.
    pub append_sent_mail: bool,
    /// Further root certificates for this provider (PEM).
    pub ca_file: Option<PathBuf>,
    /// The limits of each mailbox.
    pub limits: MailboxLimits,
}

/// The error for a missing setting of the kind generic.
const REQUIRED: &str = "is required for a plugin of kind generic";

/// The error for a transport of another kind.
const FOREIGN: &str =
    "isn't one of the plugin's kind: google has smtp and gmail_api, microsoft has smtp and graph";

/// Reads one plugin's section; `None` if it is off.
pub(super) fn read(reader: &mut Reader<'_>, plugin: Plugin) -> Option<PluginSettings> {
    let name = |key: &str| format!("plugins.{plugin}.{key}");
    let client_id = reader.text(&name("client_id"));
    let is_on = !client_id.is_empty();
    let kind = reader.choice(
        &name("kind"),
        &[
            ("google", ProviderKind::Google),
            ("microsoft", ProviderKind::Microsoft),
            ("generic", ProviderKind::Generic),
        ],
    );
    let transport = reader.choice(
        &name("transport"),
        &[
            ("smtp", TransportKind::Smtp),
            ("gmail_api", TransportKind::GmailApi),
            ("graph", TransportKind::Graph),
        ],
    );
    let client_authentication = reader.choice(
        &name("client_auth"),
        &[
            ("post", ClientAuthentication::Post),
            ("basic", ClientAuthentication::Basic),
        ],
    );
    let defaults = kind
        .zip(transport)
        .map(|(kind, transport)| Defaults::of(kind, transport));
    let sent_mail = sent_mail::read(reader, &name, defaults);
    let account = account::read(reader, &name, kind);
    // Only now, so that all invalid choices are reported.
    let (kind, transport, defaults) = (kind?, transport?, defaults?);
    let (client_authentication, sent_mail) = (client_authentication?, sent_mail?);
    let account = account?;
    let by_smtp = transport == TransportKind::Smtp;
    let mut url = |key: &str, default: &str, required: bool| {
        let given = reader.url(&name(key));
        if given.is_empty() && default.is_empty() && required && is_on {
            // The known kinds lack an address only for the other kind's transport.
            let (key, text) = match kind {
                ProviderKind::Generic => (key, REQUIRED),
                ProviderKind::Google | ProviderKind::Microsoft => ("transport", FOREIGN),
            };
            reader.problem(&name(key), text);
        }
        if given.is_empty() {
            default.to_owned()
        } else {
            given
        }
    };
    let authorize_url = url("authorize_url", defaults.authorize_url, true);
    let token_url = url("token_url", defaults.token_url, true);
    let revoke_url = url("revoke_url", defaults.revoke_url, false);
    let api_base_url = api_base(
        transport,
        &url("api_base_url", defaults.api_base_url, !by_smtp),
    );
    let own_userinfo = match kind {
        ProviderKind::Microsoft if !by_smtp => format!("{api_base_url}/v1.0/me"),
        _ => defaults.userinfo_url.to_owned(),
    };
    let userinfo_url = url(
        "userinfo_url",
        &own_userinfo,
        kind != ProviderKind::Microsoft && account.jwks_url.is_empty(),
    );
    let scopes = read_scopes(reader, &name, defaults);
    let (smtp, smtp_tls) = read_smtp(reader, &name, defaults, by_smtp && is_on)?;
    let imap = read_imap(reader, &name, defaults, by_smtp);
    sent_mail.check(reader, &name, imap.as_ref());
    let label = read_label(reader, &name, defaults, &authorize_url);
    let settings = PluginSettings {
        plugin,
        kind,
        label,
        client_id,
        client_secret: SecretString::from(reader.text(&name("client_secret"))),
        client_secret_expires: reader.date(&name("client_secret_expires")),
        client_authentication,
        authorize_url,
        token_url,
        revoke_url,
        userinfo_url,
        account,
        scopes,
        transport,
        api_base_url,
        smtp,
        smtp_tls,
        imap,
        keeps_sent_mail: sent_mail.is_kept,
        append_sent_mail: sent_mail.is_appended,
        ca_file: reader.path(&name("ca_file")),
        limits: mailbox_limits::read(reader, &name, defaults),
    };
    is_on.then_some(settings)
}

/// A pasted list may be separated by spaces, as in OAuth (RFC 6749 §3.3).
fn read_scopes(
    reader: &mut Reader<'_>,
    name: &impl Fn(&str) -> String,
    defaults: &Defaults,
) -> Vec<String> {
    let given = reader.texts(&name("scopes"));
    let given = given.iter().flat_map(|scopes| scopes.split_whitespace());
    let given: Vec<String> = given.map(str::to_owned).collect();
    if given.is_empty() {
        defaults.scopes.iter().map(ToString::to_string).collect()
    } else {
        given
    }
}

fn read_label(
    reader: &mut Reader<'_>,
    name: &impl Fn(&str) -> String,
    defaults: &Defaults,
    authorize_url: &str,
) -> String {
    match (reader.text(&name("label")), defaults.label) {
        (given, _) if !given.is_empty() => given,
        (_, "") => host(authorize_url),
        (_, label) => label.to_owned(),
    }
}

/// The URL without a trailing slash, and without a version after the host.
fn api_base(transport: TransportKind, url: &str) -> String {
    let base = url.trim_end_matches('/');
    let version = match transport {
        // Google's API, also if mail is sent by SMTP.
        TransportKind::Smtp | TransportKind::GmailApi => "/gmail/v1",
        TransportKind::Graph => "/v1.0",
    };
    base.strip_suffix(version).unwrap_or(base).to_owned()
}

fn host(url: &str) -> String {
    url::Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_default()
}
