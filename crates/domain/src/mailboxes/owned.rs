//! A subscriber's mailboxes over all apps, as its owner manages them.

use chrono::TimeDelta;

use super::{CreateSessionError, CreatedSession, LONGEST_SESSION, Mailboxes, SessionRequest};
use mailgate_storage::mailboxes::owned::{self, NamedMailbox, OwnedMailbox, Selection};
use mailgate_types::audit::Author;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::{CredentialId, SubscriberId};

/// How far back failures are searched for.
const RECENT: TimeDelta = TimeDelta::days(30);

/// How long a link to reconnect a mailbox is valid.
const LINK_LIFE: TimeDelta = LONGEST_SESSION;

/// Selects mailboxes.
#[derive(Debug, Clone, Default)]
pub struct OwnedFilter {
    /// Of the app with this slug only.
    pub slug: Option<String>,
    /// Connected or disconnected ones only.
    pub connected: Option<bool>,
    /// Those with this in their address, in any case, or as their user's ID.
    pub words: Option<String>,
    /// Those after this one.
    pub after: Option<CredentialId>,
}

impl OwnedFilter {
    fn selection(&self) -> Selection<'_> {
        Selection {
            slug: self.slug.as_deref(),
            connected: self.connected,
            words: self.words.as_deref(),
        }
    }
}

impl Mailboxes {
    /// The number of connected and of disconnected mailboxes that the filter selects, whatever its state and place;
    /// each at most `most`.
    pub async fn owned_counts(
        &self,
        subscriber: SubscriberId,
        filter: &OwnedFilter,
        most: i64,
    ) -> Result<(i64, i64), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let selection = filter.selection();
        owned::counts(&mut connection, subscriber, selection, most).await
    }

    /// Up to `limit` of the subscriber's mailboxes, by app and address.
    pub async fn owned(
        &self,
        subscriber: SubscriberId,
        filter: &OwnedFilter,
        limit: i64,
    ) -> Result<Vec<OwnedMailbox>, sqlx::Error> {
        let now = self.clock.now();
        let mut connection = self.pool.acquire().await?;
        let after = match filter.after {
            Some(id) => owned::place(&mut connection, subscriber, id).await?,
            None => None,
        };
        let selection = filter.selection();
        let page = owned::page(
            &mut connection,
            subscriber,
            selection,
            after.as_ref(),
            limit,
        );
        let ids = page.await?;
        owned::details(&mut connection, subscriber, &ids, now - RECENT, now).await
    }

    /// Up to `limit` of the subscriber's mailboxes to choose from, by address.
    pub async fn named(
        &self,
        subscriber: SubscriberId,
        slug: Option<&str>,
        limit: i64,
    ) -> Result<Vec<NamedMailbox>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let selection = Selection {
            slug,
            ..Selection::default()
        };
        let ids = owned::page(&mut connection, subscriber, selection, None, limit).await?;
        owned::names(&mut connection, &ids).await
    }

    /// The subscriber's mailbox that sends as this address, of the app with this slug or UUID if given.
    pub async fn by_address(
        &self,
        subscriber: SubscriberId,
        app: Option<&str>,
        address: &EmailAddress,
    ) -> Result<Option<CredentialId>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let lookup = address.lookup_key();
        owned::by_address(&mut connection, subscriber, app, &lookup).await
    }

    /// One of the subscriber's mailboxes; another subscriber's is not found.
    pub async fn owned_mailbox(
        &self,
        subscriber: SubscriberId,
        id: CredentialId,
    ) -> Result<Option<OwnedMailbox>, sqlx::Error> {
        let now = self.clock.now();
        let mut connection = self.pool.acquire().await?;
        let ids = [id];
        let found = owned::details(&mut connection, subscriber, &ids, now - RECENT, now);
        Ok(found.await?.pop())
    }

    /// A session for the mailbox's own user to reconnect this address, which keeps its id.
    ///
    /// # Errors
    ///
    /// [`CreateSessionError`]; there is none then.
    pub async fn reconnect_session(
        &self,
        mailbox: &OwnedMailbox,
        author: Author,
    ) -> Result<CreatedSession, CreateSessionError> {
        let request = SessionRequest {
            user_id: mailbox.user_id.clone(),
            plugin: Some(mailbox.plugin),
            login_hint: Some(mailbox.email.clone()),
            expected_email: Some(mailbox.email.clone()),
            callback_url: None,
            life: LINK_LIFE,
        };
        self.create_session(mailbox.app, &mailbox.pushable_key, request, author)
            .await
    }

    /// The number of messages that the mailbox may still send in the current 24 hours, and in all of them; `None` if
    /// its provider has no limit.
    #[must_use]
    pub fn left_today(&self, mailbox: &OwnedMailbox) -> Option<(i64, i64)> {
        let per_day = self
            .provider_settings(mailbox.plugin)
            .map_or(0, |settings| settings.limits.per_day);
        let per_day = i64::from(per_day);
        (per_day > 0).then(|| ((per_day - mailbox.sent_today).max(0), per_day))
    }
}
