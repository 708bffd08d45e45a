//! Log lines.

use super::reader::Reader;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// For machines.
    Json,
}

/// How mail addresses, and those of the audit trail's clients, stand in log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogAddresses {
    /// As they are.
    Plain,
    /// Hashed under a key derived from the first sealing key.
    Hashed,
}

/// What log lines are written with.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// How they look.
    pub format: LogFormat,
    /// How addresses stand there.
    pub addresses: LogAddresses,
    /// What is logged.
    pub filter: String,
}

/// `None` only where the reader has a problem to tell.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<LogSettings> {
    let format = reader.choice(
        "log.format",
        &[("pretty", LogFormat::Pretty), ("json", LogFormat::Json)],
    );
    let addresses = reader.choice(
        "log.addresses",
        &[
            ("plain", LogAddresses::Plain),
            ("hashed", LogAddresses::Hashed),
        ],
    );
    let filter = reader.text("log.filter");
    if let Err(error) = tracing_subscriber::EnvFilter::try_new(&filter) {
        reader.problem("log.filter", error.to_string());
    }
    Some(LogSettings {
        format: format?,
        addresses: addresses?,
        filter,
    })
}
