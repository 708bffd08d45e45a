//! Floor 2: authenticating callers. Subscribers, apps and their keys.

mod apps;
pub mod audit;
mod authenticate;
mod email_changes;
pub mod keys;
mod portal;
mod subscribers;

use std::sync::Arc;

use sqlx::PgPool;
use tokio_util::task::TaskTracker;

use mailgate_settings::{Limits, PayprovSettings};
use mailgate_storage::database::batch_loader::BatchLoader;
use mailgate_storage::database::query_cache::QueryCache;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::SubscriberId;
use mailgate_types::seal::SealKeys;
use mailgate_types::shared_places::SharedPlaces;
use mailgate_types::subscription::SubscriptionStatus;

pub use self::apps::ChangeError;
pub use apps::create::{AppFields, CreateError, CreatedApp};
pub use apps::suppressions::{KEPT as SUPPRESSED_FOR, SuppressionPage};
pub use authenticate::caller::Caller;
use authenticate::hold_back::HeldBack;
pub use authenticate::places::RequestPlace;
use authenticate::places::RequestPlaces;
use authenticate::rate::Rates;
pub use authenticate::rate::{CalledBy, RateDecision};
pub use authenticate::sessions::AppSession;
use authenticate::sessions::Sessions;
use authenticate::slow_down::Failures;
pub use authenticate::{AuthenticateError, PresentedKey};
pub use email_changes::links::Decision;
pub use email_changes::{EmailChangeError, OwnMail};
pub use keys::api_secrets::{ApiSecretError, MOST_API_SECRETS, NewApiSecret};
pub use keys::marks::AppKey;
pub use keys::minted::{ChangedEmail, Minted};
pub use keys::renew::{RenewError, Renewal, RestoredEmail};
pub use keys::send_keys::{
    MOST_MAILBOXES_OF_A_KEY, MOST_SEND_KEYS, NewSendKey, SendKeyChange, SendKeyError, ShownSendKey,
};
pub use keys::show::{AppCredentials, ShowError, WebhookSecrets};
use keys::uses::KeyUses;
pub use mailgate_storage::api_secrets::{ApiSecretRow, Limited, Opened};
pub use mailgate_storage::apps::{App, Change, NamedApp, SendingApp};
pub use mailgate_storage::credentials::has_ended as credential_has_ended;
pub use mailgate_storage::email_changes::EmailChange;
pub use mailgate_storage::minted::recent::{LISTED, Recent, RecentApp, RecentWebhook};
pub use mailgate_storage::minted::{MintedApiSecret, MintedSendKey};
pub use mailgate_storage::portal_sessions::{FoundSession, PortalSession};
pub use mailgate_storage::send_keys::SendKeyRow;
pub use mailgate_storage::subscribers::{Subscriber, SubscriberChange, Suspension};
pub use mailgate_storage::suppressions::Suppression;
pub use portal::links::{MINTED as MINTED_LINK, MintError};
pub use portal::sessions::{SignInError, Visitor};
pub use portal::sign_in_mail::{SignInMail, SignInMailer};
pub use subscribers::create::CreatedSubscriber;
pub use subscribers::deletion::Deleted;
pub use subscribers::suspend::MOST_REASON;

/// The largest number of apps kept in memory: some 300 bytes each.
const KNOWN: usize = 20_000;

/// Subscribers and apps.
#[derive(Debug, Clone)]
pub struct Accounts {
    pool: PgPool,
    seal_keys: Arc<SealKeys>,
    clock: SharedClock,
    tracker: TaskTracker,
    failures: Arc<Failures>,
    held_back: Arc<HeldBack>,
    rates: Arc<Rates>,
    /// Apps that a subscriber may have without a limit of its own.
    most_apps: i64,
    request_places: RequestPlaces,
    /// Renewals in progress that continue without their clients, by subscriber.
    renewing: SharedPlaces<SubscriberId>,
    key_uses: Arc<KeyUses>,
    sessions: Arc<Sessions>,
    by_send_key: Arc<QueryCache<Vec<Vec<u8>>, SendingApp>>,
    beginning: Beginning,
    own_mail: OwnMail,
}

/// The initial state of a new subscriber.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    status: Option<SubscriptionStatus>,
    /// Whether the payment provider must be notified.
    is_billed: bool,
}

impl Beginning {
    /// Without a payment provider its subscription is simply active. With one its trial begins immediately, so that
    /// signing up doesn't wait for the provider; without a trial there is nothing until a subscription is created.
    fn new(payprov: Option<&PayprovSettings>) -> Self {
        Self {
            status: match payprov.map(|settings| settings.trial_days) {
                None => Some(SubscriptionStatus::Active),
                Some(0) => None,
                Some(_) => Some(SubscriptionStatus::Trialing),
            },
            is_billed: payprov.is_some(),
        }
    }
}

impl Accounts {
    /// The same accounts by another clock: changes have its times.
    #[must_use]
    pub fn by_clock(&self, clock: SharedClock) -> Self {
        Self {
            clock,
            ..self.clone()
        }
    }

    /// Sets which mail of its own the gateway sends; none, if this isn't called.
    #[must_use]
    pub fn sending(self, own_mail: OwnMail) -> Self {
        Self { own_mail, ..self }
    }

    /// Creates the service over a database and its sealing keys. `limits` sets how often a key may call and an address
    /// may fail to authenticate; with `payprov`, subscribers are billed. Work that must complete even if the caller is
    /// cancelled runs on `tracker`.
    #[must_use]
    pub fn new(
        pool: PgPool,
        seal_keys: Arc<SealKeys>,
        clock: SharedClock,
        limits: &Limits,
        payprov: Option<&PayprovSettings>,
        tracker: TaskTracker,
    ) -> Self {
        let by_send_key = BatchLoader::new(pool.clone(), |connection, keys| {
            Box::pin(mailgate_storage::apps::find_by_send_keys(connection, keys))
        });
        Self {
            by_send_key: Arc::new(QueryCache::new(by_send_key, KNOWN)),
            beginning: Beginning::new(payprov),
            own_mail: OwnMail::None,
            failures: Arc::new(Failures::new(limits.authentication_failures_per_minute)),
            held_back: Arc::default(),
            most_apps: limits.apps_per_subscriber.into(),
            renewing: SharedPlaces::unshared(1),
            request_places: RequestPlaces::new(pool.options().get_max_connections()),
            pool,
            seal_keys,
            clock,
            tracker,
            key_uses: Arc::default(),
            sessions: Arc::default(),
            rates: Arc::new(Rates::new(
                limits.requests_per_second,
                limits.requests_burst,
            )),
        }
    }
}
