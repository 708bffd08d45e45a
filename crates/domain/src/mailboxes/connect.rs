//! Connects a mailbox: exchanges the authorization code for tokens, reads the account's address, and stores both.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde_json::json;
use sqlx::PgConnection;

use super::addresses::Aliases;
use super::connect_session::ConnectSession;
use super::revoke::SpentGrant;
use super::{Mailboxes, scopes, token};
use crate::accounts::audit;
use mailgate_providers::mail::oauth::{OAuthError, Tokens};
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_settings::PluginSettings;
use mailgate_storage::apps::connecting;
use mailgate_storage::billing_jobs;
use mailgate_storage::end_users::EndUser;
use mailgate_storage::mailboxes::Upserted;
use mailgate_storage::mailboxes::addresses::{self, AddressReport};
use mailgate_storage::mailboxes::end;
use mailgate_storage::{end_users, holdings, mailboxes, subscribers, used_links, webhook_messages};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::event::{DisconnectReason, Emission, Event, MailboxEvent};
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

/// The constraints of an opened link.
#[derive(Debug)]
pub(super) struct Terms<'a> {
    /// The pushable key, which must still be the app's current one.
    pub(super) pushable_key: &'a str,
    /// The connect session; `None` for a bare link, which anyone can write.
    pub(super) session: Option<&'a ConnectSession>,
}

