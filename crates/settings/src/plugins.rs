//! The settings of one mail provider, and the defaults of the kinds.

mod account;

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use secrecy::SecretString;

pub use self::account::{AccountSettings, UserinfoAuthentication};
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

/// How the connection to the provider's submission server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionTls {
    /// STARTTLS, required.
    StartTls,
    /// TLS from the first byte.
    Implicit,
    /// None: only for a relay on this machine.
    Clear,
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

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name, which must be in its certificate.
    pub host: String,
    /// Its port.
    pub port: u16,
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

/// The limits of each mailbox of a provider.
#[derive(Debug, Clone, Copy)]
pub struct MailboxLimits {
    /// Concurrent submissions.
    pub concurrency: usize,
    /// Messages per minute; 0: unlimited.
    pub per_minute: u32,
    /// Messages in 24 hours; 0: unlimited.
    pub per_day: u32,
}

struct Defaults {
    label: &'static str,
    authorize_url: &'static str,
    token_url: &'static str,
    revoke_url: &'static str,
    userinfo_url: &'static str,
    scopes: &'static [&'static str],
    api_base_url: &'static str,
    smtp_host: &'static str,
    imap_host: &'static str,
    keeps_sent_mail: bool,
    concurrency: u32,
    per_minute: u32,
    per_day: u32,
}

const GOOGLE: Defaults = Defaults {
    label: "Google",
    authorize_url: "https://accounts.google.com/o/oauth2/v2/auth",
    token_url: "https://oauth2.googleapis.com/token",
    revoke_url: "https://oauth2.googleapis.com/revoke",
    userinfo_url: "https://openidconnect.googleapis.com/v1/userinfo",
    scopes: &["openid", "email", "https://mail.google.com/"],
    api_base_url: "",
    smtp_host: "smtp.gmail.com",
    imap_host: "imap.gmail.com",
    keeps_sent_mail: true,
    concurrency: 4,
    per_minute: 150,
    per_day: 2_000,
};

/// Gmail's REST API needs only the scope for sending, which requires no audit for restricted scopes.
const GOOGLE_API: Defaults = Defaults {
    scopes: &[
        "openid",
        "email",
        "https://www.googleapis.com/auth/gmail.send",
    ],
    ..GOOGLE_SMTP
};

/// The REST API also lists the sender addresses of mailboxes that send by SMTP.
const GOOGLE_SMTP: Defaults = Defaults {
    api_base_url: "https://gmail.googleapis.com",
    ..GOOGLE
};

const MICROSOFT: Defaults = Defaults {
    label: "Microsoft",
    authorize_url: "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
    token_url: "https://login.microsoftonline.com/common/oauth2/v2.0/token",
    revoke_url: "",
    // A token for SMTP works for no other Microsoft service; the ID token names the account.
    userinfo_url: "",
    scopes: &[
        "openid",
        "email",
        "profile",
        "offline_access",
        "https://outlook.office.com/SMTP.Send",
        "https://outlook.office.com/IMAP.AccessAsUser.All",
    ],
    api_base_url: "",
    smtp_host: "smtp.office365.com",
    imap_host: "outlook.office365.com",
    // Exchange may replace a message's Message-ID, so that it can't be found by the original one.
    keeps_sent_mail: false,
    // Exchange allows 3 concurrent SMTP connections per mailbox, Graph 4 concurrent requests.
    concurrency: 3,
    per_minute: 30,
    per_day: 10_000,
};

const MICROSOFT_GRAPH: Defaults = Defaults {
    scopes: &[
        "openid",
        "email",
        "profile",
        "offline_access",
        "https://graph.microsoft.com/User.Read",
        "https://graph.microsoft.com/Mail.Send",
        "https://graph.microsoft.com/Mail.ReadWrite",
    ],
    api_base_url: "https://graph.microsoft.com",
    ..MICROSOFT
};

const GENERIC: Defaults = Defaults {
    label: "",
    authorize_url: "",
    token_url: "",
    revoke_url: "",
    userinfo_url: "",
    scopes: &["openid", "email", "offline_access"],
    api_base_url: "",
    smtp_host: "",
    imap_host: "",
    keeps_sent_mail: false,
    concurrency: 4,
    per_minute: 0,
    per_day: 0,
};

impl Defaults {
    const fn of(kind: ProviderKind, transport: TransportKind) -> &'static Self {
        match (kind, transport) {
            (ProviderKind::Google, TransportKind::GmailApi) => &GOOGLE_API,
            (ProviderKind::Google, TransportKind::Smtp) => &GOOGLE_SMTP,
            (ProviderKind::Google, TransportKind::Graph) => &GOOGLE,
            (ProviderKind::Microsoft, TransportKind::Graph) => &MICROSOFT_GRAPH,
            (ProviderKind::Microsoft, _) => &MICROSOFT,
            (ProviderKind::Generic, _) => &GENERIC,
        }
    }
}

