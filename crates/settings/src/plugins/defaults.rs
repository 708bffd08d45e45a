//! The defaults of the known providers.

use super::ProviderKind;
use mailgate_types::plugin::TransportKind;

pub(super) struct Defaults {
    pub(super) label: &'static str,
    pub(super) authorize_url: &'static str,
    pub(super) token_url: &'static str,
    pub(super) revoke_url: &'static str,
    pub(super) userinfo_url: &'static str,
    pub(super) scopes: &'static [&'static str],
    pub(super) api_base_url: &'static str,
    pub(super) smtp_host: &'static str,
    pub(super) imap_host: &'static str,
    pub(super) keeps_sent_mail: bool,
    pub(super) concurrency: u32,
    pub(super) per_minute: u32,
    pub(super) per_day: u32,
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
    pub(super) const fn of(kind: ProviderKind, transport: TransportKind) -> &'static Self {
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
