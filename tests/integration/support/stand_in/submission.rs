//! The stand-in's submission server: a polite one that takes everything, but for the stages that a
//! test has scripted.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::support::smtp_client::Stream;

/// Where in the dialogue the server has to say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    Greeting,
    /// EHLO in clear.
    Hello,
    StartTls,
    /// EHLO under TLS.
    EncryptedHello,
    Auth,
    /// After the client's answer to a 334.
    AuthEnd,
    Mail,
    Rcpt,
    Data,
    /// The first of the message's bytes have come; says nothing unless scripted.
    Body,
    /// After the dot.
    Content,
    Rset,
}

impl Stage {
    fn usual(self) -> &'static str {
        match self {
            Self::Greeting => "220 stand-in ESMTP",
            Self::Hello => "250-stand-in\r\n250 STARTTLS",
            Self::StartTls => "220 2.0.0 Go on",
            Self::EncryptedHello => {
                "250-stand-in\r\n250-PIPELINING\r\n250-SIZE 60000000\r\n250-8BITMIME\r\n\
                 250-SMTPUTF8\r\n250 AUTH XOAUTH2"
            }
            Self::Auth => "235 2.7.0 Accepted",
            Self::AuthEnd => "535 5.7.8 Bad credentials",
            Self::Data => "354 Go on",
            Self::Content => "250 2.0.0 OK queued as 1",
            Self::Mail | Self::Rcpt | Self::Body | Self::Rset => "250 2.0.0 OK",
        }
    }
}

/// What the server does at a stage. Replies stand without their last line end; whatever follows one
/// in the text leaves in the same write.
#[derive(Debug, Clone)]
pub enum Answer {
    Reply(String),
    ReplyAndClose(String),
    Close,
    /// Says nothing, for good.
    Hang,
}

impl Answer {
    pub fn reply(text: &str) -> Self {
        Self::Reply(text.to_owned())
    }

    pub fn reply_and_close(text: &str) -> Self {
        Self::ReplyAndClose(text.to_owned())
    }

    /// The 334 with which Google and Microsoft begin the refusal of a token.
    pub fn token_refused() -> Self {
        let json = r#"{"status":"400","schemes":"Bearer","scope":"https://mail.example/"}"#;
        Self::Reply(format!("334 {}", STANDARD.encode(json)))
    }
}

/// A command line as it came, without its line end.
#[derive(Debug, Clone)]
pub struct Command {
    pub encrypted: bool,
    pub line: String,
}

/// A message that came whole, with its dot, whatever it was answered.
#[derive(Debug, Clone)]
pub struct Submitted {
    pub connection: usize,
    /// That opened the connection.
    pub token: String,
    pub recipients: Vec<String>,
    pub content: Vec<u8>,
}

#[derive(Default)]
struct Dialogues {
    next: HashMap<Stage, VecDeque<Answer>>,
    always: HashMap<Stage, Answer>,
    connections: usize,
    commands: Vec<Command>,
    answers_to_challenges: Vec<String>,
    messages: Vec<Submitted>,
    open: CancellationToken,
}

struct Shared {
    acceptor: TlsAcceptor,
    dialogues: Mutex<Dialogues>,
}

/// The running server.
pub struct SubmissionServer {
    shared: Arc<Shared>,
    port: u16,
}

impl SubmissionServer {
    pub(super) async fn start(acceptor: TlsAcceptor, servers: &mut JoinSet<()>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it has an address").port();
        let shared = Arc::new(Shared {
            acceptor,
            dialogues: Mutex::default(),
        });
        servers.spawn(accept(listener, Arc::clone(&shared)));
        Self { shared, port }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next time at `stage`; several queue up.
    pub fn once(&self, stage: Stage, answer: Answer) {
        let mut dialogues = self.dialogues();
        dialogues.next.entry(stage).or_default().push_back(answer);
    }

    /// Each time at `stage` that [`SubmissionServer::once`] says nothing of.
    pub fn always(&self, stage: Stage, answer: Answer) {
        self.dialogues().always.insert(stage, answer);
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.dialogues().connections
    }

    /// All that clients commanded so far.
    pub fn commands(&self) -> Vec<Command> {
        self.dialogues().commands.clone()
    }

    /// Commands that begin with `verb`.
    pub fn count(&self, verb: &str) -> usize {
        let commands = self.commands();
        let of_verb = |command: &&Command| command.line.starts_with(verb);
        commands.iter().filter(of_verb).count()
    }

    /// The lines with which clients answered a 334.
    pub fn answers_to_challenges(&self) -> Vec<String> {
        self.dialogues().answers_to_challenges.clone()
    }

    pub fn messages(&self) -> Vec<Submitted> {
        self.dialogues().messages.clone()
    }

    /// Closes every connection that is open.
    pub fn close_connections(&self) {
        std::mem::take(&mut self.dialogues().open).cancel();
    }

    fn dialogues(&self) -> MutexGuard<'_, Dialogues> {
        self.shared.lock()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Dialogues> {
        self.dialogues.lock().expect("nobody panics with it")
    }

    fn scripted(&self, stage: Stage) -> Option<Answer> {
        let mut dialogues = self.lock();
        let next = dialogues.next.get_mut(&stage);
        next.and_then(VecDeque::pop_front)
            .or_else(|| dialogues.always.get(&stage).cloned())
    }

    fn is_scripted(&self, stage: Stage) -> bool {
        let dialogues = self.lock();
        dialogues.always.contains_key(&stage)
            || (dialogues.next.get(&stage)).is_some_and(|next| !next.is_empty())
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut dialogues = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).expect("the socket takes it");
        let (connection, open) = {
            let mut dialogues = shared.lock();
            dialogues.connections += 1;
            (dialogues.connections, dialogues.open.clone())
        };
        let dialogue = Dialogue::new(Arc::clone(&shared), stream, connection);
        dialogues.spawn(async move {
            // However it ends, the test sees what came of it.
            tokio::select! {
                _ = dialogue.run() => {}
                () = open.cancelled() => {}
            }
        });
    }
}

