//! Stores a connected mailbox, as far as its app, its subscriber and its link permit it.

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde_json::json;
use sqlx::PgConnection;

use super::terms::{Terms, allows_bare};
use super::{ConnectError, Connected, NewConnection};
use crate::accounts::audit;
use crate::mailboxes::addresses::Aliases;
use crate::mailboxes::{Mailboxes, token};
use mailgate_providers::mail::oauth::Tokens;
use mailgate_storage::apps::connecting;
use mailgate_storage::billing_jobs;
use mailgate_storage::mailboxes::addresses::{self, AddressReport};
use mailgate_storage::mailboxes::end;
use mailgate_storage::{end_users, holdings, mailboxes, subscribers, used_links, webhook_messages};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::event::{DisconnectReason, Emission, Event, MailboxEvent};
use mailgate_types::ids::{AppId, CredentialId};

/// A grant that gives lasting access to a mailbox, until its user revokes it.
pub(super) struct Grant<'a> {
    pub(super) email: &'a EmailAddress,
    pub(super) refresh_token: &'a SecretString,
    pub(super) tokens: &'a Tokens,
    pub(super) scopes: &'a [String],
    pub(super) aliases: Aliases,
}

impl Mailboxes {
    /// Stores the mailbox by the app's rules and emits its event, in one transaction.
    pub(super) async fn store_connection(
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
