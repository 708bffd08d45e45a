//! Ends a user's way to a provider: what the provider's answer brings is connected, or not.

use std::net::IpAddr;

use tracing::Instrument as _;

use super::authorize::{CONTEXT, ConnectLink, State};
use super::connect::Terms;
use super::{ConnectError, Connected, Mailboxes, NewConnection};
use crate::storage::apps::connecting::{self, PublicApp};
use crate::storage::used_links;
use mailgate_types::audit::Author;
use mailgate_types::sealed_text;

/// Longest error word of a provider's that is passed on, in bytes.
const WORD_LENGTH: usize = 64;

/// What the provider sent the user back with (RFC 6749 §4.1.2).
#[derive(Debug)]
pub enum ProviderAnswer {
    /// The authorization code.
    Code(String),
    /// No code, for this reason.
    Refused {
        /// The error's word, as the provider has it; empty where there was none.
        error: String,
        /// The provider's explanation.
        description: String,
    },
}

/// A way that has ended, one way or the other.
#[derive(Debug)]
pub struct Completed {
    /// The app.
    pub app: PublicApp,
    /// The link that it began with.
    pub link: ConnectLink,
    /// What came of it.
    pub result: Result<Connected, ConnectError>,
}

/// Nobody knows what a user came back from.
#[derive(Debug, thiserror::Error)]
pub enum CompleteError {
    /// The state is none, was used or has lapsed, or its link is no longer the app's.
    #[error("the link is no longer valid")]
    LinkDead,
    /// The way began in another browser.
    #[error("the way began in another browser")]
    AnotherBrowser,
    /// What the database said.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
    /// The task ended early.
    #[error("the connection was cut off")]
    CutOff,
}

impl Mailboxes {
    /// Completes the way that `state` stands for, for the user at `address`, in the browser that shows what
    /// `browser` is the digest of. It runs to its end though the caller goes away.
    ///
    /// # Errors
    ///
    /// [`CompleteError`]: nothing may be told to the app then.
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
                // A stranger may have written it, and it is logged.
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

/// A provider's error word, if it is a plain one in `snake_case`: fit for programs and log lines.
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
