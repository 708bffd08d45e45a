//! The operator's commands: [`subscribers`] with their [`limits`], [`apps`], [`mailboxes`], [`queue`],
//! [`certificates`], [`check`], [`reseal`], and [`trust_clock`].

pub mod apps;
pub mod certificates;
pub mod check;
pub mod mailboxes;
mod page;
pub mod queue;
pub mod reseal;
pub mod subscribers;
mod table;
pub mod trust_clock;

use std::path::Path;

use sqlx::PgPool;

use mailgate_domain::accounts::keys::reseal::ResealError;
use mailgate_domain::accounts::{CreateError, RenewError};
use mailgate_domain::sending::queue::QueueError;
use mailgate_providers::mail::ProviderError;
use mailgate_settings::{ConfigError, OperatorSettings};
use mailgate_storage::database::pool;
use mailgate_storage::database::pool::PoolError;
use mailgate_types::ids::{LogId, SubscriberId};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The database.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A provider's settings.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The new subscriber.
    #[error("the subscriber can't be created: {0}")]
    Create(#[from] CreateError),
    /// The new secret.
    #[error("the secret can't be renewed: {0}")]
    Renew(#[from] RenewError),
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
    /// Secrets could not be resealed.
    #[error(transparent)]
    Reseal(#[from] ResealError),
    /// Sealed values that no key opens, left unchanged.
    #[error(
        "{0} sealed values can't be opened with any of seal.keys: give the key that sealed them too"
    )]
    Unopened(u64),
    /// Checks found problems, which have been printed.
    #[error("{0} of {1} checks failed")]
    Failed(usize, usize),
    /// A queued message was neither retried nor canceled.
    #[error("{0}: {1}")]
    Queue(LogId, QueueError),
    /// Some queued messages were not canceled.
    #[error("{0} messages were not canceled")]
    NotCanceled(u64),
    /// An argument.
    #[error("{0}")]
    Argument(String),
    /// A deletion that wasn't confirmed.
    #[error(
        "{id} would be deleted{}, with {belongings}. If you mean it, add --yes, and after --label exactly its label, quoted for your shell. Its owner has chosen it: {}",
        if *now { " for good" } else { ", and removed after 7 days unless it is restored" }, table::plain(label)
    )]
    Unconfirmed {
        /// The subscriber.
        id: SubscriberId,
        /// Its label, which confirms the deletion.
        label: String,
        /// Its apps and their data.
        belongings: String,
        /// Whether it is deleted permanently.
        now: bool,
    },
    /// The subscriber is already deleted.
    #[error(
        "{id} is deleted already; until {until} it can be restored: mailgate subscriber restore {id}. With --now, --yes and --label it is removed immediately"
    )]
    Deleted {
        /// The subscriber.
        id: SubscriberId,
        /// Until when it can be restored.
        until: String,
    },
    /// There is no subscriber with this id.
    #[error("there is no subscriber {0}; mailgate subscriber list shows them all")]
    NotFound(SubscriberId),
}

/// Reads the settings, connects, runs a command, and closes the connections.
async fn on_database(
    file: Option<&Path>,
    command: impl AsyncFnOnce(OperatorSettings, PgPool) -> Result<(), OperatorError>,
) -> Result<(), OperatorError> {
    let settings = mailgate_settings::load_operator(file, std::env::vars_os())?;
    mailgate_telemetry::start_logging_by(&settings.log, &settings.seal_keys);
    let pool = pool::connect(&settings.database).await?;
    let done = command(settings, pool.clone()).await;
    pool::close(&pool).await;
    done
}
