//! Whether a provider accepts the OAuth client itself, by its last response: a rejected client can't refresh tokens,
//! and only the operator can fix that.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{OAuthError, Tokens};
use mailgate_types::plugin::Plugin;

/// Microsoft's code for an expired client secret. It comes only with `invalid_client`.
const EXPIRED: &str = "AADSTS7000222";

/// Why a client is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// Its secret has expired.
    Expired,
    /// Its id or its secret is wrong.
    Refused,
}

/// The state of one plugin's client.
#[derive(Debug)]
pub(super) struct ClientState {
    plugin: Plugin,
    is_refused: AtomicBool,
}

impl ClientState {
    pub(super) fn new(plugin: Plugin) -> Self {
        Self {
            plugin,
            is_refused: AtomicBool::new(false),
        }
    }

    /// Records the client's state from a token endpoint's response. A change is logged once.
    pub(super) fn learn(&self, answer: Result<&Tokens, &OAuthError>) {
        let refusal = match answer {
            Ok(_) => None,
            Err(error) => match refusal(error) {
                Some(refusal) => Some(refusal),
                // A dead grant concerns the user; the provider reports it only to a client that it accepts.
                None if error.grant_ended().is_some() => None,
                None => return,
            },
        };
        self.show(refusal);
        let was_refused = self.is_refused.swap(refusal.is_some(), Ordering::Relaxed);
        let plugin = self.plugin.as_str();
        match refusal {
            Some(Refusal::Expired) if !was_refused => {
                tracing::error!(
                    plugin,
                    "the provider says that the OAuth client's secret has expired: no token can be refreshed; make a new one there, set plugins.{plugin}.client_secret and restart"
                );
            }
            Some(Refusal::Refused) if !was_refused => {
                tracing::error!(
                    plugin,
                    "the provider refuses the OAuth client: no token can be refreshed; check plugins.{plugin}.client_id and client_secret"
                );
            }
            None if was_refused => {
                tracing::info!(plugin, "the provider accepts the OAuth client again");
            }
            _ => {}
        }
    }

    fn show(&self, refusal: Option<Refusal>) {
        let plugin = self.plugin.as_str();
        let is = |one: Refusal| if refusal == Some(one) { 1.0 } else { 0.0 };
        metrics::gauge!("mailgate_oauth_client_refused", "plugin" => plugin, "reason" => "expired")
            .set(is(Refusal::Expired));
        metrics::gauge!("mailgate_oauth_client_refused", "plugin" => plugin, "reason" => "refused")
            .set(is(Refusal::Refused));
    }
}

/// Whether an error code concerns the client and not the grant: the standard's, or GitHub's and Zoho's.
pub(super) fn is_about_client(error: &str) -> bool {
    matches!(
        error,
        "invalid_client" | "invalid_client_secret" | "incorrect_client_credentials"
    )
}

fn refusal(error: &OAuthError) -> Option<Refusal> {
    match error {
        OAuthError::Refused {
            error, description, ..
        } if is_about_client(error) => Some(if description.contains(EXPIRED) {
            Refusal::Expired
        } else {
            Refusal::Refused
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::error_on;
    use super::*;

    /// As Microsoft writes it.
    const MICROSOFT: &[u8] = br#"{"error":"invalid_client","error_description":"AADSTS7000222: The provided client secret keys for app '00000000-0000-0000-0000-000000000000' are expired.","error_codes":[7000222]}"#;

    #[test]
    fn only_answers_about_the_client_count() {
        for (status, body, expected) in [
            (401, MICROSOFT, Some(Refusal::Expired)),
            (
                401,
                br#"{"error":"invalid_client","error_description":"Unauthorized"}"#,
                Some(Refusal::Refused),
            ),
            (
                200,
                br#"{"error":"invalid_client_secret"}"#,
                Some(Refusal::Refused),
            ),
            (
                200,
                b"error=incorrect_client_credentials",
                Some(Refusal::Refused),
            ),
            (400, br#"{"error":"invalid_grant"}"#, None),
            (200, br#"{"error":"invalid_code"}"#, None),
            (500, br#"{"error":"server_error"}"#, None),
            (429, b"AADSTS7000222", None),
        ] {
            assert_eq!(refusal(&error_on(status, body)), expected);
        }
    }

    #[test]
    fn a_refusal_stays_until_the_client_is_accepted() {
        let state = ClientState::new(Plugin::B);
        let is_refused = || state.is_refused.load(Ordering::Relaxed);
        let learn = |status, body: &[u8]| state.learn(Err(&error_on(status, body)));
        assert!(!is_refused());
        learn(401, MICROSOFT);
        assert!(is_refused());
        learn(503, b"");
        assert!(is_refused());
        learn(400, br#"{"error":"invalid_grant"}"#);
        assert!(!is_refused());
    }
}
