//! Why a mailbox was not connected: a code for the app and a sentence for the user.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::messages::{FailureMessages, Messages, Names, NoticeMessages, Phrase, Piece, messages};
use super::pages::PageProblem;
use mailgate_domain::mailboxes::OAuthError;
use mailgate_domain::mailboxes::{ConnectError, plain_word};
use mailgate_types::language::Language;
use mailgate_types::plugin::Plugin;

/// Characters of a provider's explanation that are shown.
const SAID_LENGTH: usize = 300;

/// Who is responsible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Blame {
    /// The user's choice, or the account's state.
    User,
    /// The provider's response is unusable.
    Provider,
    /// The provider doesn't respond.
    ProviderAway,
    /// The gateway's database.
    GatewayAway,
    /// An internal error.
    Gateway,
}

/// Why a mailbox was not connected, independent of language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    AccessDenied,
    NotCompleted,
    InsufficientScope,
    NoRefreshToken,
    NoAddress,
    UnverifiedAddress,
    SignInRequired,
    InvalidGrant,
    ProviderUnavailable,
    ProviderError,
    PluginOff,
    UserIdMissing,
    WrongAccount { expected: String },
    AlreadyConnected,
    TooManyMailboxes,
    TooManyForApp,
    AppSuspended,
    SessionRequired,
    LinkUsed,
    Unavailable,
    InternalError,
}

impl Reason {
    /// Who is responsible.
    fn blame(&self) -> Blame {
        match self {
            Self::ProviderUnavailable => Blame::ProviderAway,
            Self::ProviderError => Blame::Provider,
            Self::Unavailable => Blame::GatewayAway,
            Self::InternalError => Blame::Gateway,
            _ => Blame::User,
        }
    }

    /// The metrics label: never the provider's own text.
    fn label(&self) -> &'static str {
        match self {
            Self::AccessDenied => "access_denied",
            Self::NotCompleted => "not_completed",
            Self::InsufficientScope => "insufficient_scope",
            Self::NoRefreshToken => "no_refresh_token",
            Self::NoAddress => "no_address",
            Self::UnverifiedAddress => "unverified_address",
            Self::SignInRequired => "sign_in_required",
            Self::InvalidGrant => "invalid_grant",
            Self::ProviderUnavailable => "provider_unavailable",
            Self::ProviderError => "provider_error",
            Self::PluginOff => "plugin_off",
            Self::UserIdMissing => "user_id_missing",
            Self::WrongAccount { .. } => "wrong_account",
            Self::AlreadyConnected => "already_connected",
            Self::TooManyMailboxes => "too_many_mailboxes",
            Self::TooManyForApp => "too_many_for_app",
            Self::AppSuspended => "app_suspended",
            Self::SessionRequired => "session_required",
            Self::LinkUsed => "link_used",
            Self::Unavailable => "unavailable",
            Self::InternalError => "internal_error",
        }
    }

    fn phrase(&self, of: &FailureMessages) -> Phrase {
        match self {
            Self::AccessDenied => of.access_denied,
            Self::NotCompleted => of.not_completed,
            Self::InsufficientScope => of.insufficient_scope,
            Self::NoRefreshToken => of.no_refresh_token,
            Self::NoAddress => of.no_address,
            Self::UnverifiedAddress => of.unverified_address,
            Self::SignInRequired => of.sign_in_required,
            Self::InvalidGrant => of.invalid_grant,
            Self::ProviderUnavailable => of.provider_unavailable,
            Self::ProviderError => of.provider_error,
            Self::PluginOff => of.plugin_off,
            Self::UserIdMissing => of.user_id_missing,
            Self::WrongAccount { .. } => of.wrong_account,
            Self::AlreadyConnected => of.already_connected,
            Self::TooManyMailboxes => of.too_many_mailboxes,
            Self::TooManyForApp => of.too_many_for_app,
            Self::AppSuspended => of.app_suspended,
            Self::SessionRequired => of.session_required,
            Self::LinkUsed => of.link_used,
            Self::Unavailable => of.unavailable,
            Self::InternalError => of.internal_error,
        }
    }

    /// `app` and `label` are the display names of the app and the provider.
    fn names<'a>(&'a self, app: &'a str, label: &'a str) -> Names<'a> {
        let email = match self {
            Self::WrongAccount { expected } => expected,
            _ => "",
        };
        Names {
            app,
            label,
            email,
            ..Names::default()
        }
    }
}

