//! The provider: takes every message, counts it and forgets it. With TLS and XOAUTH2 for the gateway,
//! in clear for Postfix, and with the OAuth endpoints that a mailbox needs to be connected.

mod oauth;
mod session;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mailgate_server::tls::{self, ServerCertificate};
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub use self::oauth::COUNTS;
use self::session::Extras;
use super::child::left_alone;
use super::{Outcome, one_thread};

/// What the provider shows.
#[derive(Serialize, Deserialize)]
pub struct Job {
    /// Certificate chain (PEM).
    pub certificate: PathBuf,
    /// Its key (PEM).
    pub key: PathBuf,
    /// The address of every account.
    pub mailbox: String,
}

/// The ports where the provider listens, which is the one line that it says.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Ports {
    /// Submission with implicit TLS and XOAUTH2.
    pub submission: u16,
    /// SMTP in clear.
    pub plain: u16,
    /// OAuth, and the counts.
    pub http: u16,
}

/// Messages taken so far.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub struct Counts {
    /// By submission.
    pub submission: u64,
    /// In clear.
    pub plain: u64,
}

/// The counts as they grow.
#[derive(Default)]
struct Counters {
    submission: AtomicU64,
    plain: AtomicU64,
}

impl Counters {
    fn now(&self) -> Counts {
        Counts {
            submission: self.submission.load(Ordering::Relaxed),
            plain: self.plain.load(Ordering::Relaxed),
        }
    }
}

/// Serves until standard input ends.
pub fn run(job: &str) -> Outcome<()> {
    let job: Job = serde_json::from_str(job)?;
    one_thread()?.block_on(serve(job))
}

async fn serve(job: Job) -> Outcome<()> {
    let certificate = ServerCertificate::load(&job.certificate, &job.key)?;
    let acceptor = tls::acceptor(Arc::new(certificate))?;
    let counters = Arc::<Counters>::default();
    let submission = TcpListener::bind("127.0.0.1:0").await?;
    let plain = TcpListener::bind("127.0.0.1:0").await?;
    let http = TcpListener::bind("127.0.0.1:0").await?;
    let ports = Ports {
        submission: submission.local_addr()?.port(),
        plain: plain.local_addr()?.port(),
        http: http.local_addr()?.port(),
    };
    println!("{}", serde_json::to_string(&ports)?);

    let encrypted = |socket: TcpStream| {
        let (acceptor, counters) = (acceptor.clone(), Arc::clone(&counters));
        async move {
            let stream = acceptor.accept(socket).await?;
            session::serve(stream, Extras::Xoauth2, &counters.submission).await
        }
    };
    let clear = |socket: TcpStream| {
        let counters = Arc::clone(&counters);
        async move { session::serve(socket, Extras::None, &counters.plain).await }
    };
    let router = oauth::router(&job.mailbox, Arc::clone(&counters));
    tokio::select! {
        ended = accept(submission, encrypted) => ended,
        ended = accept(plain, clear) => ended,
        ended = axum::serve(http, router) => Ok(ended?),
        ended = left_alone() => ended,
    }
}

async fn accept<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F) -> Outcome<()>
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (socket, _) = accepted?;
                socket.set_nodelay(true)?;
                connections.spawn(serve(socket));
            }
            // However a connection ended: the messages are counted at both ends.
            Some(_) = connections.join_next() => {}
        }
    }
}
