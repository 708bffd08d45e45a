//! Everything created with a subscriber's API secrets: the owner who renews a stolen one sees what the thief may have
//! left, and can end all of it, including anything from before a renewal by the thief.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sqlx::PgConnection;

use crate::accounts::Accounts;
use crate::accounts::audit::AuditedTransaction;
use crate::accounts::email_changes::chain::chain_of;
use mailgate_storage::email_changes::{self, EmailChange};
use mailgate_storage::minted::recent::{self, Recent, RecentApp, RecentWebhook};
use mailgate_storage::minted::{self, MintedApiSecret, MintedSendKey};
use mailgate_storage::subscribers::Subscriber;
use mailgate_storage::{api_secrets, apps, audit_entries, send_keys};
use mailgate_types::audit::{AuditAction, AuditEntry};
use mailgate_types::ids::SubscriberId;

/// How long a connect session lasts at most.
const CONNECT_SESSION: TimeDelta = TimeDelta::days(7);

/// Connect sessions that are counted.
const COUNTED: i64 = 1_000;

/// Everything created with the API secrets that still exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minted {
    /// The previous renewal of the secret; `None`: never. Older items existed before it.
    pub since: Option<DateTime<Utc>>,
    /// Additional API secrets.
    pub api_secrets: Vec<MintedApiSecret>,
    /// Additional send keys.
    pub send_keys: Vec<MintedSendKey>,
    /// Portal sessions, which every renewal ends.
    pub portal_sessions: i64,
    /// Unused sign-in links, which every renewal ends.
    pub portal_links: i64,
    /// Connect sessions of the last seven days, 1,000 at most, used or not.
    pub connect_sessions: i64,
    /// The first change of the address since the previous renewal, or that can still be undone.
    pub email_change: Option<ChangedEmail>,
    /// Apps created since the previous renewal. No renewal ends them.
    pub apps: Recent<RecentApp>,
    /// Webhook configurations created or changed since the previous renewal. No renewal ends them.
    pub webhooks: Recent<RecentWebhook>,
}

/// A change of the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedEmail {
    /// The address before.
    pub former_email: String,
    /// The address that replaced it, or a later one.
    pub email: String,
    /// When it was confirmed, or made without a confirmation.
    pub at: DateTime<Utc>,
    /// Whether it can still be undone.
    pub is_undoable: bool,
}

impl Accounts {
    /// Everything created with the subscriber's API secrets, current and former.
    pub async fn minted(&self, subscriber: &Subscriber) -> Result<Minted, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let since = subscriber.credentials_since;
        read(&mut connection, subscriber.id, since, self.clock.now()).await
    }
}

pub(in crate::accounts) async fn read(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    since: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<Minted, sqlx::Error> {
    let (portal_sessions, portal_links) =
        minted::portal_access(connection, subscriber, now).await?;
    let lasting = now - CONNECT_SESSION;
    Ok(Minted {
        since,
        api_secrets: minted::api_secrets(connection, subscriber).await?,
        send_keys: minted::send_keys(connection, subscriber).await?,
        portal_sessions,
        portal_links,
        connect_sessions: audit_entries::count(
            connection,
            subscriber,
            AuditAction::ConnectSessionCreated,
            lasting,
            COUNTED,
        )
        .await?,
        email_change: changed_email(connection, subscriber, since, now).await?,
        apps: recent::apps(connection, subscriber, since).await?,
        webhooks: recent::webhooks(connection, subscriber, since).await?,
    })
}

/// The change that a renewal can undo; else the first since the previous renewal.
async fn changed_email(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    since: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<Option<ChangedEmail>, sqlx::Error> {
    let changes = email_changes::of_subscriber(connection, subscriber).await?;
    let is_since = |at: DateTime<Utc>| since.is_none_or(|since| at > since);
    let of_late = changes
        .iter()
        .find(|change| change.confirmed_at.is_some_and(is_since));
    let of_late = of_late.and_then(|change| ChangedEmail::new(change, &change.email, false));
    let chain = chain_of(changes, now);
    let undoable = chain.and_then(|it| ChangedEmail::new(&it.begun, &it.email, true));
    Ok(undoable.or(of_late))
}

impl ChangedEmail {
    fn new(change: &EmailChange, email: &str, is_undoable: bool) -> Option<Self> {
        Some(Self {
            former_email: change.former_email.clone(),
            email: email.to_owned(),
            at: change.confirmed_at?,
            is_undoable,
        })
    }
}

/// Ends it within the renewal's transaction; the caller ends the sessions and links of the portal.
pub(in crate::accounts) async fn revoke(
    transaction: &mut AuditedTransaction,
    subscriber: SubscriberId,
    minted: &Minted,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    // In the order of all locks (see `storage`).
    apps::lock_all_of(transaction, subscriber).await?;
    // There may be thousands, and others wait for the locks. None can be created meanwhile.
    api_secrets::delete_all_of(transaction, subscriber).await?;
    send_keys::delete_all_of(transaction, subscriber).await?;
    let secrets = minted.api_secrets.iter().map(|secret| {
        let entry = AuditEntry::of_subscriber(AuditAction::ApiSecretDeleted, subscriber);
        entry.on(secret.id).with(json!({ "name": secret.name }))
    });
    let keys = minted.send_keys.iter().map(|key| {
        let entry = AuditEntry::of_app(AuditAction::SendKeyDeleted, key.app);
        entry.on(key.id).with(json!({ "name": key.name }))
    });
    let entries: Vec<AuditEntry> = secrets.chain(keys).collect();
    transaction.record_all(entries).await?;
    minted::end_connect_sessions(transaction, subscriber, now).await
}