struct Dialogue {
    shared: Arc<Shared>,
    stream: BufReader<Box<dyn Stream>>,
    connection: usize,
    encrypted: bool,
    token: String,
    in_transaction: bool,
    /// Those that were accepted.
    recipients: Vec<String>,
}

impl Dialogue {
    fn new(shared: Arc<Shared>, stream: TcpStream, connection: usize) -> Self {
        Self {
            shared,
            stream: BufReader::new(Box::new(stream)),
            connection,
            encrypted: false,
            token: String::new(),
            in_transaction: false,
            recipients: Vec::new(),
        }
    }

    async fn run(mut self) -> io::Result<()> {
        self.answer(Stage::Greeting).await?;
        loop {
            let line = self.line().await?;
            self.shared.lock().commands.push(Command {
                encrypted: self.encrypted,
                line: line.clone(),
            });
            let mut words = line.split(' ');
            match words.next().unwrap_or_default() {
                "EHLO" if self.encrypted => self.answer(Stage::EncryptedHello).await?,
                "EHLO" => self.answer(Stage::Hello).await?,
                "STARTTLS" => {
                    let reply = self.answer(Stage::StartTls).await?;
                    if reply.starts_with("220") {
                        self = self.encrypt().await?;
                    }
                    reply
                }
                "AUTH" => {
                    self.token = token(words.nth(1).unwrap_or_default());
                    let mut reply = self.answer(Stage::Auth).await?;
                    while reply.starts_with("334") {
                        let line = self.line().await?;
                        self.shared.lock().answers_to_challenges.push(line);
                        reply = self.answer(Stage::AuthEnd).await?;
                    }
                    reply
                }
                "MAIL" => {
                    self.recipients.clear();
                    let reply = self.answer(Stage::Mail).await?;
                    self.in_transaction = reply.starts_with("250");
                    reply
                }
                "RCPT" | "DATA" if !self.in_transaction => {
                    self.write("503 5.5.1 MAIL first").await?
                }
                "RCPT" => {
                    let reply = self.answer(Stage::Rcpt).await?;
                    if reply.starts_with("250") {
                        self.recipients.push(line);
                    }
                    reply
                }
                "DATA" if self.recipients.is_empty() && !self.shared.is_scripted(Stage::Data) => {
                    self.write("554 5.5.1 No valid recipients").await?
                }
                "DATA" => {
                    let reply = self.answer(Stage::Data).await?;
                    if reply.starts_with("354") {
                        self.content().await?;
                    }
                    reply
                }
                "RSET" => self.answer(Stage::Rset).await?,
                _ => self.write("502 5.5.1 Not here").await?,
            };
        }
    }

    /// Does what is scripted for `stage`, or says the usual; answers what was said.
    async fn answer(&mut self, stage: Stage) -> io::Result<String> {
        match self.shared.scripted(stage) {
            None => self.write(stage.usual()).await,
            Some(Answer::Reply(reply)) => self.write(&reply).await,
            Some(Answer::ReplyAndClose(reply)) => {
                self.write(&reply).await?;
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            Some(Answer::Close) => Err(io::ErrorKind::ConnectionAborted.into()),
            Some(Answer::Hang) => std::future::pending().await,
        }
    }

    async fn write(&mut self, reply: &str) -> io::Result<String> {
        let stream = self.stream.get_mut();
        stream.write_all(format!("{reply}\r\n").as_bytes()).await?;
        stream.flush().await?;
        Ok(reply.to_owned())
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    async fn encrypt(self) -> io::Result<Self> {
        let stream = self
            .shared
            .acceptor
            .accept(self.stream.into_inner())
            .await?;
        Ok(Self {
            stream: BufReader::new(Box::new(stream)),
            encrypted: true,
            ..self
        })
    }

    async fn content(&mut self) -> io::Result<()> {
        if self.shared.scripted(Stage::Body).is_some() {
            self.stream.read_u8().await?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let mut content = Vec::new();
        loop {
            let start = content.len();
            if self.stream.read_until(b'\n', &mut content).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if content[start..] == *b".\r\n" {
                content.truncate(start);
                break;
            }
            if content[start] == b'.' {
                content.remove(start);
            }
        }
        self.shared.lock().messages.push(Submitted {
            connection: self.connection,
            token: self.token.clone(),
            recipients: self.recipients.clone(),
            content,
        });
        self.answer(Stage::Content).await?;
        Ok(())
    }
}

/// The token in an XOAUTH2 response.
fn token(response: &str) -> String {
    let response = STANDARD.decode(response).unwrap_or_default();
    let response = String::from_utf8_lossy(&response).into_owned();
    let mut fields = response.split('\u{1}');
    let token = fields.find_map(|field| field.strip_prefix("auth=Bearer "));
    token.unwrap_or_default().to_owned()
}
