//! The systemd integration: inherited sockets and status notifications. It has no effect without systemd.

use std::collections::HashMap;
use std::time::Duration;

use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::net::TcpListener;

use super::DaemonError;
use mailgate_server::shutdown::Shutdown;

/// Socket names (`FileDescriptorName=` in a socket unit), and the settings that they replace.
const NAMES: [(&str, &str); 6] = [
    ("http", "http.listen"),
    ("https", "http.tls_listen"),
    ("acme", "acme.http_listen"),
    ("starttls", "smtp.starttls_listen"),
    ("tls", "smtp.tls_listen"),
    ("metrics", "metrics.listen"),
];

/// Sockets passed to this process, by the setting that they replace.
#[derive(Debug, Default)]
pub struct Inherited {
    by_setting: HashMap<&'static str, TcpListener>,
}

impl Inherited {
    /// Takes the sockets passed through the environment (`LISTEN_FDS`, `LISTEN_FDNAMES`, for this process).
    ///
    /// # Errors
    ///
    /// [`DaemonError::Inherited`] for an unexpected socket.
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
                refused(
                    "FileDescriptorName must be http, https, acme, starttls, tls or metrics"
                        .to_owned(),
                )
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

/// Reports that the gateway is serving, and starts feeding the watchdog, if there is one.
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

/// Feeds the watchdog from a task on the main runtime: it stops if that runtime is stuck.
async fn live(every: Duration) {
    loop {
        tell(&[NotifyState::Watchdog]);
        tokio::time::sleep(every).await;
    }
}

/// Reports that the gateway is shutting down.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the gateway's status can't be sent to systemd");
    }
}
