//! Completes an authorization: the mailbox that the provider's response grants access to is connected, or an error is
//! returned.

use std::net::IpAddr;

use tracing::Instrument as _;

use super::authorize::REMEMBERED;
use super::connect::terms::Terms;
use super::link::ConnectLink;
use super::state::{Authorization, State};
use super::{ConnectError, Connected, Mailboxes, NewConnection};
use mailgate_storage::apps::connecting::{self, PublicApp};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::used_links;
use mailgate_types::audit::Author;

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

/// The data that a user's browser returns from the provider.
#[derive(Debug, Clone, Copy)]
pub struct Returned<'a> {
    /// The `state` parameter.
    pub state: &'a str,
    /// The rest of the authorization, which the browser kept.
    pub pending: Option<&'a str>,
    /// The digest of the value that the browser holds.
    pub browser: Option<&'a str>,
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
    #[error("the authorization was started in another browser")]
    AnotherBrowser,
    /// The database failed.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
    /// The task ended early.
    #[error("the connection was interrupted")]
    CutOff,
}

impl Mailboxes {
    /// Completes the authorization of a user who returns from `address`. It runs to completion even if the caller is
    /// cancelled.
    ///
    /// # Errors
    ///
    /// [`CompleteError`]; the app must not be given any details in that case.
    pub async fn complete(
        &self,
        returned: Returned<'_>,
        answer: ProviderAnswer,
        address: IpAddr,
    ) -> Result<Completed, CompleteError> {
        let authorization = self.authorization_of(returned)?;
        let mailboxes = self.clone();
        self.tracker
            .spawn(
                async move {
                    mailboxes
                        .complete_authorization(authorization, answer, address)
                        .await
                }
                .in_current_span(),
            )
            .await
            .map_err(|_| CompleteError::CutOff)?
    }

    /// The authorization, if it is still valid and was started in this browser.
    fn authorization_of(&self, returned: Returned<'_>) -> Result<Authorization, CompleteError> {
        let keys = &self.seal_keys;
        let is_live = |expires_at| expires_at > self.clock.now();
        let authorization = match State::open(keys, returned.state) {
            Some((state, id)) => {
                if !is_live(state.expires_at) {
                    return Err(CompleteError::LinkDead);
                }
                if !returned.browser.is_some_and(|browser| state.is_of(browser)) {
                    return Err(CompleteError::AnotherBrowser);
                }
                // A browser deletes it after use, and drops the oldest when too many are in progress.
                returned
                    .pending
                    .and_then(|pending| Authorization::open(keys, pending))
                    .filter(|authorization| authorization.id == id)
            }
            None => Authorization::open_former(keys, returned.state),
        };
        let authorization = authorization
            .filter(|authorization| is_live(authorization.expires_at))
            .ok_or(CompleteError::LinkDead)?;
        if returned.browser != Some(authorization.browser.as_str()) {
            return Err(CompleteError::AnotherBrowser);
        }
        Ok(authorization)
    }

    async fn complete_authorization(
        &self,
        authorization: Authorization,
        answer: ProviderAnswer,
        address: IpAddr,
    ) -> Result<Completed, CompleteError> {
        let app = {
            let mut connection = self.pool.acquire().await?;
            let app = connecting::find_public(&mut connection, &authorization.pushable_key)
                .await?
                .filter(|app| app.id.0 == authorization.app)
                .ok_or(CompleteError::LinkDead)?;
            // Anyone can begin any number of these, and return a refusal or their own code: until a mailbox is
            // connected, each is remembered only while it is valid.
            let until = authorization.expires_at - REMEMBERED;
            if !used_links::insert(&mut connection, authorization.id, until).await? {
                return Err(CompleteError::LinkDead);
            }
            app
        };
        let result = match answer {
            ProviderAnswer::Code(code) => {
                let new = NewConnection {
                    app: app.id,
                    user_id: authorization.link.origin.user_id(),
                    plugin: authorization.link.plugin,
                    code: &code,
                    redirect_uri: &authorization.redirect_uri,
                    code_verifier: &authorization.code_verifier,
                };
                let terms = Terms {
                    pushable_key: &authorization.pushable_key,
                    session: authorization.link.origin.session(),
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
        if result.is_ok() {
            let kept = async {
                let mut connection = self.pool.acquire().await?;
                used_links::keep(&mut connection, authorization.id, authorization.expires_at).await
            };
            // The mailbox is connected all the same.
            if let Err(error) = kept.await {
                trouble!(
                    warn,
                    error,
                    "a used link is remembered only for as long as it is valid"
                );
            }
        }
        if let Err(error) = &result {
            tracing::info!(app_id = %app.id, plugin = %authorization.link.plugin, %error, "a mailbox was not connected");
        }
        Ok(Completed {
            app,
            link: authorization.link,
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
