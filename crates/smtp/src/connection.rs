//! Drives a session over a socket: bytes in, replies out, and the session's questions put to
//! whoever stands behind it.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod pace;

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use self::pace::Pace;
use super::protocol::authentication::Credentials;
use super::protocol::reply::Reply;
use super::protocol::session::{Encryption, Envelope, Event, Session, SessionSettings};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::trusted_peers::TrustedPeers;

/// What one read takes at most while commands come, and while a message does.
const COMMAND_READ: usize = 4 * 1024;
const CONTENT_READ: usize = 64 * 1024;

/// A message that is larger is taken in pieces of at least so much.
const PIECE: usize = 256 * 1024;

/// How long a client may go on without authenticating, in clear and once more under TLS.
const STRANGER: Duration = Duration::from_mins(2);

/// How long a client may take for its TLS handshake, and to take our replies.
const HANDSHAKE: Duration = Duration::from_secs(30);
const WRITE: Duration = Duration::from_mins(1);

/// What stands behind the sessions: the gateway, or the sandbox's mail provider.
pub trait Backend: Clone + Send + Sync + 'static {
    /// Who has authenticated.
    type Identity: Send + Sync;
    /// What has come of a large message.
    type Incoming: Default + Send;

    /// Checks credentials; the refusal is the reply to AUTH.
    fn authenticate(
        &self,
        credentials: Credentials,
        peer: IpAddr,
    ) -> impl Future<Output = Result<Self::Identity, Reply>> + Send;

    /// Returns when whoever has authenticated may not go on.
    fn revoked(&self, identity: &Self::Identity) -> impl Future<Output = ()> + Send;

    /// Decides on a recipient, where the session's settings ask for it.
    fn recipient(
        &self,
        identity: &Self::Identity,
        recipient: &EmailAddress,
    ) -> impl Future<Output = Result<(), Reply>> + Send;

    /// Holds room for a message that is coming in, of which `octets` are not taken yet. Where there is none, what
    /// comes of it is taken as it comes, to be dropped.
    fn has_room(&self, _: &Self::Identity, _: &mut Self::Incoming, _octets: usize) -> bool {
        true
    }

    /// Takes a piece of a large message that is still coming. What was taken is dropped when the
    /// message is refused.
    fn receive(
        &self,
        incoming: &mut Self::Incoming,
        piece: Bytes,
    ) -> impl Future<Output = std::io::Result<()>> + Send;

    /// Takes a message: its pieces, and the rest of it, which for most is all.
    fn deliver(
        &self,
        identity: &Self::Identity,
        envelope: Envelope,
        incoming: Self::Incoming,
        rest: Bytes,
    ) -> impl Future<Output = Delivered> + Send;
}

/// How a connection goes on after a message.
#[derive(Debug)]
pub enum Delivered {
    /// With this reply.
    Reply(Reply),
    /// With this reply, and the connection's end.
    ReplyAndClose(Reply),
    /// With the connection's end, unanswered.
    Cut,
}

/// What all connections of a listener share.
#[derive(Clone)]
pub struct ConnectionSettings {
    /// Of their sessions.
    pub session: Arc<SessionSettings>,
    /// Their certificate.
    pub tls: TlsAcceptor,
    /// TLS from the first byte.
    pub implicit_tls: bool,
    /// What the metrics call the listener.
    pub listener: &'static str,
    /// Balancers that say before all else whose connection it is.
    pub balancers: TrustedPeers,
    /// Time for the next command.
    pub command: Duration,
    /// Longest pause within a message.
    pub content_idle: Duration,
    /// Octets a second that a message must bring on average.
    pub minimum_rate: u32,
}

/// Why a connection ended without anybody's fault here.
enum End {
    Closed,
    StartTls,
    Failed(std::io::Error),
}

