//! Connects a mailbox: the authorization code becomes tokens, the tokens an address, and both a row.

use super::{Mailboxes, token};
use crate::providers::mail::oauth::OAuthError;
use crate::storage::{end_users, mailboxes};
use crate::types::email_address::EmailAddress;
use crate::types::ids::{AppId, CredentialId, UserKey};
use crate::types::plugin::Plugin;
use crate::types::seal::SealError;

/// What came back from the provider, and for whom.
#[derive(Debug)]
pub struct NewConnection<'a> {
    /// The app.
    pub app: AppId,
    /// The app's own name for the end user; `None` for the one user of an app without multiuser.
    pub user_id: Option<&'a str>,
    /// The provider.
    pub plugin: Plugin,
    /// The authorization code.
    pub code: &'a str,
    /// The redirect address that the code was asked for with.
    pub redirect_uri: &'a str,
    /// The PKCE verifier (RFC 7636).
    pub code_verifier: &'a str,
}

/// A connected mailbox.
#[derive(Debug, Clone)]
pub struct Connected {
    /// The mailbox.
    pub credential: CredentialId,
    /// Its end user.
    pub user_key: UserKey,
    /// Its address.
    pub email: String,
}

/// Why a mailbox could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The plugin has no settings.
    #[error("{0} is not set up")]
    PluginOff(Plugin),
    /// The provider refused.
    #[error(transparent)]
    OAuth(#[from] OAuthError),
    /// Without a refresh token the mailbox would be dead within the hour.
    #[error("the provider gave no refresh token")]
    NoRefreshToken,
    /// What the provider calls the account is no address.
    #[error("the provider names no address of the account")]
    NoAddress,
    /// A token could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// What the database said.
    #[error("the database refused: {0}")]
    Database(#[from] sqlx::Error),
}

impl Mailboxes {
    /// Connects the mailbox that an authorization code stands for. The same address of the same user
    /// keeps its id.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]; nothing is stored then.
    pub async fn connect(&self, new: &NewConnection<'_>) -> Result<Connected, ConnectError> {
        let provider = self
            .providers
            .get(new.plugin)
            .ok_or(ConnectError::PluginOff(new.plugin))?;
        let tokens = provider
            .oauth
            .exchange(new.code, new.redirect_uri, new.code_verifier)
            .await?;
        let refresh_token = tokens
            .refresh_token
            .as_ref()
            .ok_or(ConnectError::NoRefreshToken)?;
        let email = provider.oauth.address(&tokens).await?;
        let email = EmailAddress::parse(&email).map_err(|_| ConnectError::NoAddress)?;
        let scopes = tokens
            .scopes
            .as_deref()
            .unwrap_or(&provider.settings.scopes);
        let now = self.clock.now();

        let mut transaction = self.pool.begin().await?;
        let user_key =
            end_users::find_or_insert(&mut transaction, new.app, new.user_id, now).await?;
        let credential = mailboxes::upsert(
            &mut transaction,
            &mailboxes::Connection {
                id: CredentialId::at(now),
                app: new.app,
                user_key,
                plugin: new.plugin,
                email: email.as_str(),
                email_lookup: &email.lookup_key(),
                scopes,
                now,
            },
        )
        .await?;
        mailboxes::store_tokens(
            &mut transaction,
            credential,
            None,
            &token::seal_access(&self.seal_keys, credential, &tokens.access_token)?,
            Some(&token::seal_refresh(
                &self.seal_keys,
                credential,
                refresh_token,
            )?),
            tokens.expires_at,
            now + self.settings.refresh_idle,
        )
        .await?;
        transaction.commit().await?;
        tracing::info!(credential_id = %credential, plugin = %new.plugin, "a mailbox is connected");
        Ok(Connected {
            credential,
            user_key,
            email: email.as_str().to_owned(),
        })
    }
}
