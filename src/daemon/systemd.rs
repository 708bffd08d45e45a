//! What systemd gives and is told: sockets that it listens on already, and how the process does. Without
//! systemd all of it is nothing.

use std::collections::HashMap;
use std::time::Duration;

use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::net::TcpListener;

use super::DaemonError;
use mailgate_server::shutdown::Shutdown;

/// Names of sockets (`FileDescriptorName=` of a socket unit), and the settings in whose place they stand.
const NAMES: [(&str, &str); 4] = [
    ("http", "http.listen"),
    ("starttls", "smtp.starttls_listen"),
    ("tls", "smtp.tls_listen"),
    ("metrics", "metrics.listen"),
];

/// Sockets that were handed to this process, by the setting in whose place they stand.
#[derive(Debug, Default)]
pub struct Inherited {
    by_setting: HashMap<&'static str, TcpListener>,
}

impl Inherited {
    /// Takes what the environment says was handed over (`LISTEN_FDS`, `LISTEN_FDNAMES`, for this process).
    ///
    /// # Errors
    ///
    /// [`DaemonError::Inherited`] for a socket that is none of ours.
    pub fn take() -> Result<Self, DaemonError> {
        let mut sockets = ListenFd::from_env();
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut by_setting = HashMap::new();
        for number in 0..sockets.len() {
            let name = names.next().unwrap_or_default();
            let refused = |why: String| DaemonError::Inherited {
                name: name.to_owned(),
                why,
            };
            let known = NAMES.iter().find(|(known, _)| *known == name);
            let (_, setting) = known.ok_or_else(|| {
                refused("FileDescriptorName must be http, starttls, tls or metrics".to_owned())
            })?;
            let listener = sockets
                .take_tcp_listener(number)
                .and_then(|socket| socket.ok_or_else(|| std::io::ErrorKind::NotFound.into()))
                .and_then(|socket| {
                    socket.set_nonblocking(true)?;
                    TcpListener::from_std(socket)
                })
                .map_err(|error| refused(error.to_string()))?;
            if by_setting.insert(*setting, listener).is_some() {
                return Err(refused("is there twice".to_owned()));
            }
        }
        Ok(Self { by_setting })
    }

    pub(super) fn remove(&mut self, setting: &str) -> Option<TcpListener> {
        self.by_setting.remove(setting)
    }
}

/// The gateway serves. From now on the watchdog is told that it lives, where there is one.
pub fn ready(shutdown: &Shutdown) {
    tell(&[NotifyState::Ready]);
    let Some(patience) = sd_notify::watchdog_enabled().filter(|patience| !patience.is_zero())
    else {
        return;
    };
    let stop = shutdown.soft.clone();
    shutdown
        .tracker
        .spawn(async move { stop.run_until_cancelled(live(patience / 2)).await });
}

/// A task of the runtime that does all the work: it comes round as long as that one isn't stuck.
async fn live(every: Duration) {
    loop {
        tell(&[NotifyState::Watchdog]);
        tokio::time::sleep(every).await;
    }
}

/// The gateway is about to end.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the gateway's status can't be sent to systemd");
    }
}