impl From<std::io::Error> for End {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Serves one connection until its client leaves, or `stop` asks for its end between two messages.
pub async fn serve<B: Backend>(
    socket: TcpStream,
    peer: IpAddr,
    settings: ConnectionSettings,
    backend: B,
    stop: CancellationToken,
) {
    let end = run(socket, peer, &settings, &backend, &stop).await;
    if let End::Failed(error) = end {
        tracing::debug!(%error, "an SMTP connection broke");
    }
}

async fn run<B: Backend>(
    mut socket: TcpStream,
    peer: IpAddr,
    settings: &ConnectionSettings,
    backend: &B,
    stop: &CancellationToken,
) -> End {
    if let Err(error) = socket.set_nodelay(true) {
        return End::Failed(error);
    }
    let session = if settings.implicit_tls {
        Session::new(Arc::clone(&settings.session), Encryption::Tls)
    } else {
        let clear = Session::new(Arc::clone(&settings.session), Encryption::Clear);
        let mut driver = Driver::new(&mut socket, clear, peer, settings, backend, stop);
        driver.greet();
        match driver.run().await {
            // What the client said in clear, and whatever it sent behind STARTTLS, is gone with the driver.
            End::StartTls => driver.session.start_tls(),
            end => return end,
        }
    };
    let handshake = tokio::select! {
        biased;
        // Nothing is in hand yet.
        () = stop.cancelled() => return End::Closed,
        handshake = timeout(HANDSHAKE, settings.tls.accept(socket)) => handshake,
    };
    let stream = match handshake {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return End::Failed(error),
        Err(_) => return End::Closed,
    };
    let mut driver = Driver::new(stream, session, peer, settings, backend, stop);
    if settings.implicit_tls {
        driver.greet();
    }
    let end = driver.run().await;
    // TLS says good-bye, so that the client can tell an end from a cut.
    if matches!(end, End::Closed) {
        drop(timeout(WRITE, driver.stream.shutdown()).await);
    }
    end
}

struct Driver<'a, S, B: Backend> {
    stream: S,
    session: Session,
    identity: Option<B::Identity>,
    /// When a client must have authenticated.
    stranger_until: Instant,
    /// The pieces taken so far, and the transaction that they are of.
    incoming: (u64, B::Incoming),
    /// How fast the message comes, while one does.
    pace: Option<Pace>,
    input: BytesMut,
    output: Vec<u8>,
    peer: IpAddr,
    settings: &'a ConnectionSettings,
    backend: &'a B,
    stop: &'a CancellationToken,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin, B: Backend> Driver<'a, S, B> {
    fn new(
        stream: S,
        session: Session,
        peer: IpAddr,
        settings: &'a ConnectionSettings,
        backend: &'a B,
        stop: &'a CancellationToken,
    ) -> Self {
        Self {
            stream,
            session,
            identity: None,
            stranger_until: Instant::now() + STRANGER,
            incoming: Default::default(),
            pace: None,
            input: BytesMut::new(),
            output: Vec::new(),
            peer,
            settings,
            backend,
            stop,
        }
    }

    fn greet(&mut self) {
        self.session.greeting().write_to(&mut self.output);
    }

    async fn run(&mut self) -> End {
        loop {
            let end = match self.session.advance(&mut self.input, &mut self.output) {
                None => self.read().await,
                Some(event) => self.act(event).await,
            };
            match end {
                Ok(None) => {}
                Ok(Some(end)) | Err(end) => return end,
            }
        }
    }

    async fn act(&mut self, event: Event) -> Result<Option<End>, End> {
        match event {
            Event::StartTls => {
                self.flush().await?;
                return Ok(Some(End::StartTls));
            }
            Event::Close => {
                self.flush().await?;
                return Ok(Some(End::Closed));
            }
            Event::Authenticate(credentials) => {
                match self.backend.authenticate(credentials, self.peer).await {
                    Ok(identity) => {
                        self.identity = Some(identity);
                        self.session.authenticated(&mut self.output);
                    }
                    Err(reply) => {
                        let event = self.session.refuse_authentication(reply, &mut self.output);
                        if event.is_some() {
                            self.flush().await?;
                            return Ok(Some(End::Closed));
                        }
                    }
                }
            }
            Event::Recipient(recipient) => {
                let answer = match &self.identity {
                    Some(identity) => self.backend.recipient(identity, &recipient).await,
                    None => Err(not_authenticated()),
                };
                self.session.answer_recipient(answer, &mut self.output);
            }
            Event::Message {
                envelope,
                content,
                transaction,
            } => {
                // Replies to what was pipelined before the message need not wait for its delivery.
                self.flush().await?;
                let incoming = std::mem::take(self.incoming_of(transaction));
                self.pace = None;
                let delivered = match &self.identity {
                    Some(identity) => {
                        let rest = Bytes::from(content);
                        self.backend
                            .deliver(identity, envelope, incoming, rest)
                            .await
                    }
                    None => Delivered::ReplyAndClose(not_authenticated()),
                };
                match delivered {
                    Delivered::Reply(reply) => {
                        self.session.answer_message(reply, &mut self.output);
                    }
                    Delivered::ReplyAndClose(reply) => {
                        self.session.answer_message(reply, &mut self.output);
                        self.flush().await?;
                        return Ok(Some(End::Closed));
                    }
                    Delivered::Cut => return Ok(Some(End::Failed(cut()))),
                }
            }
        }
        Ok(None)
    }

    /// What has come of this transaction's message; of another, whose message was refused, nothing
    /// is kept.
    fn incoming_of(&mut self, transaction: u64) -> &mut B::Incoming {
        if self.incoming.0 != transaction {
            self.incoming = (transaction, B::Incoming::default());
        }
        &mut self.incoming.1
    }

    /// How large a piece is to be, where there is room for what is kept.
    fn piece(&mut self) -> usize {
        let Some((transaction, octets)) = self.session.kept_content() else {
            return PIECE;
        };
        let mut incoming = std::mem::take(self.incoming_of(transaction));
        let has_room = (self.identity.as_ref())
            .is_some_and(|identity| self.backend.has_room(identity, &mut incoming, octets));
        self.incoming.1 = incoming;
        if has_room { PIECE } else { 1 }
    }

    async fn read(&mut self) -> Result<Option<End>, End> {
        self.flush().await?;
        let piece = self.piece();
        if let Some(piece) = self.session.take_content(piece) {
            let backend = self.backend;
            let incoming = self.incoming_of(piece.transaction);
            backend.receive(incoming, Bytes::from(piece.octets)).await?;
        }
        let in_content = self.session.is_receiving_content();
        if !in_content {
            // What was taken of a message that is refused or reset is of no use.
            self.incoming.1 = B::Incoming::default();
        }
        // A stranger's octets count as no message, and don't keep a connection open for ever.
        let is_stranger = !self.session.is_authenticated();
        let finishes = in_content && !is_stranger;
        let (limit, size) = if in_content {
            let octets = self.session.content_octets();
            let ConnectionSettings {
                content_idle,
                minimum_rate,
                ..
            } = *self.settings;
            let pace = self
                .pace
                .get_or_insert_with(|| Pace::new(content_idle, minimum_rate, octets));
            (pace.patience(octets), CONTENT_READ)
        } else {
            self.pace = None;
            (self.settings.command, COMMAND_READ)
        };
        let limit = if is_stranger {
            limit.min(
                self.stranger_until
                    .saturating_duration_since(Instant::now()),
            )
        } else {
            limit
        };
        if self.input.is_empty() && !in_content {
            // An idle connection keeps no more than a command's worth.
            self.input = BytesMut::new();
        }
        self.input.reserve(size);
        let read = async {
            tokio::select! {
                biased;
                // A message that has begun is taken to its end.
                () = self.stop.cancelled(), if !finishes => Err(Reply::new(421, "4.3.2", "Shutting down, try again later")),
                () = revoked(self.backend, self.identity.as_ref()), if !finishes => Err(Reply::new(421, "4.7.0", "The app was deleted")),
                read = timeout(limit, self.stream.read_buf(&mut self.input)) => Ok(read),
            }
        };
        let waiting_since = Instant::now();
        let read = read.await;
        if let Some(pace) = &mut self.pace {
            pace.waited(waiting_since.elapsed());
        }
        let farewell = match read {
            Ok(Ok(Ok(0))) => return Ok(Some(End::Closed)),
            Ok(Ok(Ok(_))) => return Ok(None),
            Ok(Ok(Err(error))) => return Err(End::Failed(error)),
            Ok(Err(_)) => Reply::new(421, "4.4.2", "Timeout, closing the connection"),
            Err(farewell) => farewell,
        };
        farewell.write_to(&mut self.output);
        self.flush().await?;
        Ok(Some(End::Closed))
    }

    /// All replies that have gathered, in one write.
    async fn flush(&mut self) -> Result<(), End> {
        if self.output.is_empty() {
            return Ok(());
        }
        let write = async {
            self.stream.write_all(&self.output).await?;
            self.stream.flush().await
        };
        match timeout(WRITE, write).await {
            Ok(written) => written?,
            Err(_) => return Err(End::Failed(std::io::ErrorKind::TimedOut.into())),
        }
        self.output.clear();
        Ok(())
    }
}

/// A stranger has nothing to revoke.
async fn revoked<B: Backend>(backend: &B, identity: Option<&B::Identity>) {
    match identity {
        Some(identity) => backend.revoked(identity).await,
        None => std::future::pending().await,
    }
}

/// The session lets nobody this far who has not authenticated.
fn not_authenticated() -> Reply {
    Reply::new(530, "5.7.0", "Authentication required")
}

fn cut() -> std::io::Error {
    std::io::Error::other("cut on purpose")
}

#[cfg(test)]
mod tests;
