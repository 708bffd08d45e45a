//! The settings of the log.

use super::reader::Reader;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// For machines.
    Json,
}

/// How email addresses, and client addresses of the audit trail, appear in log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogAddresses {
    /// Unchanged.
    Plain,
    /// Hashed under a key derived from the first sealing key.
    Hashed,
}

/// The settings of the log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// The format.
    pub format: LogFormat,
    /// How addresses appear.
    pub addresses: LogAddresses,
    /// The filter.
    pub filter: String,
}

/// `None` only if the reader has recorded a problem.
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