/// A mailbox that was not connected.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// A stable code in `snake_case`.
    pub(crate) error: String,
    /// The meaning and the fix, in English, for the app.
    pub(crate) text: String,
    /// The provider's own words, for the user.
    said: Option<String>,
    blame: Blame,
    /// The page's text in the user's language; a replica of an older version knows only `text`.
    reason: Option<Reason>,
}

impl Failure {
    /// `app` and `label` are the display names of the app and the provider.
    pub(crate) fn new(error: &ConnectError, app: &str, label: &str) -> Self {
        let (word, reason) = reason(error);
        let english = &messages(Language::English).failures;
        let names = reason.names(app, label);
        Self {
            error: word.to_owned(),
            text: reason.phrase(english).plain(&names),
            said: match error {
                ConnectError::Declined { description, .. } => said(description),
                _ => None,
            },
            blame: reason.blame(),
            reason: Some(reason),
        }
    }

    /// Counts it in the metrics.
    pub(crate) fn count(&self, plugin: Plugin) {
        let reason = self.reason.as_ref().map_or("internal_error", Reason::label);
        metrics::counter!(
            "mailgate_connect_failures_total",
            "plugin" => plugin.as_str(),
            "reason" => reason,
        )
        .increment(1);
    }

    /// The same without the provider's explanation.
    pub(crate) fn without_words(self) -> Self {
        Self { said: None, ..self }
    }

    /// A failure of the gateway's own, with this text.
    pub(crate) fn page(&self, app: &str, label: &str, messages: &Messages) -> PageProblem {
        let notice = |notices: &'static NoticeMessages| &notices.internal_error;
        let text = match &self.reason {
            Some(reason) => {
                let names = reason.names(app, label);
                reason.phrase(&messages.failures).of(&names)
            }
            None => vec![Piece::ours(&self.text)],
        };
        let said = self.said.as_ref().map(|said| {
            messages.result.provider_says.of(&Names {
                said,
                ..Names::default()
            })
        });
        let page = match self.blame {
            Blame::User => PageProblem::new(StatusCode::BAD_REQUEST, "not_connected", notice),
            Blame::Provider => PageProblem::new(StatusCode::BAD_GATEWAY, "provider_error", notice),
            Blame::ProviderAway => PageProblem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "provider_unavailable",
                notice,
            ),
            Blame::GatewayAway => {
                PageProblem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", notice)
            }
            Blame::Gateway => {
                PageProblem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", notice)
            }
        };
        page.not_connected(&self.error, text, said.unwrap_or_default())
    }
}

/// The code for the app, and the text for the user.
fn reason(error: &ConnectError) -> (&str, Reason) {
    match error {
        ConnectError::Declined { error, .. } => (
            plain_word(error).unwrap_or("provider_error"),
            declined(error),
        ),
        ConnectError::InsufficientScope(_) => ("insufficient_scope", Reason::InsufficientScope),
        ConnectError::NoRefreshToken => ("no_refresh_token", Reason::NoRefreshToken),
        ConnectError::NoAddress => ("no_address", Reason::NoAddress),
        ConnectError::OAuth(error) => refused(error),
        ConnectError::PluginOff(_) => ("plugin_off", Reason::PluginOff),
        ConnectError::NoUser => ("user_id_missing", Reason::UserIdMissing),
        ConnectError::WrongAccount { expected } => {
            let expected = expected.clone();
            ("wrong_account", Reason::WrongAccount { expected })
        }
        ConnectError::WouldReplace => ("already_connected", Reason::AlreadyConnected),
        ConnectError::TooMany => ("too_many_mailboxes", Reason::TooManyMailboxes),
        ConnectError::TooManyForApp => ("too_many_for_app", Reason::TooManyForApp),
        ConnectError::Suspended => ("app_suspended", Reason::AppSuspended),
        ConnectError::SessionRequired => ("connect_session_required", Reason::SessionRequired),
        ConnectError::SessionUsed => ("link_used", Reason::LinkUsed),
        ConnectError::Database(_) => ("unavailable", Reason::Unavailable),
        ConnectError::Seal(_) | ConnectError::AppGone => ("internal_error", Reason::InternalError),
    }
}

