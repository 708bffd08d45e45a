//! The mailbox that a message goes out from.

use super::Mailboxes;
use crate::storage::mailboxes::{
    self, Chosen, ConnectedUser, FormerMailbox, Mailbox, Wanted, addresses,
};
use crate::types::email_address::EmailAddress;
use crate::types::ids::{AppId, CredentialId};
use crate::types::plugin::Plugin;

impl Mailboxes {
    /// The app's active mailbox that was connected first, among those of the end user (the app's own
    /// name for the user, or the user's key) and the plugin where they are given.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn for_user(
        &self,
        app: AppId,
        user: Option<&str>,
        plugin: Option<Plugin>,
    ) -> Result<Option<Chosen>, sqlx::Error> {
        let wanted = Wanted {
            app,
            user: user.map(str::to_owned),
            plugin,
            address_lookup: None,
        };
        self.wanted.ask(&wanted).await
    }

    /// The app's active mailbox that may send as this address: the one whose own it is, if there is one.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn for_address(
        &self,
        app: AppId,
        address: &EmailAddress,
    ) -> Result<Option<Chosen>, sqlx::Error> {
        self.for_sender(app, None, None, address).await
    }

    /// The same among those of an end user and a plugin, where they are given (as for
    /// [`Self::for_user`]).
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn for_sender(
        &self,
        app: AppId,
        user: Option<&str>,
        plugin: Option<Plugin>,
        address: &EmailAddress,
    ) -> Result<Option<Chosen>, sqlx::Error> {
        let wanted = Wanted {
            app,
            user: user.map(str::to_owned),
            plugin,
            address_lookup: Some(address.lookup_key()),
        };
        self.wanted.ask(&wanted).await
    }

    /// The mailbox that was disconnected last, among those that [`Self::for_user`] and [`Self::for_sender`] would
    /// have chosen from.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn former(
        &self,
        app: AppId,
        user: Option<&str>,
        plugin: Option<Plugin>,
        address: Option<&EmailAddress>,
    ) -> Result<Option<FormerMailbox>, sqlx::Error> {
        let lookup = address.map(EmailAddress::lookup_key);
        let mut connection = self.pool.acquire().await?;
        mailboxes::find_former(&mut connection, app, user, plugin, lookup.as_deref()).await
    }

    /// Up to `limit` addresses that the mailboxes may send as that [`Self::for_user`] would have chosen from.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn addresses(
        &self,
        app: AppId,
        user: Option<&str>,
        plugin: Option<Plugin>,
        limit: i64,
    ) -> Result<Vec<String>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        addresses::list(&mut connection, app, user, plugin, limit).await
    }

    /// Whether a mailbox may send as this address.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn may_send_as(&self, mailbox: &Mailbox, address: &str) -> Result<bool, sqlx::Error> {
        if mailbox.email.eq_ignore_ascii_case(address) {
            return Ok(true);
        }
        let mut connection = self.pool.acquire().await?;
        addresses::has(&mut connection, mailbox.id, &address.to_ascii_lowercase()).await
    }

    /// A mailbox while it is active.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn active(&self, id: CredentialId) -> Result<Option<Mailbox>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        mailboxes::find_active(&mut connection, id).await
    }

    /// All mailboxes of an app, those connected first in front.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn users(&self, app: AppId) -> Result<Vec<ConnectedUser>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        mailboxes::list(&mut connection, app).await
    }
}
