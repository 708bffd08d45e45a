//! A TCP line that can be slow, lossy, silent or cut. The kernels of test machines often lack netem; what loss makes
//! of a TCP connection, pauses until the peer sends again, is made here.

use std::net::SocketAddr;
use std::time::Duration;

use rand::RngExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The first retransmission of a lost segment comes after about as long.
const RETRANSMISSION: Duration = Duration::from_millis(200);

/// More is said at once only of a message: neither a greeting of TLS nor a token is as long.
const COMMAND_BYTES: usize = 700;

/// What a line does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum State {
    Open,
    /// Whatever is sent arrives so much later.
    Slow(Duration),
    /// A message arrives so much later, and its answer with it, even if its sender is gone by then.
    SlowMessages(Duration),
    /// This part of what is sent is lost, and comes again later and later.
    Lossy(f64),
    /// Nothing arrives any more, and nobody is told.
    Silent,
    /// The answers are lost.
    Deaf,
    /// Connections are closed.
    Cut,
}

/// A line to one server. Ends when it is dropped.
pub struct Line {
    address: SocketAddr,
    /// With how often it was cut: a connection of before is gone for good.
    state: watch::Sender<(u32, State)>,
    _connections: JoinSet<()>,
}

impl Line {
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (state, watched) = watch::channel((0, State::Open));
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                while open.try_join_next().is_some() {}
                if watched.borrow().1 != State::Cut {
                    open.spawn(carry(near, server, watched.clone()));
                }
            }
        });
        Self {
            address,
            state,
            _connections: connections,
        }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn set(&self, to: State) {
        self.state.send_modify(|(cuts, state)| {
            *cuts += u32::from(to == State::Cut);
            *state = to;
        });
    }
}

async fn carry(near: TcpStream, server: SocketAddr, mut line: watch::Receiver<(u32, State)>) {
    let Ok(far) = TcpStream::connect(server).await else {
        return;
    };
    for stream in [&near, &far] {
        drop(stream.set_nodelay(true));
    }
    let cuts = line.borrow().0;
    let (near, far) = (near.into_split(), far.into_split());
    let there = pass(near.0, far.1, line.clone(), false);
    let back = pass(far.0, near.1, line.clone(), true);
    tokio::select! {
        () = there => {}
        () = back => {}
        _ = line.wait_for(|(now, _)| *now != cuts) => {}
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut line: watch::Receiver<(u32, State)>,
    are_answers: bool,
) {
    let mut space = vec![0; 32 * 1024];
    while let Ok(count @ 1..) = from.read(&mut space).await {
        let state = line.borrow_and_update().1;
        match state {
            State::Slow(delay) => tokio::time::sleep(delay).await,
            State::SlowMessages(delay) if !are_answers && count > COMMAND_BYTES => {
                tokio::time::sleep(delay).await;
            }
            State::Lossy(part) => {
                let mut pause = RETRANSMISSION;
                while rand::random_bool(part) {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
            }
            // It stays lost: the connection is of no use from here on, and is cut afterwards.
            State::Silent => continue,
            State::Deaf if are_answers => continue,
            State::Open | State::SlowMessages(_) | State::Deaf | State::Cut => {}
        }
        if to.write_all(&space[..count]).await.is_err() {
            return;
        }
    }
}

/// Some delay for [`State::Slow`].
pub fn some_delay(random: &mut impl rand::Rng) -> State {
    State::Slow(Duration::from_millis(random.random_range(20..150)))
}
