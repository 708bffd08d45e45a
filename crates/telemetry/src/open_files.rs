//! The number of files (including sockets) that this process may open, and whether it suffices for its settings.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use mailgate_settings::Settings;

/// Other open files: listeners, files, connections to the relay and the payment provider, the runtime's own.
const OTHERS: u64 = 128;

/// Raises this process's limit as far as permitted. Many systems start programs with a soft limit of 1,024, for old
/// programs that can't handle more, and a much higher hard limit.
///
/// # Errors
///
/// If the system refuses, which leaves the limit as it was.
pub fn raise() -> std::io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, raised)?;
    }
    Ok(())
}

/// The number of files that a process with these settings may need: one per accepted connection, webhook delivery and
/// database connection, and one per client for its connection to a provider.
#[must_use]
pub fn needed(settings: &Settings) -> u64 {
    let limits = &settings.limits;
    let clients = whole(limits.smtp_connections) + whole(limits.http_connections);
    let others =
        whole(settings.webhooks.concurrency) + u64::from(settings.database.max_connections);
    2 * clients + others + OTHERS
}

/// The number that this process may open, once it has raised its limit; `None`: unlimited.
#[must_use]
pub fn permitted() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// The problem and its remedy, if the limit is too low for the settings.
#[must_use]
pub fn shortage(settings: &Settings, permitted: Option<u64>) -> Option<String> {
    let (permitted, needed) = (permitted?, needed(settings));
    (permitted < needed).then(|| {
        format!(
            "this process may open {permitted} files, but limits.http_connections, limits.smtp_connections, webhooks.concurrency and database.max_connections together may need {needed}: raise LimitNOFILE in the systemd unit, ulimits.nofile in the compose file or ulimit -n in the shell to {needed}, or lower these settings"
        )
    })
}

fn whole(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX / 8)
}
