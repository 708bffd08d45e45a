//! Drives a session over a socket: reads bytes, writes replies, and passes the session's events to the backend.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::ready;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use super::protocol::authentication::Credentials;
use super::protocol::reply::Reply;
use super::protocol::session::{Encryption, Envelope, Event, Session, SessionSettings};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::patience::Patience;
use mailgate_types::trusted_peers::TrustedPeers;
use zeroize::Zeroize;

/// Maximum size of one read while receiving commands, and while receiving a message.
const COMMAND_READ: usize = 4 * 1024;
const CONTENT_READ: usize = 64 * 1024;

/// Minimum size of the pieces in which a large message is handed over.
const PIECE: usize = 256 * 1024;

/// How long a client may stay unauthenticated: once in plaintext, and again under TLS.
const STRANGER: Duration = Duration::from_mins(2);

/// Time limits for a client's TLS handshake, and for accepting our replies.
const HANDSHAKE: Duration = Duration::from_secs(30);
const WRITE: Duration = Duration::from_mins(1);

/// The backend of the sessions: the gateway, or the sandbox's mail provider.
pub trait Backend: Clone + Send + Sync + 'static {
    /// The authenticated user.
    type Identity: Send + Sync;
    /// The state of a large message that is being received.
    type Incoming: Default + Send;

    /// Checks credentials; the error is the reply to AUTH.
    fn authenticate(
        &self,
        credentials: Credentials,
        peer: IpAddr,
    ) -> impl Future<Output = Result<Self::Identity, Reply>> + Send;

    /// Returns when the authenticated user's access is revoked.
    fn revoked(&self, identity: &Self::Identity) -> impl Future<Output = ()> + Send;

    /// Accepts or refuses a recipient, if the session's settings ask for it.
    fn recipient(
        &self,
        identity: &Self::Identity,
        recipient: &EmailAddress,
    ) -> impl Future<Output = Result<(), Reply>> + Send;

    /// Reserves room for a message being received, with `octets` not handed over yet. If there is none, its pieces are
    /// handed over as they arrive, to be dropped.
    fn has_room(&self, _: &Self::Identity, _: &mut Self::Incoming, _octets: usize) -> bool {
        true
    }

    /// Takes a piece of a large message that is still being received. It is dropped if the message is refused.
    fn receive(
        &self,
        incoming: &mut Self::Incoming,
        piece: Bytes,
    ) -> impl Future<Output = io::Result<()>> + Send;

    /// Takes a message: the pieces so far, and the rest, which is the whole of most messages.
    fn deliver(
        &self,
        identity: &Self::Identity,
        envelope: Envelope,
        incoming: Self::Incoming,
        rest: Bytes,
    ) -> impl Future<Output = Delivered> + Send;
}

/// How a connection continues after a message.
#[derive(Debug)]
pub enum Delivered {
    /// Sends this reply.
    Reply(Reply),
    /// Sends this reply and closes the connection.
    ReplyAndClose(Reply),
    /// Closes the connection without a reply.
    Cut,
}

/// The settings common to a listener's connections.
#[derive(Clone)]
pub struct ConnectionSettings {
    /// The settings of their sessions.
    pub session: Arc<SessionSettings>,
    /// Their certificate.
    pub tls: TlsAcceptor,
    /// TLS from the first byte (implicit TLS).
    pub implicit_tls: bool,
    /// The listener's label in metrics.
    pub listener: &'static str,
    /// Load balancers that send a PROXY header first.
    pub balancers: TrustedPeers,
    /// Timeout for the next command.
    pub command: Duration,
    /// Longest pause within a message.
    pub content_idle: Duration,
    /// Minimum average rate of a message, in octets per second.
    pub minimum_rate: u32,
}

