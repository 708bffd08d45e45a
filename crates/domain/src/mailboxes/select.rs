//! Selects the mailbox that a message is sent from.

use super::Mailboxes;
use mailgate_storage::mailboxes::{
    self, Chosen, ConnectedUser, FormerMailbox, Mailbox, Wanted, addresses,
};
use mailgate_types::ids::{AppId, AppVersion, CredentialId};

impl Mailboxes {
    /// The mailbox that matches the request.
    pub async fn choose(&self, wanted: &Wanted) -> Result<Option<Chosen>, sqlx::Error> {
        self.wanted.load(wanted).await
    }

    /// The cached selection, if it is as of `version` and its access token hasn't expired, so that the mailbox needn't
    /// be read again.
    #[must_use]
    pub fn remembered(&self, wanted: &Wanted, version: Option<AppVersion>) -> Option<Chosen> {
        let chosen = self.wanted.last(wanted)?;
        let holds = version.is_some() && chosen.version == version;
        if holds && self.has_living_token(&chosen.mailbox) {
            return Some(chosen);
        }
        self.wanted.forget(wanted);
        None
    }

    /// Drops a mailbox from the cache, so that the next message reads it again.
    pub fn forget(&self, mailbox: &Mailbox) {
        self.wanted.retain(|chosen| chosen.mailbox.id != mailbox.id);
    }

    /// The most recently disconnected of the mailboxes that match.
    pub async fn former(&self, wanted: &Wanted) -> Result<Option<FormerMailbox>, sqlx::Error> {
        let (user, lookup) = (wanted.user.as_deref(), wanted.address_lookup.as_deref());
        let mut connection = self.pool.acquire().await?;
        mailboxes::find_former(&mut connection, wanted.app, user, wanted.plugin, lookup).await
    }

    /// Up to `limit` send-as addresses of the mailboxes that match everything except the address.
    pub async fn addresses(&self, wanted: &Wanted, limit: i64) -> Result<Vec<String>, sqlx::Error> {
        let user = wanted.user.as_deref();
        let mut connection = self.pool.acquire().await?;
        addresses::list(&mut connection, wanted.app, user, wanted.plugin, limit).await
    }

    /// Whether a mailbox may send as this address.
    pub async fn may_send_as(&self, mailbox: &Mailbox, address: &str) -> Result<bool, sqlx::Error> {
        if mailbox.email.eq_ignore_ascii_case(address) {
            return Ok(true);
        }
        let mut connection = self.pool.acquire().await?;
        addresses::has(&mut connection, mailbox.id, &address.to_ascii_lowercase()).await
    }

    /// A mailbox, if it is active.
    pub async fn active(&self, id: CredentialId) -> Result<Option<Mailbox>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        mailboxes::find_active(&mut connection, id).await
    }

    /// All mailboxes of an app, oldest connection first.
    pub async fn users(&self, app: AppId) -> Result<Vec<ConnectedUser>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        mailboxes::list(&mut connection, app).await
    }
}