/// The provider redirected the user back without a code (RFC 6749 §4.1.2.1).
fn declined(error: &str) -> Reason {
    match error {
        "access_denied" => Reason::AccessDenied,
        "temporarily_unavailable" => Reason::ProviderUnavailable,
        "server_error" => Reason::ProviderError,
        _ => Reason::NotCompleted,
    }
}

/// The provider didn't exchange the code, or didn't identify the account.
fn refused(error: &OAuthError) -> (&str, Reason) {
    let unavailable = ("provider_unavailable", Reason::ProviderUnavailable);
    match error {
        OAuthError::Unverified => ("unverified_address", Reason::UnverifiedAddress),
        OAuthError::SignInRequired { reason, .. } => (reason.as_str(), Reason::SignInRequired),
        OAuthError::InvalidGrant { error, .. } => (
            plain_word(error).unwrap_or("invalid_grant"),
            Reason::InvalidGrant,
        ),
        error if error.is_passing() => unavailable,
        OAuthError::Refused { error, .. } => {
            let word = plain_word(error).unwrap_or("provider_error");
            (word, Reason::ProviderError)
        }
        // `is_passing` covers the first.
        OAuthError::Unreachable(_) | OAuthError::Lacks { .. } | OAuthError::Nonsense(_) => {
            ("provider_error", Reason::ProviderError)
        }
    }
}

/// A provider's explanation on one line, truncated.
fn said(description: &str) -> Option<String> {
    let said: String = description
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(SAID_LENGTH)
        .collect();
    let said = said.trim();
    (!said.is_empty()).then(|| said.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_word_and_blame() {
        let declined = |error: &str| ConnectError::Declined {
            error: error.to_owned(),
            description: String::new(),
        };
        let refused = |status, error: &str| {
            ConnectError::OAuth(OAuthError::Refused {
                status,
                error: error.to_owned(),
                description: String::new(),
            })
        };
        let long = "a".repeat(65);
        for (error, word, blame) in [
            (declined("access_denied"), "access_denied", Blame::User),
            (
                declined("consent_required"),
                "consent_required",
                Blame::User,
            ),
            (declined(&long), "provider_error", Blame::User),
            (declined(&long[1..]), &long[1..], Blame::User),
            (declined("<b>"), "provider_error", Blame::User),
            (declined(""), "provider_error", Blame::User),
            (declined("server_error"), "server_error", Blame::Provider),
            (
                declined("temporarily_unavailable"),
                "temporarily_unavailable",
                Blame::ProviderAway,
            ),
            (
                refused(400, "invalid_client"),
                "invalid_client",
                Blame::Provider,
            ),
            (refused(403, ""), "provider_error", Blame::Provider),
            (
                refused(500, "x"),
                "provider_unavailable",
                Blame::ProviderAway,
            ),
            (
                refused(429, ""),
                "provider_unavailable",
                Blame::ProviderAway,
            ),
            (
                ConnectError::OAuth(OAuthError::Unverified),
                "unverified_address",
                Blame::User,
            ),
            (
                ConnectError::OAuth(OAuthError::InvalidGrant {
                    error: "bad_verification_code".to_owned(),
                    description: String::new(),
                }),
                "bad_verification_code",
                Blame::User,
            ),
            (
                refused(200, "temporarily_unavailable"),
                "provider_unavailable",
                Blame::ProviderAway,
            ),
            (
                ConnectError::NoRefreshToken,
                "no_refresh_token",
                Blame::User,
            ),
            (
                ConnectError::Database(sqlx::Error::PoolTimedOut),
                "unavailable",
                Blame::GatewayAway,
            ),
        ] {
            let failure = Failure::new(&error, "App", "Google");
            assert_eq!(
                (failure.error.as_str(), failure.blame),
                (word, blame),
                "{error}"
            );
        }
    }

    #[test]
    fn a_providers_words_are_bounded() {
        assert_eq!(said(" \n "), None);
        assert_eq!(said("a\r\nb").as_deref(), Some("a  b"));
        assert_eq!(
            said(&"ü".repeat(1_000)).map(|said| said.chars().count()),
            Some(SAID_LENGTH)
        );
    }
}
