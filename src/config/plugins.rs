//! The settings of one mail provider, and the defaults of the kinds.

use std::path::PathBuf;

use secrecy::SecretString;

use super::reader::Reader;
use crate::types::plugin::Plugin;

/// How the OAuth client shows its secret to the token endpoint (RFC 6749 §2.3.1).
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
}

/// One mail provider, complete.
#[derive(Debug, Clone)]
pub struct PluginSettings {
    /// Which of the two it is.
    pub plugin: Plugin,
    /// The OAuth client.
    pub client_id: String,
    /// The OAuth client's secret; empty for a public client.
    pub client_secret: SecretString,
    /// How the secret is shown.
    pub client_authentication: ClientAuthentication,
    /// RFC 6749 §3.1.
    pub authorize_url: String,
    /// RFC 6749 §3.2.
    pub token_url: String,
    /// RFC 7009; empty where the provider has none.
    pub revoke_url: String,
    /// Answers the account's address as JSON.
    pub userinfo_url: String,
    /// Scopes asked for, all of them needed.
    pub scopes: Vec<String>,
    /// The submission server's name, which its certificate must carry.
    pub smtp_host: String,
    /// Its port.
    pub smtp_port: u16,
    /// How the connection is encrypted.
    pub smtp_tls: SubmissionTls,
    /// Further root certificates for this provider (PEM).
    pub ca_file: Option<PathBuf>,
    /// Submissions at once for one mailbox.
    pub concurrency: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Google,
    Microsoft,
    Generic,
}

struct Defaults {
    authorize_url: &'static str,
    token_url: &'static str,
    revoke_url: &'static str,
    userinfo_url: &'static str,
    scopes: &'static [&'static str],
    smtp_host: &'static str,
}

const GOOGLE: Defaults = Defaults {
    authorize_url: "https://accounts.google.com/o/oauth2/v2/auth",
    token_url: "https://oauth2.googleapis.com/token",
    revoke_url: "https://oauth2.googleapis.com/revoke",
    userinfo_url: "https://openidconnect.googleapis.com/v1/userinfo",
    scopes: &["openid", "email", "https://mail.google.com/"],
    smtp_host: "smtp.gmail.com",
};

const MICROSOFT: Defaults = Defaults {
    authorize_url: "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
    token_url: "https://login.microsoftonline.com/common/oauth2/v2.0/token",
    revoke_url: "",
    userinfo_url: "https://graph.microsoft.com/oidc/userinfo",
    scopes: &[
        "openid",
        "email",
        "offline_access",
        "https://outlook.office.com/SMTP.Send",
    ],
    smtp_host: "smtp.office365.com",
};

const GENERIC: Defaults = Defaults {
    authorize_url: "",
    token_url: "",
    revoke_url: "",
    userinfo_url: "",
    scopes: &["openid", "email", "offline_access"],
    smtp_host: "",
};

/// Submission with STARTTLS (RFC 6409 §3.1), and with implicit TLS (RFC 8314 §7.3).
const STARTTLS_PORT: u16 = 587;
const IMPLICIT_TLS_PORT: u16 = 465;

/// Reads one plugin's section; `None` where it is off.
pub(super) fn read(reader: &mut Reader<'_>, plugin: Plugin) -> Option<PluginSettings> {
    let name = |key: &str| format!("plugins.{plugin}.{key}");
    let client_id = reader.text(&name("client_id"));
    let kind = reader.choice(
        &name("kind"),
        &[
            ("google", Kind::Google),
            ("microsoft", Kind::Microsoft),
            ("generic", Kind::Generic),
        ],
    )?;
    let defaults = match kind {
        Kind::Google => GOOGLE,
        Kind::Microsoft => MICROSOFT,
        Kind::Generic => GENERIC,
    };
    let client_authentication = reader.choice(
        &name("client_auth"),
        &[
            ("post", ClientAuthentication::Post),
            ("basic", ClientAuthentication::Basic),
        ],
    );
    reader.choice(&name("transport"), &[("smtp", ())]);
    let smtp_tls = if reader.text(&name("smtp_tls")).is_empty() {
        Some(SubmissionTls::StartTls)
    } else {
        reader.choice(
            &name("smtp_tls"),
            &[
                ("starttls", SubmissionTls::StartTls),
                ("implicit", SubmissionTls::Implicit),
            ],
        )
    };
    let (client_authentication, smtp_tls) = (client_authentication?, smtp_tls?);
    let is_on = !client_id.is_empty();
    let mut url = |key: &str, default: &str, required: bool| {
        let given = reader.url(&name(key));
        if given.is_empty() && default.is_empty() && required && is_on {
            reader.problem(&name(key), "is required for a plugin of kind generic");
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
    let userinfo_url = url("userinfo_url", defaults.userinfo_url, true);
    let mut scopes = reader.texts(&name("scopes"));
    if scopes.is_empty() {
        scopes = defaults
            .scopes
            .iter()
            .map(|&scope| scope.to_owned())
            .collect();
    }
    let mut smtp_host = reader.text(&name("smtp_host"));
    if smtp_host.is_empty() {
        defaults.smtp_host.clone_into(&mut smtp_host);
        if smtp_host.is_empty() && is_on {
            reader.problem(
                &name("smtp_host"),
                "is required for a plugin of kind generic",
            );
        }
    }
    let smtp_port = match (reader.number(&name("smtp_port"), 0, u16::MAX), smtp_tls) {
        (0, SubmissionTls::StartTls) => STARTTLS_PORT,
        (0, SubmissionTls::Implicit) => IMPLICIT_TLS_PORT,
        (port, _) => port,
    };
    let settings = PluginSettings {
        plugin,
        client_id,
        client_secret: SecretString::from(reader.text(&name("client_secret"))),
        client_authentication,
        authorize_url,
        token_url,
        revoke_url,
        userinfo_url,
        scopes,
        smtp_host,
        smtp_port,
        smtp_tls,
        ca_file: reader.path(&name("ca_file")),
        concurrency: reader.number(&name("limits.concurrency"), 1, 1_000),
    };
    is_on.then_some(settings)
}
