//! The sandbox's mailboxes by IMAP (RFC 9051) with implicit TLS and XOAUTH2, as far as a gateway reads them: an INBOX
//! with what came back, and an empty Sent. Nothing can be changed.

mod session;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use self::session::Session;
use super::oauth::Authorization;
use super::returned::ReturnedMail;
use mailgate_server::shutdown::Shutdown;

/// Connections at once; further ones wait.
const CONNECTIONS: usize = 1_000;

/// Longest line of a client: a command with an access token.
const LINE: u64 = 16 * 1024;

/// The time limit for a client's next line, and for taking a reply.
const PATIENCE: Duration = Duration::from_mins(1);

/// The time limit for the handshake and the login together, so that nobody holds connections who shows no token.
const LOGIN: Duration = Duration::from_secs(15);

/// The IMAP server. Clones share one state.
#[derive(Clone)]
pub(super) struct ImapServer {
    pub(super) authorization: Authorization,
    pub(super) returned: ReturnedMail,
    pub(super) tls: TlsAcceptor,
    /// Another one on each start: the messages are numbered anew.
    pub(super) uid_validity: u32,
}

impl ImapServer {
    /// Serves until `shutdown`.
    pub(super) fn spawn(self, listener: TcpListener, shutdown: &Shutdown) {
        let (soft, tracker) = (shutdown.soft.clone(), shutdown.tracker.clone());
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        shutdown.tracker.spawn(async move {
            loop {
                let Ok(permit) = Arc::clone(&connections).acquire_owned().await else {
                    return;
                };
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = soft.cancelled() => return,
                };
                let Ok((stream, _)) = accepted else {
                    // Out of file descriptors, for example.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let (server, soft) = (self.clone(), soft.clone());
                tracker.spawn(async move {
                    let _permit = permit;
                    let outcome = tokio::select! {
                        ended = server.serve(stream) => ended,
                        () = soft.cancelled() => Ok(()),
                    };
                    if let Err(error) = outcome {
                        tracing::debug!(%error, "an IMAP connection to the sandbox ended");
                    }
                });
            }
        });
    }

    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let by = Instant::now() + LOGIN;
        let stream = timeout_at(by, self.tls.accept(stream)).await??;
        let mut stream = BufReader::new(stream);
        let mut session = Session::new(self);
        let mut reply = session::greeting();
        while !session.has_logged_in() {
            reply = match timeout_at(by, turn(&mut stream, &mut session, &reply)).await?? {
                Some(reply) => reply,
                None => return Ok(()),
            };
        }
        while let Some(next) = turn(&mut stream, &mut session, &reply).await? {
            reply = next;
        }
        Ok(())
    }
}

/// Sends a reply, and reads the client's next line; `None` at the end.
async fn turn(
    stream: &mut BufReader<TlsStream<TcpStream>>,
    session: &mut Session<'_>,
    reply: &[u8],
) -> io::Result<Option<Vec<u8>>> {
    timeout(PATIENCE, stream.write_all(reply)).await??;
    timeout(PATIENCE, stream.flush()).await??;
    if session.is_over() {
        timeout(PATIENCE, stream.shutdown()).await??;
        return Ok(None);
    }
    let mut line = Vec::new();
    let mut limited = stream.take(LINE);
    timeout(PATIENCE, limited.read_until(b'\n', &mut line)).await??;
    if line.pop() != Some(b'\n') {
        return Ok(None);
    }
    Ok(Some(session.answer(&String::from_utf8_lossy(&line))))
}