impl Terms<'_> {
    /// Checks that this is the account that the session expects.
    fn check(&self, email: &EmailAddress) -> Result<(), ConnectError> {
        let expected = self
            .session
            .and_then(|session| session.expected_email.as_ref());
        match expected {
            Some(expected)
                if EmailAddress::parse(expected)
                    .is_ok_and(|expected| expected.lookup_key() != email.lookup_key()) =>
            {
                Err(ConnectError::WrongAccount {
                    expected: expected.clone(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// A grant that gives lasting access to a mailbox, until its user revokes it.
struct Grant<'a> {
    email: &'a EmailAddress,
    refresh_token: &'a SecretString,
    tokens: &'a Tokens,
    scopes: &'a [String],
    aliases: Aliases,
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

    /// Stores the mailbox by the app's rules and emits its event, in one transaction.
    async fn store_connection(
        &self,
        new: &NewConnection<'_>,
        grant: &Grant<'_>,
        terms: Option<&Terms<'_>>,
        author: Author,
    ) -> Result<Connected, ConnectError> {
        let now = self.clock.now();
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        // Before the app, in the order of all locks.
        let suspension = subscribers::suspension_of_app(&mut transaction, new.app).await?;
        let rules = connecting::lock_for_connection(&mut transaction, new.app)
            .await?
            .filter(|rules| terms.is_none_or(|terms| terms.pushable_key == rules.pushable_key))
            .ok_or(ConnectError::AppGone)?;
        if suspension.is_some() {
            return Err(ConnectError::Suspended);
        }
        let session = terms.and_then(|terms| terms.session);
        let is_bare = terms.is_some() && session.is_none();
        if is_bare && rules.require_connect_session {
            return Err(ConnectError::SessionRequired);
        }
        if session.is_some_and(|session| session.is_revoked(rules.connect_sessions_from)) {
            return Err(ConnectError::AppGone);
        }
        if let Some(session) = session
            && !used_links::insert(&mut transaction, session.id, session.expires_at).await?
        {
            return Err(ConnectError::SessionUsed);
        }
        let user_id = match (rules.multiuser, new.user_id) {
            (true, None) => return Err(ConnectError::NoUser),
            (true, named) => named,
            (false, _) => None,
        };
        let user =
            end_users::find_or_insert(&mut transaction, new.app, user_id, session.is_some(), now)
                .await?;
        let user_key = user.key;
        let mailbox = mailboxes::upsert(
            &mut transaction,
            &mailboxes::Connection {
                id: CredentialId::at(now),
                app: new.app,
                user_key,
                plugin: new.plugin,
                email: grant.email.as_str(),
                email_lookup: &grant.email.lookup_key(),
                scopes: grant.scopes,
                by_session: session.is_some(),
                now,
            },
        )
        .await?;
        let credential = mailbox.id;
        self.store_grant(&mut transaction, credential, grant, now)
            .await?;
        let entry = AuditEntry::of_app(AuditAction::UserConnected, new.app)
            .on(credential)
            .with(json!({
                "email": grant.email.as_str(), "plugin": new.plugin.as_str(), "user_id": user_id,
            }));
        transaction.record(entry).await?;
        let mut replaced = Vec::new();
        if is_bare {
            allows_bare(&mut transaction, &user, &mailbox).await?;
        }
        if mailbox.is_new {
            self.has_room(&mut transaction, new.app, is_bare).await?;
        }
        if !rules.multilink {
            let reason = DisconnectReason::Replaced;
            let others = end::others(&mut transaction, user_key, new.plugin, credential).await?;
            // Otherwise anyone who has the app's public link could divert the user's mail to a mailbox of their own.
            if is_bare && !others.is_empty() {
                return Err(ConnectError::WouldReplace);
            }
            for other in others {
                let ended = self.end(&mut transaction, other, None, reason);
                replaced.extend(ended.await?);
            }
            if session.is_some() {
                end::replace_ended(&mut transaction, user_key, new.plugin, credential).await?;
            }
        }
        let event = Event::UserConnected(MailboxEvent {
            credential_id: credential,
            email: grant.email.as_str().to_owned(),
            plugin: new.plugin,
        });
        webhook_messages::emit(&mut transaction, &[Emission::of(new.app, event)], now).await?;
        billing_jobs::enqueue_quantity_of_app(&mut transaction, new.app, now).await?;
        transaction.commit().await?;
        self.revoke(self.spent_grants(replaced));
        Ok(Connected {
            credential,
            user_key,
            email: grant.email.as_str().to_owned(),
        })
    }
}

impl Mailboxes {
    /// Checks that a subscriber is within its limits with a new mailbox of one of its apps. Bare links, which anyone
    /// can write, may use up only half of them.
    async fn has_room(
        &self,
        connection: &mut PgConnection,
        app: AppId,
        is_bare: bool,
    ) -> Result<(), ConnectError> {
        let held = holdings::lock(connection, app).await?;
        let settings = &self.settings;
        let most = |own: Option<i64>, setting: i64| {
            let all = own.unwrap_or(setting);
            if is_bare { all / 2 } else { all }
        };
        if held.mailboxes > most(held.most_mailboxes, settings.most_of_subscriber)
            || held.end_users > most(held.most_end_users, settings.most_users_of_subscriber)
        {
            return Err(ConnectError::TooManyForApp);
        }
        Ok(())
    }
}

/// Checks that a bare link, which anyone can write, may have connected this mailbox for the user.
async fn allows_bare(
    connection: &mut PgConnection,
    user: &EndUser,
    mailbox: &Upserted,
) -> Result<(), ConnectError> {
    // Also after the session's own mailbox has ended: anyone with the link could connect a replacement.
    if user.is_vouched && !mailbox.by_session {
        return Err(ConnectError::WouldReplace);
    }
    let others = end::count_others(connection, user.key, mailbox.id).await?;
    if others.by_session > 0 {
        return Err(ConnectError::WouldReplace);
    }
    if others.count >= MOST_BY_BARE_LINKS {
        return Err(ConnectError::TooMany);
    }
    Ok(())
}

impl Mailboxes {
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

    /// Stores the tokens of a mailbox, and the addresses that it may send as.
    async fn store_grant(
        &self,
        connection: &mut PgConnection,
        id: CredentialId,
        grant: &Grant<'_>,
        now: DateTime<Utc>,
    ) -> Result<(), ConnectError> {
        mailboxes::store_tokens(
            &mut *connection,
            id,
            None,
            &token::seal_access(&self.seal_keys, id, &grant.tokens.access_token)?,
            Some(&token::seal_refresh(
                &self.seal_keys,
                id,
                grant.refresh_token,
            )?),
            grant.tokens.expires_at,
            now + self.settings.refresh_idle,
        )
        .await?;
        let report = AddressReport {
            addresses: grant.aliases.addresses.as_deref(),
            asked_at: now,
            due_at: grant.aliases.due_at,
        };
        addresses::store(connection, id, &report).await?;
        Ok(())
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