/// Submission with STARTTLS (RFC 6409 §3.1), and with implicit TLS (RFC 8314 §7.3).
const STARTTLS_PORT: u16 = 587;
const IMPLICIT_TLS_PORT: u16 = 465;

/// The port of a local mail server (RFC 5321 §4.5.4.2).
const RELAY_PORT: u16 = 25;

/// IMAP with implicit TLS (RFC 8314 §3.2).
const IMAP_PORT: u16 = 993;

/// The setting for filing copies.
const APPEND_SENT_MAIL: &str = "append_sent_mail";

/// The error for a missing setting of the kind generic.
const REQUIRED: &str = "is required for a plugin of kind generic";

/// The error for a transport of another kind.
const FOREIGN: &str =
    "isn't one of the plugin's kind: google has smtp and gmail_api, microsoft has smtp and graph";

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
    let sent_mail = read_sent_mail(reader, &name, defaults);
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
        limits: read_limits(reader, &name, defaults),
    };
    is_on.then_some(settings)
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

/// How messages get into the Sent folder.
struct SentMail {
    is_kept: bool,
    is_appended: bool,
}

fn read_sent_mail(
    reader: &mut Reader<'_>,
    name: &impl Fn(&str) -> String,
    defaults: Option<&Defaults>,
) -> Option<SentMail> {
    let mut choice = |key: &str, default| {
        let name = name(key);
        if reader.text(&name).is_empty() {
            return default;
        }
        reader.choice(&name, &[("yes", true), ("no", false)])
    };
    let is_kept = choice(
        "keeps_sent_mail",
        defaults.map(|defaults| defaults.keeps_sent_mail),
    );
    let is_appended = choice(APPEND_SENT_MAIL, Some(false));
    Some(SentMail {
        is_kept: is_kept?,
        is_appended: is_appended?,
    })
}

impl SentMail {
    /// A provider that keeps copies must not get a second one, and filing one needs IMAP.
    fn check(
        &self,
        reader: &mut Reader<'_>,
        name: &impl Fn(&str) -> String,
        imap: Option<&Endpoint>,
    ) {
        let name = name(APPEND_SENT_MAIL);
        if self.is_appended && self.is_kept {
            let text = "must be no where keeps_sent_mail is yes: there would be two copies";
            reader.problem(&name, text);
        }
        if self.is_appended && imap.is_none() {
            reader.problem(&name, "needs imap_host, and the transport smtp");
        }
    }
}

fn read_smtp(
    reader: &mut Reader<'_>,
    name: &impl Fn(&str) -> String,
    defaults: &Defaults,
    required: bool,
) -> Option<(Endpoint, SubmissionTls)> {
    let tls = if reader.text(&name("smtp_tls")).is_empty() {
        SubmissionTls::StartTls
    } else {
        reader.choice(
            &name("smtp_tls"),
            &[
                ("starttls", SubmissionTls::StartTls),
                ("implicit", SubmissionTls::Implicit),
            ],
        )?
    };
    let mut host = reader.text(&name("smtp_host"));
    if host.is_empty() {
        defaults.smtp_host.clone_into(&mut host);
        if host.is_empty() && required {
            reader.problem(&name("smtp_host"), REQUIRED);
        }
    }
    let port = match (reader.number(&name("smtp_port"), 0, u16::MAX), tls) {
        (0, tls) => usual_port(tls),
        (port, _) => port,
    };
    Some((Endpoint { host, port }, tls))
}

/// The usual port for submission.
pub(super) const fn usual_port(tls: SubmissionTls) -> u16 {
    match tls {
        SubmissionTls::StartTls => STARTTLS_PORT,
        SubmissionTls::Implicit => IMPLICIT_TLS_PORT,
        SubmissionTls::Clear => RELAY_PORT,
    }
}

fn read_limits(
    reader: &mut Reader<'_>,
    name: &impl Fn(&str) -> String,
    defaults: &Defaults,
) -> MailboxLimits {
    let mut or_default = |key: &str, default| match reader.number(&name(key), 0, u32::MAX) {
        0 => default,
        number => number,
    };
    MailboxLimits {
        per_minute: or_default("limits.per_minute", defaults.per_minute),
        per_day: or_default("limits.per_day", defaults.per_day),
        concurrency: match reader.number(&name("limits.concurrency"), 0, 1_000) {
            0 => defaults.concurrency as usize,
            number => number,
        },
    }
}

fn read_imap(
    reader: &mut Reader<'_>,
    name: &impl Fn(&str) -> String,
    defaults: &Defaults,
    by_smtp: bool,
) -> Option<Endpoint> {
    let mut host = reader.text(&name("imap_host"));
    if host.is_empty() {
        defaults.imap_host.clone_into(&mut host);
    }
    let port = match reader.number(&name("imap_port"), 0, u16::MAX) {
        0 => IMAP_PORT,
        port => port,
    };
    (by_smtp && !host.is_empty()).then_some(Endpoint { host, port })
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
