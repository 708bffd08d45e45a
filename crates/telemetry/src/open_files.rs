//! How many files, sockets among them, this process may open, and whether that is enough for its settings.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use mailgate_settings::Settings;

/// What else is open: listeners, files, connections to the relay and the payment provider, the runtime's own.
const OTHERS: u64 = 128;

/// Raises the limit of this process as far as it may. Many systems start programs with 1,024, for old ones that can't
/// handle more, and permit many more to those that ask.
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

/// How many files a process with these settings may need: one for each connection that it accepts, delivers a webhook
/// by, or has to the database, and one to a provider for what each client is sending.
#[must_use]
pub fn needed(settings: &Settings) -> u64 {
    let limits = &settings.limits;
    let clients = whole(limits.smtp_connections) + whole(limits.http_connections);
    let others =
        whole(settings.webhooks.concurrency) + u64::from(settings.database.max_connections);
    2 * clients + others + OTHERS
}

/// How many this process may open, once it has raised its limit: `None` if there is none.
#[must_use]
pub fn permitted() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// What is wrong, if so few are permitted that the settings' limits can't be reached, and what to do.
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
