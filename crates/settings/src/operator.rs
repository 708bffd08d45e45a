//! The settings of the operator's commands, which need no listeners.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use toml::Table;

use super::{
    ConfigError, DatabaseSettings, Limits, LogSettings, MailboxSettings, PayprovSettings,
    PluginSettings, SendingSettings, database, limits, log, mailboxes, payprov, read_layers,
    read_plugins, read_seal_keys, sending,
};
use mailgate_types::seal::SealKeys;

/// The settings that the operator's commands need.
#[derive(Debug)]
pub struct OperatorSettings {
    /// The database.
    pub database: DatabaseSettings,
    /// Keys that seal secrets.
    pub seal_keys: Arc<SealKeys>,
    /// The log.
    pub log: LogSettings,
    /// Limits.
    pub limits: Limits,
    /// Calls to providers.
    pub sending: SendingSettings,
    /// Background work on connected mailboxes.
    pub mailboxes: MailboxSettings,
    /// The enabled mail providers.
    pub plugins: Vec<PluginSettings>,
    /// The payment provider; `None`: nothing is billed.
    pub payprov: Option<PayprovSettings>,
    /// The gateway's name.
    pub smtp_host: String,
}

/// Loads the settings that the operator's commands need.
///
/// # Errors
///
/// [`ConfigError`] with every problem found.
pub fn load_operator(
    file: Option<&Path>,
    environment: impl Iterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
) -> Result<OperatorSettings, ConfigError> {
    read_layers(Table::new(), file, environment, |reader| {
        let (database, seal_keys) = (database::read(reader), read_seal_keys(reader));
        let (sending, plugins) = (sending::read(reader), read_plugins(reader));
        let log = log::read(reader);
        Some(OperatorSettings {
            database,
            limits: limits::read(reader),
            mailboxes: mailboxes::read(reader),
            plugins,
            payprov: payprov::read(reader),
            smtp_host: reader.text("smtp.host"),
            seal_keys: Arc::new(seal_keys?),
            log: log?,
            sending: sending?,
        })
    })
}