/// How a connection ended.
enum End {
    Closed,
    StartTls,
    Failed(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Serves one connection until its client disconnects, or until `stop` is cancelled and no message is being received.
pub async fn serve<B: Backend>(
    socket: TcpStream,
    peer: IpAddr,
    settings: &ConnectionSettings,
    backend: &B,
    stop: &CancellationToken,
) {
    let end = run(socket, peer, settings, backend, stop).await;
    if let End::Failed(error) = end {
        tracing::debug!(%error, "an SMTP connection broke");
    }
}

async fn run<B: Backend>(
    socket: TcpStream,
    peer: IpAddr,
    settings: &ConnectionSettings,
    backend: &B,
    stop: &CancellationToken,
) -> End {
    // Boxed, so that a connection under TLS keeps no state from before.
    let encrypted = Box::pin(encrypt(socket, peer, settings, backend, stop)).await;
    let (stream, session) = match encrypted {
        Ok(encrypted) => encrypted,
        Err(end) => return end,
    };
    let mut driver = Driver::new(stream, session, peer, settings, backend, stop);
    if settings.implicit_tls {
        driver.greet();
    }
    let end = driver.run().await;
    // TLS sends close_notify, so that the client can distinguish a close from a truncation.
    if matches!(end, End::Closed) {
        drop(timeout(WRITE, driver.stream.shutdown()).await);
    }
    end
}

/// Brings a connection to TLS, and starts its session there.
async fn encrypt<B: Backend>(
    mut socket: TcpStream,
    peer: IpAddr,
    settings: &ConnectionSettings,
    backend: &B,
    stop: &CancellationToken,
) -> Result<(Box<TlsStream<TcpStream>>, Session), End> {
    socket.set_nodelay(true)?;
    let session = if settings.implicit_tls {
        Session::new(Arc::clone(&settings.session), Encryption::Tls)
    } else {
        let clear = Session::new(Arc::clone(&settings.session), Encryption::Clear);
        let mut driver = Driver::new(&mut socket, clear, peer, settings, backend, stop);
        driver.greet();
        match driver.run().await {
            // Input in plaintext, and anything pipelined after STARTTLS, is dropped with the driver.
            End::StartTls => driver.session.start_tls(),
            end => return Err(end),
        }
    };
    let handshake = tokio::select! {
        biased;
        // No message is in progress yet.
        () = stop.cancelled() => return Err(End::Closed),
        handshake = timeout(HANDSHAKE, settings.tls.accept(socket)) => handshake,
    };
    match handshake {
        Ok(Ok(stream)) => Ok((Box::new(stream), session)),
        Ok(Err(error)) => Err(End::Failed(error)),
        Err(_) => Err(End::Closed),
    }
}

struct Driver<'a, S, B: Backend> {
    stream: S,
    session: Session,
    identity: Option<B::Identity>,
    /// The deadline for authenticating.
    stranger_until: Instant,
    /// The number of the current transaction, and the pieces of its message so far.
    incoming: (u64, B::Incoming),
    /// The patience for the message being received, if any.
    patience: Option<Patience>,
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
            patience: None,
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
                // Boxed, so that an idle connection needs no memory for a message's state.
                Some(event) => Box::pin(self.act(event)).await,
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
                // Replies to commands pipelined before the message need not wait for its delivery.
                self.flush().await?;
                let incoming = std::mem::take(self.incoming_of(transaction));
                self.patience = None;
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

    /// The state of this transaction's message; the state of another one, whose message was refused, is dropped.
    fn incoming_of(&mut self, transaction: u64) -> &mut B::Incoming {
        if self.incoming.0 != transaction {
            self.incoming = (transaction, B::Incoming::default());
        }
        &mut self.incoming.1
    }

    /// The minimum size of the next piece, if there is room for the octets kept.
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
            // The pieces of a refused or reset message are useless.
            self.incoming.1 = B::Incoming::default();
        }
        // Octets from an unauthenticated client don't count as a message, so they don't keep a connection open.
        let is_stranger = !self.session.is_authenticated();
        let finishes = in_content && !is_stranger;
        let limit = if in_content {
            let octets = self.session.content_octets();
            let ConnectionSettings {
                content_idle,
                minimum_rate,
                ..
            } = *self.settings;
            let patience = self
                .patience
                .get_or_insert_with(|| Patience::new(content_idle, minimum_rate, octets));
            patience.left(octets)
        } else {
            self.patience = None;
            self.settings.command
        };
        let limit = if is_stranger {
            limit.min(
                self.stranger_until
                    .saturating_duration_since(Instant::now()),
            )
        } else {
            limit
        };
        if in_content {
            self.input.reserve(CONTENT_READ);
        } else if self.input.is_empty() {
            // An idle connection keeps no buffer.
            self.input = BytesMut::new();
        }
        let read = async {
            tokio::select! {
                biased;
                // A message that has begun is received to its end.
                () = self.stop.cancelled(), if !finishes => Err(Reply::new(421, "4.3.2", "Shutting down, try again later")),
                () = revoked(self.backend, self.identity.as_ref()), if !finishes => Err(Reply::new(421, "4.7.0", "The app was deleted")),
                read = timeout(limit, receive(&mut self.stream, &mut self.input, in_content)) => Ok(read),
            }
        };
        let waiting_since = Instant::now();
        let read = read.await;
        if let Some(patience) = &mut self.patience {
            patience.waited(waiting_since.elapsed());
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

    /// Writes all pending replies together.
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
            Err(_) => return Err(End::Failed(io::ErrorKind::TimedOut.into())),
        }
        // An idle connection keeps no buffer.
        self.output = Vec::new();
        Ok(())
    }
}

/// Reads available input; in the middle of a message, directly into `input`. The buffer for commands is allocated only
/// when they arrive, so that an idle connection has none.
async fn receive<S: AsyncRead + Unpin>(
    stream: &mut S,
    input: &mut BytesMut,
    in_content: bool,
) -> io::Result<usize> {
    if in_content {
        return stream.read_buf(input).await;
    }
    poll_fn(|context| {
        let mut space = [MaybeUninit::uninit(); COMMAND_READ];
        let mut read = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut *stream).poll_read(context, &mut read))?;
        input.extend_from_slice(read.filled());
        let count = read.filled().len();
        // It may have been a password.
        read.filled_mut().zeroize();
        Ok(count).into()
    })
    .await
}

/// An unauthenticated client has nothing to revoke.
async fn revoked<B: Backend>(backend: &B, identity: Option<&B::Identity>) {
    match identity {
        Some(identity) => backend.revoked(identity).await,
        None => std::future::pending().await,
    }
}

/// The session doesn't let unauthenticated clients get this far.
fn not_authenticated() -> Reply {
    Reply::new(530, "5.7.0", "Authentication required")
}

fn cut() -> io::Error {
    io::Error::other("cut on purpose")
}

#[cfg(test)]
mod tests;
