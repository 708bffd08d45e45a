//! Connects a mailbox: exchanges the authorization code for tokens, reads the account's address, and stores both.

mod store;
pub(super) mod terms;

use std::sync::Arc;

use secrecy::SecretString;

use self::store::Grant;
use self::terms::Terms;
use super::revoke::SpentGrant;
use super::{Mailboxes, scopes};
use mailgate_providers::mail::oauth::{OAuthError, Tokens};
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_settings::PluginSettings;
use mailgate_types::audit::Author;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::{AppId, CredentialId, UserKey};
use mailgate_types::plugin::Plugin;
use mailgate_types::seal::SealError;

/// Maximum active mailboxes of one user for bare links: each is billed, and anyone can write such a link.
const MOST_BY_BARE_LINKS: i64 = 10;

/// The provider's response, and its user.
#[derive(Debug)]
pub struct NewConnection<'a> {
    /// The app.
    pub app: AppId,
    /// The app's own id for the end user; an app without multiuser has a single user and ignores it.
    pub user_id: Option<&'a str>,
    /// The provider.
    pub plugin: Plugin,
    /// The authorization code.
    pub code: &'a str,
    /// The redirect URI of the authorization request.
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
    /// The provider sent the user back without a code.
    #[error("the provider sent no code: {error}")]
    Declined {
        /// The error code (RFC 6749 §4.1.2.1), or empty if it isn't a plain one.
        error: String,
        /// The provider's explanation, shown only to the user.
        description: String,
    },
    /// The provider refused.
    #[error(transparent)]
    OAuth(#[from] OAuthError),
    /// The user granted less than a mailbox needs.
    #[error("these scopes were not granted: {0}")]
    InsufficientScope(String),
    /// No refresh token: the mailbox would stop working within the hour.
    #[error("the provider returned no refresh token")]
    NoRefreshToken,
    /// The provider's account name is not an email address.
    #[error("the provider reports no address of the account")]
    NoAddress,
    /// The app is multiuser, and no user id was given.
    #[error("the app is multiuser, and the link has no user id")]
    NoUser,
    /// The connect session is for another account.
    #[error("another account was expected")]
    WrongAccount {
        /// The expected account.
        expected: String,
    },
    /// A bare link would replace the user's mailbox, or add one to those that the app requested itself.
    #[error("the user has another mailbox, and a bare link can't change that")]
    WouldReplace,
    /// The user has reached the limit of mailboxes for bare links.
    #[error("the user has {MOST_BY_BARE_LINKS} mailboxes, and a bare link connects no further one")]
    TooMany,
    /// The app's subscriber has reached its limit of mailboxes or end users.
    #[error("the app's subscriber has reached its limit of mailboxes or end users")]
    TooManyForApp,
    /// The operator has suspended the app's subscriber.
    #[error("the app's subscriber is suspended")]
    Suspended,
    /// The app now requires connect sessions.
    #[error("the app only accepts connect sessions")]
    SessionRequired,
    /// The connect session was used to connect another mailbox.
    #[error("the connect session was used")]
    SessionUsed,
    /// The app was deleted, its pushable key renewed, or the connect session revoked.
    #[error("the app was deleted, has a new pushable key, or has revoked the session")]
    AppGone,
    /// A token could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database failed.
    #[error("the database refused: {0}")]
    Database(#[from] sqlx::Error),
}

impl Mailboxes {
    /// Connects the mailbox that an authorization code grants access to. The same address of the same user keeps its
    /// id; without multilink it replaces the user's other mailbox of that plugin.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]; nothing is stored then, and the grant is revoked.
    pub async fn connect(&self, new: &NewConnection<'_>) -> Result<Connected, ConnectError> {
        self.connect_by(new, None, Author::user(None)).await
    }

    /// Like [`Mailboxes::connect`], for a link.
    pub(super) async fn connect_by(
        &self,
        new: &NewConnection<'_>,
        terms: Option<&Terms<'_>>,
        author: Author,
    ) -> Result<Connected, ConnectError> {
        let provider = self
            .providers
            .get(new.plugin)
            .ok_or(ConnectError::PluginOff(new.plugin))?;
        let tokens = provider
            .oauth
            .exchange(new.code, new.redirect_uri, new.code_verifier)
            .await?;
        // Read even if scopes are missing: the address decides whether the grant may be revoked.
        let (email, proxies) = match provider.oauth.address(&tokens, new.code_verifier).await {
            Ok(report) => {
                let primary = EmailAddress::parse(&report.primary);
                (primary.map_err(|_| ConnectError::NoAddress), report.proxies)
            }
            Err(error) => (Err(error.into()), Vec::new()),
        };
        let address_lookup = email.as_ref().ok().map(EmailAddress::lookup_key);
        let settings = &provider.settings;
        let result = match (enough(settings, &tokens), email) {
            // If the user withheld a scope, the address may be missing too: report the scope.
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(refresh_token), Ok(email)) => {
                let scopes = tokens.scopes.as_deref().unwrap_or(&settings.scopes);
                match terms.map_or(Ok(()), |terms| terms.check(&email)) {
                    Ok(()) => {
                        let account = self.new_account(&email, &tokens, scopes);
                        let grant = Grant {
                            email: &email,
                            refresh_token,
                            tokens: &tokens,
                            scopes,
                            aliases: self.aliases_of(provider, &account, &email, &proxies).await,
                        };
                        self.store_connection(new, &grant, terms, author).await
                    }
                    Err(error) => Err(error),
                }
            }
        };
        if result.is_err() {
            self.revoke(vec![SpentGrant {
                plugin: new.plugin,
                address_lookup,
                token: tokens.refresh_token.unwrap_or(tokens.access_token),
            }]);
        }
        result
    }

    /// The account of a new grant, which has no row yet.
    fn new_account(
        &self,
        email: &EmailAddress,
        tokens: &Tokens,
        scopes: &[String],
    ) -> MailboxAccess {
        MailboxAccess {
            credential: CredentialId::at(self.clock.now()),
            address: email.as_str().to_owned(),
            generation: 0,
            access_token: tokens.access_token.clone(),
            scopes: Arc::from(scopes),
        }
    }
}

/// The refresh token, if the grant covers everything that a mailbox needs.
fn enough<'a>(
    settings: &PluginSettings,
    tokens: &'a Tokens,
) -> Result<&'a SecretString, ConnectError> {
    let granted = tokens.scopes.as_deref();
    let missing = scopes::missing(settings.kind, &settings.scopes, granted);
    if !missing.is_empty() {
        return Err(ConnectError::InsufficientScope(missing.join(" ")));
    }
    tokens
        .refresh_token
        .as_ref()
        .ok_or(ConnectError::NoRefreshToken)
}
