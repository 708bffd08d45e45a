//! Why a mailbox was not connected, for the app in a word and for its user in a sentence.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::connect_back::Back;
use super::connect_pages::{PageProblem, ShownApp};
use crate::mailboxes::{ConnectError, plain_word};
use crate::providers::mail::oauth::OAuthError;

/// Characters of a provider's explanation that are shown.
const SAID_LENGTH: usize = 300;

/// Whose affair it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Blame {
    /// The user's choice, or the account's state.
    User,
    /// The provider answers what nobody can use.
    Provider,
    /// The provider doesn't answer.
    ProviderAway,
    /// The gateway's database.
    GatewayAway,
    /// A slip of ours.
    Gateway,
}

/// A mailbox that was not connected.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    /// A word in `snake_case` that stays.
    pub(super) error: String,
    /// What it means and what to do.
    pub(super) text: String,
    /// The provider's own words, for the user.
    said: Option<String>,
    blame: Blame,
}

impl Failure {
    /// `app` and `label` are what people call the app and the provider.
    pub(super) fn new(error: &ConnectError, app: &str, label: &str) -> Self {
        let new = |word: &str, blame, text: String| Self {
            error: word.to_owned(),
            text,
            said: None,
            blame,
        };
        match error {
            ConnectError::Declined { error, description } => {
                let declined = declined(error, app, label);
                Self {
                    said: said(description),
                    ..declined
                }
            }
            ConnectError::InsufficientScope(_) => new(
                "insufficient_scope",
                Blame::User,
                format!("{app} didn't get every permission that it needs. Try again, and leave every permission that {label} lists turned on."),
            ),
            ConnectError::NoRefreshToken => new(
                "no_refresh_token",
                Blame::User,
                format!("{label} granted access only for a short time. Remove the access in the security settings of your account at {label}, and try again."),
            ),
            ConnectError::NoAddress => new(
                "no_address",
                Blame::User,
                format!("The account at {label} has no email address that can be used. Try again with another account."),
            ),
            ConnectError::OAuth(OAuthError::Unverified) => new(
                "unverified_address",
                Blame::User,
                format!("{label} hasn't verified the address of this account yet. Verify it there, and try again."),
            ),
            ConnectError::OAuth(OAuthError::SignInRequired { reason, .. }) => new(
                reason.as_str(),
                Blame::User,
                format!("{label} needs you to sign in or give your consent again. Try again."),
            ),
            ConnectError::OAuth(OAuthError::InvalidGrant(_)) => new(
                "invalid_grant",
                Blame::User,
                format!("{label} no longer accepts this sign-in; it may have taken too long. Try again."),
            ),
            ConnectError::OAuth(OAuthError::Unreachable(_)) => away(label),
            ConnectError::OAuth(OAuthError::Refused { status, .. }) if *status >= 500 || *status == 429 => {
                away(label)
            }
            ConnectError::OAuth(OAuthError::Refused { error, .. }) => refused(plain_word(error), label),
            ConnectError::OAuth(OAuthError::Nonsense(_)) => refused(None, label),
            ConnectError::PluginOff(_) => new(
                "plugin_off",
                Blame::User,
                format!("Mailboxes at {label} can't be connected here any more. Ask {app} for another link."),
            ),
            ConnectError::NoUser => new(
                "user_id_missing",
                Blame::User,
                format!("The link is incomplete: it doesn't say whose mailbox it is for. Ask {app} for another link."),
            ),
            ConnectError::WrongAccount { expected } => new(
                "wrong_account",
                Blame::User,
                format!("This link is for {expected}, and you signed in with another account. Try again, and choose {expected} at {label}."),
            ),
            ConnectError::WouldReplace => new(
                "already_connected",
                Blame::User,
                format!("You already have a connected mailbox, and this link can't replace it, because anybody could have made the link. Disconnect that mailbox in {app} first, or ask {app} for a personal link."),
            ),
            ConnectError::TooMany => new(
                "too_many_mailboxes",
                Blame::User,
                format!("You already have as many connected mailboxes as a link like this allows. Disconnect one in {app} first, or ask {app} for a personal link."),
            ),
            ConnectError::SessionRequired => new(
                "connect_session_required",
                Blame::User,
                format!("{app} no longer accepts links like this one. Ask {app} for a personal link."),
            ),
            ConnectError::SessionUsed => new(
                "link_used",
                Blame::User,
                format!("This link has already connected another mailbox, and works only once. Ask {app} for a new link."),
            ),
            ConnectError::Database(_) => new(
                "unavailable",
                Blame::GatewayAway,
                "The email gateway could not store the connection. Try again in a minute.".to_owned(),
            ),
            ConnectError::Seal(_) | ConnectError::AppGone => new(
                "internal_error",
                Blame::Gateway,
                "Something went wrong on our side. Try again; if it persists, contact the operator of this email gateway.".to_owned(),
            ),
        }
    }

    /// The same without what the provider said of it.
    pub(super) fn without_words(self) -> Self {
        Self { said: None, ..self }
    }

    /// A page of the gateway's own, with the ways to try again and to leave it.
    pub(super) fn page(self, app: ShownApp, again: String, back: Option<Back>) -> PageProblem {
        let title = "Your mailbox is not connected";
        let text = match &self.said {
            Some(said) => format!("{} The provider says: “{said}”", self.text),
            None => self.text,
        };
        let page = match self.blame {
            Blame::User => PageProblem::new(StatusCode::BAD_REQUEST, "not_connected", title, text),
            Blame::Provider => {
                PageProblem::new(StatusCode::BAD_GATEWAY, "provider_error", title, text)
            }
            Blame::ProviderAway => PageProblem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "provider_unavailable",
                title,
                text,
            ),
            Blame::GatewayAway => {
                PageProblem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", title, text)
            }
            Blame::Gateway => PageProblem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal_error",
                title,
                text,
            ),
        };
        page.called(&self.error).of(app, again, back)
    }
}

/// The provider sent the user back without a code (RFC 6749 §4.1.2.1).
fn declined(error: &str, app: &str, label: &str) -> Failure {
    let failure = |blame, text| Failure {
        error: plain_word(error).unwrap_or("provider_error").to_owned(),
        text,
        said: None,
        blame,
    };
    match error {
        "access_denied" => failure(
            Blame::User,
            format!(
                "Access was denied at {label}, so {app} can't send from your mailbox. If that was a mistake, try again; if your organisation has to agree first, ask its administrator."
            ),
        ),
        "temporarily_unavailable" => failure(Blame::ProviderAway, away(label).text),
        "server_error" => failure(Blame::Provider, refused(None, label).text),
        _ => failure(
            Blame::User,
            format!(
                "{label} didn't complete the sign-in. Try again; if it persists, contact {app}."
            ),
        ),
    }
}

fn refused(word: Option<&str>, label: &str) -> Failure {
    Failure {
        error: word.unwrap_or("provider_error").to_owned(),
        text: format!(
            "{label} answered with an error. Try again in a few minutes; if it persists, contact the operator of this email gateway."
        ),
        said: None,
        blame: Blame::Provider,
    }
}

fn away(label: &str) -> Failure {
    Failure {
        error: "provider_unavailable".to_owned(),
        text: format!("{label} can't be reached at the moment. Try again in a few minutes."),
        said: None,
        blame: Blame::ProviderAway,
    }
}

/// A provider's explanation on one line, as long as one may be.
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
                ConnectError::OAuth(OAuthError::InvalidGrant(String::new())),
                "invalid_grant",
                Blame::User,
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
