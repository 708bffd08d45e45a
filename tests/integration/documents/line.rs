//! A line between a program and the gateway, on which something happens to the first connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mailgate_sandbox::provider::SandboxProvider;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::database;

/// Ends with its value.
pub struct Line {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _running: DropGuard,
}

impl Line {
    /// The first connection breaks when the gateway has sent a message and answers.
    pub async fn that_loses_the_answer(to: SocketAddr, sandbox: &SandboxProvider) -> Self {
        let inbox = sandbox.inbox.clone();
        let before = inbox.count();
        Self::start(move |mut client, number| {
            let inbox = inbox.clone();
            async move {
                let mut gateway = TcpStream::connect(to).await?;
                if number > 1 {
                    copy_bidirectional(&mut client, &mut gateway).await?;
                    return Ok(());
                }
                let (mut from_client, mut to_client) = client.split();
                let (mut from_gateway, mut to_gateway) = gateway.split();
                let answers = async {
                    let mut piece = vec![0; 16_384];
                    loop {
                        let length = from_gateway.read(&mut piece).await?;
                        if length == 0 || inbox.count() > before {
                            return std::io::Result::Ok(());
                        }
                        to_client.write_all(&piece[..length]).await?;
                    }
                };
                tokio::select! {
                    ended = answers => ended,
                    // A client that has nothing more to say still listens.
                    ended = async {
                        copy(&mut from_client, &mut to_gateway).await?;
                        std::future::pending().await
                    } => ended,
                }
            }
        })
        .await
    }

    /// Before the second connection the subscriber has paid.
    pub async fn that_waits_for_a_payment(to: SocketAddr, database_url: &str) -> Self {
        let database_url = database_url.to_owned();
        Self::start(move |mut client, number| {
            let database_url = database_url.clone();
            async move {
                if number == 2 {
                    set_status(&database_url, "active").await;
                }
                let mut gateway = TcpStream::connect(to).await?;
                copy_bidirectional(&mut client, &mut gateway).await?;
                Ok(())
            }
        })
        .await
    }

    async fn start<Serving>(serve: impl Fn(TcpStream, usize) -> Serving + Send + 'static) -> Self
    where
        Serving: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let stop = CancellationToken::new();
        let running = stop.clone().drop_guard();
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
                // A connection that breaks is the test's own doing, or its program's.
                tokio::spawn(serve(client, number));
            }
        }));
        Self {
            address,
            connections,
            _running: running,
        }
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Gives all subscribers this status.
pub async fn set_status(database_url: &str, status: &str) {
    sqlx::query("UPDATE subscribers SET subscription_status = $1")
        .bind(status)
        .execute(&mut database::connect(database_url).await)
        .await
        .unwrap();
}
