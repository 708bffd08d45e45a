//! The links in mails about an address: their actions, shown and performed.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use super::chain::chain;
use crate::accounts::Accounts;
use crate::accounts::audit;
use crate::accounts::email_changes::withdraw;
use crate::accounts::keys::renew::{MOST_UNCUT, RenewError, Renewal};
use mailgate_storage::email_changes::{self, EmailChange};
use mailgate_storage::subscribers;
use mailgate_types::audit::{Author, Credential};
use mailgate_types::email_change::EmailChangeLink;
use mailgate_types::ids::SubscriberId;
use mailgate_types::secrets::ApiSecret;

/// The action of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Make the new address the account's.
    Confirm(EmailChange),
    /// Cancel an unconfirmed change.
    Stop(EmailChange),
    /// Restore the former address.
    Restore(EmailChange),
}

impl Accounts {
    /// The action of a link; `None` if it is no longer valid.
    pub async fn email_decision(&self, token: &str) -> Result<Option<Decision>, sqlx::Error> {
        let Some((link, id)) = EmailChangeLink::read(&self.seal_keys, token) else {
            return Ok(None);
        };
        let mut connection = self.pool.acquire().await?;
        decide(&mut connection, link, id, self.clock.now()).await
    }

    /// Performs a link's action; `None` if it is no longer valid. Restoring the former address ends all sessions and
    /// links of the portal; with a renewal, the API secret is renewed in the same transaction, which then runs to
    /// completion even if the caller is cancelled.
    pub async fn follow_email_link(
        &self,
        token: &str,
        address: IpAddr,
        renewal: Option<Renewal>,
    ) -> Result<Option<(Decision, Option<ApiSecret>)>, RenewError> {
        let Some((link, id)) = EmailChangeLink::read(&self.seal_keys, token) else {
            return Ok(None);
        };
        let change = {
            let mut connection = self.pool.acquire().await?;
            email_changes::find(&mut connection, id).await?
        };
        let Some(EmailChange { subscriber, .. }) = change else {
            return Ok(None);
        };
        let link = (link, id);
        if renewal.is_none() {
            return self.follow_of(subscriber, link, address, None).await;
        }
        let accounts = self.clone();
        let following = async move { accounts.follow_of(subscriber, link, address, renewal).await };
        self.uncut(subscriber, MOST_UNCUT, following).await
    }

    async fn follow_of(
        &self,
        subscriber: SubscriberId,
        (link, id): (EmailChangeLink, Uuid),
        address: IpAddr,
        renewal: Option<Renewal>,
    ) -> Result<Option<(Decision, Option<ApiSecret>)>, RenewError> {
        let author = Author::subscriber(address, subscriber, Credential::Link);
        let now = self.clock.now();
        let begun = audit::begin_alone(&self.pool, author, subscriber, now).await?;
        let Some(mut transaction) = begun else {
            return Ok(None);
        };
        // After the wait for the subscriber's lock: another request may have decided meanwhile.
        let now = self.clock.now();
        let Some(decision) = decide(&mut transaction, link, id, now).await? else {
            return Ok(None);
        };
        match &decision {
            Decision::Stop(_) => withdraw(&mut transaction, subscriber, now).await?,
            Decision::Restore(change) => {
                self.restore_email(&mut transaction, change, author, now)
                    .await?;
            }
            Decision::Confirm(change) => {
                self.has_changed(&mut transaction, change, author, now)
                    .await?;
            }
        }
        if !matches!(decision, Decision::Stop(_)) {
            // The visitor who followed the link reads the account's current address.
            subscribers::confirm_email(&mut transaction, subscriber).await?;
        }
        let api_secret = match renewal {
            Some(renewal) if matches!(decision, Decision::Restore(_)) => {
                let renewed =
                    self.renew_by_mail(&mut transaction, subscriber, renewal, None, author);
                Some(renewed.await?)
            }
            _ => None,
        };
        transaction.commit().await?;
        Ok(Some((decision, api_secret)))
    }
}

async fn decide(
    connection: &mut PgConnection,
    link: EmailChangeLink,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Option<Decision>, sqlx::Error> {
    let Some(change) = email_changes::find(connection, id).await? else {
        return Ok(None);
    };
    Ok(match link {
        EmailChangeLink::Confirm if change.is_pending(now) => Some(Decision::Confirm(change)),
        EmailChangeLink::Undo if change.is_pending(now) => Some(Decision::Stop(change)),
        EmailChangeLink::Undo => {
            let chain = chain(connection, change.subscriber, now).await?;
            let begun = chain.map(|chain| chain.begun);
            begun.filter(|begun| begun.id == id).map(Decision::Restore)
        }
        EmailChangeLink::Confirm => None,
    })
}
