//! Floor 2: connected mailboxes. Selecting one for a send, connecting one, and managing its OAuth tokens.

mod addresses;
mod authorize;
mod bounces;
mod complete;
mod connect;
mod connect_session;
mod delete_app;
mod delete_subscriber;
mod disconnect;
mod disconnected;
mod former;
mod idle;
mod inbox;
mod link;
mod own_failure;
mod owned;
mod read;
mod release;
mod replies;
mod revoke;
mod scopes;
mod select;
mod state;
mod token;

use std::sync::Arc;

use sqlx::PgPool;
use tokio_util::task::TaskTracker;

use mailgate_providers::mail::MailProviders;
use mailgate_settings::{MailboxSettings, PluginSettings};
use mailgate_storage::database::batch_loader::BatchLoader;
use mailgate_storage::database::query_cache::QueryCache;
use mailgate_storage::mailboxes;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::GatewayId;
use mailgate_types::lease::Lease;
use mailgate_types::plugin::Plugin;
use mailgate_types::seal::SealKeys;

pub use addresses::PLACES as ADDRESS_PLACES;
pub use authorize::{AUTHORIZATION_LIFE, BeginError, Begun};
pub use complete::{CompleteError, Completed, ProviderAnswer, Returned, plain_word};
pub use connect::{ConnectError, Connected, NewConnection};
pub use connect_session::{
    ConnectSession, CreateSessionError, CreatedSession, LONGEST_SESSION, SESSION_LIFE,
    SessionError, SessionRequest, USER_ID_LENGTH,
};
pub use delete_app::Deletion;
pub use inbox::PLACES as REPLY_PLACES;
use inbox::Senders;
pub use link::{ConnectLink, LinkOrigin};
pub use mailgate_providers::mail::oauth::OAuthError;
pub use mailgate_storage::apps::connecting::PublicApp;
pub use mailgate_storage::mailboxes::addresses::AddressLook;
pub use mailgate_storage::mailboxes::owned::{FailedMessage, NamedMailbox, OwnedMailbox};
pub use mailgate_storage::mailboxes::{
    Chosen, ConnectedUser, Disconnected, FormerMailbox, Mailbox, Wanted,
};
pub use own_failure::{OwnFailure, own_failure};
pub use owned::OwnedFilter;
pub use read::MailboxReadError;
use token::Flights;
pub use token::TokenError;

/// Maximum number of cached selections: some 4 KiB each, most of it the sealed tokens.
const KNOWN: usize = 5_000;

/// The connected mailboxes.
#[derive(Debug, Clone)]
pub struct Mailboxes {
    pool: PgPool,
    seal_keys: Arc<SealKeys>,
    clock: SharedClock,
    providers: Arc<MailProviders>,
    flights: Arc<Flights>,
    senders: Arc<Senders>,
    tracker: TaskTracker,
    settings: Arc<MailboxSettings>,
    wanted: Arc<QueryCache<Wanted, Chosen>>,
    /// The process that refreshes tokens.
    gateway: Option<GatewayId>,
}

impl Mailboxes {
    /// The same mailboxes by another clock: changes have its times.
    #[must_use]
    pub fn by_clock(&self, clock: SharedClock) -> Self {
        Self {
            clock,
            ..self.clone()
        }
    }

    /// Takes the database pool, the keys that seal the tokens, and the providers. Refreshes run on `tracker`, so that a
    /// rotated token isn't lost when the caller is cancelled.
    #[must_use]
    pub fn new(
        pool: PgPool,
        seal_keys: Arc<SealKeys>,
        clock: SharedClock,
        providers: Arc<MailProviders>,
        tracker: TaskTracker,
        settings: Arc<MailboxSettings>,
    ) -> Self {
        let wanted = BatchLoader::new(pool.clone(), |connection, wanted| {
            Box::pin(mailboxes::find_wanted(connection, wanted))
        });
        Self {
            wanted: Arc::new(QueryCache::new(wanted, KNOWN)),
            pool,
            seal_keys,
            clock,
            providers,
            flights: Arc::default(),
            senders: Arc::default(),
            tracker,
            settings,
            gateway: None,
        }
    }

    /// Refreshes tokens under this process's lease: once the lease has ended, unfinished refreshes are repeated.
    #[must_use]
    pub fn of_gateway(self, lease: &Lease) -> Self {
        Self {
            gateway: Some(lease.id()),
            ..self
        }
    }

    /// The settings of a provider, if it is enabled.
    #[must_use]
    pub fn provider_settings(&self, plugin: Plugin) -> Option<&PluginSettings> {
        self.providers
            .get(plugin)
            .map(|provider| &provider.settings)
    }
}
