//! The line between the gateway and Postgres, which loses answers: what the gateway said arrives and is
//! done, and the gateway never hears of it.

use std::path::PathBuf;
use std::time::Duration;

use memchr::memmem;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::database::NAME;

/// The name that Postgres gives its socket, port included.
const SOCKET: &str = ".s.PGSQL.5432";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// What Postgres answers is lost.
    Deaf,
    /// Every connection is cut at once.
    Closed,
    /// The answer to the next commit behind this statement is lost, and the line closes.
    LosesCommit(&'static str),
}

/// A line through which every connection of the gateway goes.
pub struct DatabaseLine {
    folder: TempDir,
    /// With how often the line was cut: a connection of before is gone for good.
    state: watch::Sender<(u32, State)>,
    _connections: JoinSet<()>,
}

impl DatabaseLine {
    /// A line to the Postgres whose socket lies in `server`.
    pub fn start(server: PathBuf) -> Self {
        let folder = TempDir::new().unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let (state, watched) = watch::channel((0, State::Open));
        let changed = state.clone();
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                while open.try_join_next().is_some() {}
                if watched.borrow().1 != State::Closed {
                    open.spawn(carry(near, server.join(SOCKET), changed.clone()));
                }
            }
        });
        Self {
            folder,
            state,
            _connections: connections,
        }
    }

    /// The address of the gateways' database through this line.
    pub fn url(&self) -> String {
        let folder = self.folder.path().display();
        format!("postgres://postgres@localhost:5432/{NAME}?host={folder}")
    }

    /// Loses what Postgres answers for a while, then cuts every connection; new ones are cut as well
    /// until `outage` is over.
    pub async fn lose_answers(&self, deaf: Duration, outage: Duration) {
        self.change(|(cuts, _)| (cuts, State::Deaf));
        tokio::time::sleep(deaf).await;
        self.change(|(cuts, _)| (cuts + 1, State::Closed));
        tokio::time::sleep(outage).await;
        self.change(|(cuts, _)| (cuts, State::Open));
    }

    /// From now on the first commit that stores a message is done, and nobody hears of it: the line is closed then.
    /// Waits for that moment.
    pub async fn lose_stored(&self) {
        self.lose_commit("INSERT INTO spool_chunks").await;
    }

    /// As [`DatabaseLine::lose_stored`], for the first commit behind a statement that begins so, and was not said before on
    /// its connection.
    pub async fn lose_commit(&self, behind: &'static str) {
        self.change(|(cuts, _)| (cuts, State::LosesCommit(behind)));
        let mut state = self.state.subscribe();
        let closed = state.wait_for(|(_, state)| *state == State::Closed).await;
        closed.expect("the line is there");
    }

    /// Opens a line that was closed.
    pub fn open(&self) {
        self.change(|(cuts, _)| (cuts, State::Open));
    }

    fn change(&self, to: impl FnOnce((u32, State)) -> (u32, State)) {
        self.state.send_modify(|state| *state = to(*state));
    }
}

async fn carry(mut near: UnixStream, server: PathBuf, line: watch::Sender<(u32, State)>) {
    let mut state = line.subscribe();
    let Ok(mut far) = UnixStream::connect(server).await else {
        return;
    };
    let cuts = state.borrow().0;
    let mut is_said = false;
    let (mut said, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            biased;
            changed = state.changed() => {
                if changed.is_err() || state.borrow().0 != cuts {
                    return;
                }
            }
            read = far.read(&mut answered) => {
                let count = read.unwrap_or(0);
                let is_deaf = state.borrow().1 == State::Deaf;
                if count == 0 || !is_deaf && near.write_all(&answered[..count]).await.is_err() {
                    return;
                }
            }
            read = near.read(&mut said) => {
                let count = read.unwrap_or(0);
                if count == 0 || far.write_all(&said[..count]).await.is_err() {
                    return;
                }
                // A statement's text is said once, when it is prepared.
                let lost = state.borrow().1;
                if let State::LosesCommit(statement) = lost {
                    is_said |= memmem::find(&said[..count], statement.as_bytes()).is_some();
                }
                if is_said
                    && matches!(lost, State::LosesCommit(_))
                    && memmem::find(&said[..count], b"COMMIT").is_some()
                {
                    drop(far.read(&mut answered).await);
                    line.send_modify(|state| *state = (state.0 + 1, State::Closed));
                    return;
                }
            }
        }
    }
}
