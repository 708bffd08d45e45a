//! Against a server that does what a test tells it: for what no real server does on demand.

mod junk;
mod log_in;
mod new_mail;
mod sent_mail;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chrono::Utc;
use mailgate_providers::mail::reader::MailReader;
use mailgate_sandbox::certificates;
use mailgate_server::tls::{self, ServerCertificate};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toml::Table;

use super::{account, failure, reader};
use crate::support::patience::deadline;
use crate::support::stand_in::StandIn;

/// In the one token that is shown.
const TOKEN: &str = "token-of-the-tests";

/// Seconds that a stage may take where none should; and where the server is to be waited for in vain.
const PATIENCE: u32 = 20;
const IMPATIENCE: u32 = 2;
const TOO_LONG: &str = "took too long";

/// What the server says to a line; `{tag}` in it becomes the tag. Where it says nothing it keeps
/// still, and lets the client wait.
pub type Answer = fn(&str) -> String;

pub struct Server {
    pub(super) port: u16,
    pub(super) ca_file: PathBuf,
    /// What clients said, without the tags.
    said: Arc<Mutex<Vec<String>>>,
    _folder: TempDir,
    _tasks: JoinSet<()>,
}

impl Server {
    /// What it says to a line is as with [`Answer`].
    pub async fn start(
        greeting: &'static str,
        mut answer: impl FnMut(&str) -> String + Send + 'static,
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let files = certificates::ensure(folder.path(), &[], Utc::now()).unwrap();
        let certificate = ServerCertificate::load(&files.certificate, &files.key).unwrap();
        let acceptor = tls::acceptor(Arc::new(certificate)).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // One client at a time, each to its end.
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut stream = BufStream::new(stream);
                let mut reply = greeting.to_owned();
                loop {
                    let written = stream.write_all(reply.as_bytes()).await;
                    if written.is_err() || stream.flush().await.is_err() {
                        break;
                    }
                    let mut line = String::new();
                    if !matches!(stream.read_line(&mut line).await, Ok(1..)) {
                        break;
                    }
                    let line = line.trim_end();
                    let (tag, command) = match line.split_once(' ') {
                        Some((tag, command)) if tag.starts_with('A') && tag.len() < 4 => {
                            (tag, command)
                        }
                        _ => ("", line),
                    };
                    heard.lock().unwrap().push(command.to_owned());
                    reply = answer(command).replace("{tag}", tag);
                    if tag.is_empty() {
                        // The tag of the command that the line belongs to.
                        reply = reply.replace("{command}", "A1");
                    }
                }
            }
        });
        Self {
            port,
            ca_file: files.ca,
            said,
            _folder: folder,
            _tasks: tasks,
        }
    }

    /// Settings of a plugin that sends by a stand-in, and reads here. `folder` is for the certificates of both.
    pub fn plugins(&self, stand_in: &StandIn, folder: &Path) -> Table {
        let mut plugins = stand_in.plugins();
        let plugin = plugins["plugin_b"].as_table_mut().unwrap();
        let authorities = folder.join("authorities.pem");
        let mut both = std::fs::read(plugin["ca_file"].as_str().unwrap()).unwrap();
        both.extend(std::fs::read(&self.ca_file).unwrap());
        std::fs::write(&authorities, both).unwrap();
        for (name, value) in [
            ("ca_file", authorities.display().to_string()),
            ("imap_host", "localhost".to_owned()),
            ("keeps_sent_mail", "yes".to_owned()),
        ] {
            plugin.insert(name.to_owned(), value.into());
        }
        plugin.insert("imap_port".to_owned(), i64::from(self.port).into());
        plugins
    }

    fn reader(&self) -> Arc<dyn MailReader> {
        reader(self.port, &self.ca_file, PATIENCE, &[])
    }

    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// The look that ends in an error, within the time that the settings give: `seconds` for each
    /// stage.
    async fn failure(&self, seconds: u32) -> (&'static str, String) {
        let started = Instant::now();
        let reader = reader(self.port, &self.ca_file, seconds, &[]);
        let look = reader
            .new_mail(&account(TOKEN), None, Utc::now(), deadline())
            .await;
        let longest = Duration::from_secs(5) * seconds;
        assert!(started.elapsed() < longest + Duration::from_secs(2));
        let (kind, words) = failure(look);
        assert!(!words.contains(TOKEN), "{words}");
        assert!(words.len() < 1_000, "{words}");
        (kind, words)
    }
}

pub const GREETING: &str = "* OK [CAPABILITY IMAP4rev1 AUTH=XOAUTH2 SASL-IR] hi\r\n";

/// An obedient server whose inbox has ten messages, but not what `answer` says otherwise.
pub fn obedient(command: &str) -> String {
    let answer = match command.split(' ').next().unwrap_or_default() {
        "CAPABILITY" => "* CAPABILITY IMAP4rev1\r\n{tag} OK done\r\n",
        "EXAMINE" => {
            "* 10 EXISTS\r\n* OK [UIDVALIDITY 7] ok\r\n* OK [UIDNEXT 11] ok\r\n{tag} OK done\r\n"
        }
        "LOGOUT" => "* BYE\r\n{tag} OK done\r\n",
        "UID" if command.starts_with("UID SEARCH") => "* SEARCH\r\n{tag} OK done\r\n",
        _ => "{tag} OK done\r\n",
    };
    answer.to_owned()
}
