//! Completes an authorization: the mailbox that the provider's response grants access to is connected, or an error is
//! returned.

use std::net::IpAddr;

use tracing::Instrument as _;

use super::authorize::{CONTEXT, ConnectLink, State};
use super::connect::Terms;
use super::{ConnectError, Connected, Mailboxes, NewConnection};
use crate::storage::apps::connecting::{self, PublicApp};
use crate::storage::used_links;
use mailgate_types::audit::Author;
use mailgate_types::sealed_text;

/// Longest error code from a provider that is passed on, in bytes.
const WORD_LENGTH: usize = 64;

/// The provider's authorization response (RFC 6749 §4.1.2).
#[derive(Debug)]
pub enum ProviderAnswer {
    /// The authorization code.
    Code(String),
    /// No code, for this reason.
    Refused {
        /// The provider's error code, unmodified; empty if there was none.
        error: String,
        /// The provider's explanation.
        description: String,
    },
}

/// An authorization that has ended, successfully or not.
#[derive(Debug)]
pub struct Completed {
    /// The app.
    pub app: PublicApp,
    /// The link that started it.
    pub link: ConnectLink,
    /// The outcome.
    pub result: Result<Connected, ConnectError>,
}

/// The callback can't be matched to an authorization.
#[derive(Debug, thiserror::Error)]
pub enum CompleteError {
    /// The state is invalid, used or expired, or its link no longer belongs to the app.
    #[error("the link is no longer valid")]
    LinkDead,
    /// The authorization was started in another browser.
    #[error("the way began in another browser")]
    AnotherBrowser,
    /// The database failed.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
    /// The task ended early.
    #[error("the connection was cut off")]
    CutOff,
}

impl Mailboxes {
    /// Completes the authorization that `state` identifies, for the user at `address`, in the browser that holds the
    /// value whose digest is `browser`. It runs to completion even if the caller is cancelled.
    ///
    /// # Errors
    ///
    /// [`CompleteError`]; the app must not be given any details in that case.
    pub async fn complete(
        &self,
        state: &str,
        browser: Option<&str>,
        answer: ProviderAnswer,
        address: IpAddr,
    ) -> Result<Completed, CompleteError> {
        let state: State = sealed_text::open(&self.seal_keys, CONTEXT, state)
            .filter(|state: &State| state.expires_at > self.clock.now())
            .ok_or(CompleteError::LinkDead)?;
        if browser != Some(state.browser.as_str()) {
            return Err(CompleteError::AnotherBrowser);
        }
        let mailboxes = self.clone();
        self.tracker
            .spawn(
                async move { mailboxes.complete_state(state, answer, address).await }
                    .in_current_span(),
            )
            .await
            .map_err(|_| CompleteError::CutOff)?
    }

    async fn complete_state(
        &self,
        state: State,
        answer: ProviderAnswer,
        address: IpAddr,
    ) -> Result<Completed, CompleteError> {
        let app = {
            let mut connection = self.pool.acquire().await?;
            let app = connecting::find_public(&mut connection, &state.pushable_key)
                .await?
                .filter(|app| app.id.0 == state.app)
                .ok_or(CompleteError::LinkDead)?;
            if !used_links::insert(&mut connection, state.id, state.expires_at).await? {
                return Err(CompleteError::LinkDead);
            }
            app
        };
        let result = match answer {
            ProviderAnswer::Code(code) => {
                let new = NewConnection {
                    app: app.id,
                    user_id: state.link.origin.user_id(),
                    plugin: state.link.plugin,
                    code: &code,
                    redirect_uri: &state.redirect_uri,
                    code_verifier: &state.code_verifier,
                };
                let terms = Terms {
                    pushable_key: &state.pushable_key,
                    session: state.link.origin.session(),
                };
                let author = Author::user(Some(address));
                self.connect_by(&new, Some(&terms), author).await
            }
            ProviderAnswer::Refused { error, description } => {
                // It may come from anyone, and it is logged.
                let error = plain_word(&error).unwrap_or_default().to_owned();
                Err(ConnectError::Declined { error, description })
            }
        };
        if let Err(ConnectError::AppGone) = result {
            return Err(CompleteError::LinkDead);
        }
        if let Err(error) = &result {
            tracing::info!(app_id = %app.id, plugin = %state.link.plugin, %error, "a mailbox was not connected");
        }
        Ok(Completed {
            app,
            link: state.link,
            result,
        })
    }
}

/// A provider's error code, if it is plain `snake_case`: safe for programs and log lines.
#[must_use]
pub fn plain_word(error: &str) -> Option<&str> {
    let is_plain = error.starts_with(|letter: char| letter.is_ascii_lowercase())
        && error.len() <= WORD_LENGTH
        && error
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    is_plain.then_some(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words() {
        let long = "a".repeat(65);
        for (error, is_plain) in [
            ("access_denied", true),
            ("x9", true),
            (&long[1..], true),
            (&long, false),
            ("", false),
            ("_x", false),
            ("9x", false),
            ("Access", false),
            ("a b", false),
            ("a\nb", false),
            ("<b>", false),
        ] {
            assert_eq!(plain_word(error).is_some(), is_plain, "{error:?}");
        }
    }
}
