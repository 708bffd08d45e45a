//! A line to a mail provider that carries nothing until the test lets it.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The line; ends when it is dropped.
pub struct HeldLine {
    port: u16,
    is_open: watch::Sender<bool>,
    accepted: watch::Receiver<usize>,
    _connections: JoinSet<()>,
}

impl HeldLine {
    pub async fn start(provider: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_open, opened) = watch::channel(false);
        let (count, accepted) = watch::channel(0);
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut carried = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                count.send_modify(|count| *count += 1);
                let mut opened = opened.clone();
                carried.spawn(async move {
                    if opened.wait_for(|is_open| *is_open).await.is_ok()
                        && let Ok(mut far) = TcpStream::connect(provider).await
                    {
                        drop(copy_bidirectional(&mut near, &mut far).await);
                    }
                });
            }
        });
        Self {
            port,
            is_open,
            accepted,
            _connections: connections,
        }
    }

    pub fn port(&self) -> String {
        self.port.to_string()
    }

    /// Waits until somebody waits for the provider's greeting.
    pub async fn waited_at(&self) {
        let mut accepted = self.accepted.clone();
        accepted.wait_for(|count| *count > 0).await.unwrap();
    }

    /// Carries from now on.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }
}
