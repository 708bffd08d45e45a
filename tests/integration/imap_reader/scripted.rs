//! Against a server that does what a test tells it: for what no real server does on demand.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use mailgate_providers::mail::reader::MailReader;
use mailgate_providers::mail::sent_copy::Found;
use mailgate_sandbox::certificates;
use mailgate_server::tls::{self, ServerCertificate};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toml::Table;

use super::{account, failure, reader};
use crate::support::patience::deadline;
use crate::support::sought;
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

/// For a failure with these words.
fn patience(expected: &str) -> u32 {
    if expected == TOO_LONG {
        IMPATIENCE
    } else {
        PATIENCE
    }
}

#[tokio::test]
async fn greetings_that_are_none() {
    for (greeting, expected) in [
        ("* BYE [UNAVAILABLE] come back later\r\n", "come back later"),
        ("* PREAUTH you are somebody\r\n", "isn't an IMAP response"),
        ("HTTP/1.1 400 Bad Request\r\n", "isn't an IMAP response"),
        ("220 mail.example ESMTP\r\n", "isn't an IMAP response"),
        ("", TOO_LONG),
        ("* OK half a line", TOO_LONG),
    ] {
        let server = Server::start(greeting, obedient).await;
        let (kind, words) = server.failure(patience(expected)).await;
        assert_eq!(kind, "unavailable", "{greeting}");
        assert!(words.contains(expected), "{greeting}: {words}");
        // Nobody was shown the token.
        assert!(server.said().is_empty(), "{:?}", server.said());
    }
}

#[tokio::test]
async fn refused_log_ins() {
    let answers: [(&str, &str, Answer); 6] = [
        ("unavailable", "UNAVAILABLE later", |_| {
            "{tag} NO [UNAVAILABLE] later\r\n".to_owned()
        }),
        ("unavailable", "too busy", |_| {
            "* BYE too busy\r\n".to_owned()
        }),
        ("unexplained", "what?", |_| "{tag} BAD what?\r\n".to_owned()),
        ("unavailable", TOO_LONG, |_| String::new()),
        ("forbidden", "switched off", |_| {
            "{tag} NO [AUTHORIZATIONFAILED] switched off\r\n".to_owned()
        }),
        ("unexplained", "AUTHENTICATE failed.", |_| {
            "{tag} NO AUTHENTICATE failed.\r\n".to_owned()
        }),
    ];
    for (kind, expected, answer) in answers {
        let server = Server::start(GREETING, answer).await;
        let failure = server.failure(patience(expected)).await;
        assert_eq!(failure.0, kind, "{expected}");
        assert!(failure.1.contains(expected), "{expected}: {}", failure.1);
        assert_eq!(server.said().len(), 1);
    }
}

#[tokio::test]
async fn a_refusal_is_explained_before_it_is_said() {
    // With the initial response at once, and without.
    let server = Server::start(GREETING, |line| match line {
        "" => "{command} NO [AUTHENTICATIONFAILED] no\r\n".to_owned(),
        _ => "+ eyJzdGF0dXMiOiI0MDAifQ==\r\n".to_owned(),
    });
    let server = server.await;
    assert_eq!(server.failure(PATIENCE).await.0, "token refused");
    let said = server.said();
    assert!(
        said[0].starts_with("AUTHENTICATE XOAUTH2 dXNlcj1"),
        "{said:?}"
    );
    assert_eq!(said[1..], [""]);

    let server = Server::start("* OK [CAPABILITY IMAP4rev1] hi\r\n", |line| match line {
        "" => "{command} NO [AUTHENTICATIONFAILED] no\r\n".to_owned(),
        "AUTHENTICATE XOAUTH2" => "+ \r\n".to_owned(),
        _ => "+ eyJzdGF0dXMiOiI0MDAifQ==\r\n".to_owned(),
    });
    let server = server.await;
    assert_eq!(server.failure(PATIENCE).await.0, "token refused");
    let said = server.said();
    assert_eq!(said[0], "AUTHENTICATE XOAUTH2");
    assert!(said[1].starts_with("dXNlcj1"), "{said:?}");
    assert_eq!(said[2..], [""]);

    // One that asks for ever is not answered for ever.
    let server = Server::start(GREETING, |_| "+ more\r\n".to_owned()).await;
    assert_eq!(server.failure(PATIENCE).await.0, "unavailable");
    assert_eq!(server.said().len(), 2);
}

#[tokio::test]
async fn what_no_server_should_say_hurts_nobody() {
    let answers: [(&str, Answer); 7] = [
        ("isn't an IMAP response", |_| {
            "* OK ".to_owned() + &"x".repeat(5_000_000)
        }),
        ("isn't an IMAP response", |_| {
            "* SEARCH ".to_owned() + &"1 ".repeat(2_500_000)
        }),
        ("isn't an IMAP response", |_| {
            "* 1 FETCH (BODY[] {4294967295}\r\n".to_owned()
        }),
        ("isn't an IMAP response", |_| {
            format!("* 1 FETCH (BODYSTRUCTURE {}\r\n", "(".repeat(1_000_000))
        }),
        ("isn't an IMAP response", |_| "A99 OK done\r\n".to_owned()),
        (TOO_LONG, |_| "* OK still here\r\n".repeat(100_000)),
        (TOO_LONG, |_| "* 1 FETCH (BODY[] {60000000}\r\nx".to_owned()),
    ];
    for (expected, answer) in answers {
        let server = Server::start(GREETING, answer).await;
        let (kind, words) = server.failure(patience(expected)).await;
        assert_eq!(kind, "unavailable", "{words}");
        assert!(words.contains(expected), "{words}");
    }
}

#[tokio::test]
async fn of_a_flood_the_first_messages_are_read() {
    let server = Server::start(GREETING, |line| {
        if !line.starts_with("UID SEARCH") {
            return obedient(line);
        }
        let found = [80_000, 0, 40_000].map(|from: u32| {
            let uids: Vec<String> = (from..from + 40_000).map(|uid| uid.to_string()).collect();
            format!("* SEARCH {}\r\n", uids.join(" "))
        });
        found.concat() + "{tag} OK\r\n"
    });
    let server = server.await;
    let reader = server.reader();
    for (cursor, fetched, next, more) in [
        (Some("7:100"), "100,101,", "7:600", true),
        (Some("7:119999"), "119999 ", "7:120000", false),
        (None, "1,2,", "7:501", true),
    ] {
        let mail = reader
            .new_mail(&account(TOKEN), cursor, Utc::now(), deadline())
            .await
            .unwrap();
        assert_eq!((mail.cursor.as_str(), mail.more), (next, more));
        let said = server.said();
        let fetched = format!("UID FETCH {fetched}");
        assert!(
            said.iter().any(|line| line.starts_with(&fetched)),
            "{fetched}"
        );
    }
}

#[tokio::test]
async fn what_is_not_asked_for_is_passed_over() {
    // A last message that is older than the cursor, messages of nobody's asking, no UIDNEXT.
    let server = Server::start("* OK hi\r\n", |line| {
        let answer = match line {
            "EXAMINE \"INBOX\"" => {
                "* FLAGS (\\Seen)\r\n* 10 EXISTS\r\n* OK [UIDVALIDITY 7]\r\n* x y z\r\n{tag} OK\r\n"
            }
            "UID SEARCH UID 20:*" | "UID SEARCH UID *" => "* SEARCH 10\r\n{tag} OK\r\n",
            "UID SEARCH UID 5:*" => "* SEARCH 9 8 4\r\n* SEARCH 8\r\n{tag} OK\r\n",
            _ if line.starts_with("UID FETCH 8,9 (UID BODY.PEEK[") => {
                "* 2 FETCH (UID 9 BODY[HEADER.FIELDS (X)] {14}\r\nSubject: b\r\n\r\n)\r\n\
                 * 1 FETCH (UID 8 FLAGS ())\r\n* 3 EXPUNGE\r\n\
                 * 7 FETCH (UID 7 BODY[HEADER.FIELDS (X)] {14}\r\nSubject: c\r\n\r\n)\r\n\
                 * 1 FETCH (BODY[HEADER.FIELDS (X)] \"Subject: a\" UID 8)\r\n{tag} OK\r\n"
            }
            _ => return obedient(line),
        };
        answer.to_owned()
    });
    let server = server.await;
    let (reader, account) = (server.reader(), account(TOKEN));
    let look = async |cursor| {
        reader
            .new_mail(&account, cursor, Utc::now(), deadline())
            .await
            .unwrap()
    };
    let mail = look(Some("7:20")).await;
    assert!(mail.messages.is_empty() && !mail.more);
    assert_eq!(mail.cursor, "7:20");
    let mail = look(Some("7:5")).await;
    let subjects: Vec<_> = mail.messages.iter().map(|it| it.subject.as_str()).collect();
    assert_eq!(subjects, ["a", "b"]);
    assert_eq!((mail.cursor.as_str(), mail.more), ("7:10", false));
    // As none was found since, the next look begins behind the last message.
    let mail = look(None).await;
    assert_eq!((mail.cursor.as_str(), mail.more), ("7:11", false));
    let said = server.said();
    let day = (Utc::now() - TimeDelta::days(1))
        .format("UID SEARCH SINCE %-d-%b-%Y")
        .to_string();
    assert!(said.contains(&day), "{said:?}");
    assert!(
        !said.iter().any(|line| line.starts_with("SELECT")),
        "{said:?}"
    );
    assert_eq!(said.iter().filter(|line| *line == "LOGOUT").count(), 3);
}

#[tokio::test]
async fn a_look_that_ends_early_keeps_what_it_read() {
    /// A server with 300 messages that gives the first 200 well.
    fn half(line: &str, otherwise: Answer) -> String {
        if line.starts_with("UID SEARCH") {
            let found: Vec<String> = (1..=300).map(|uid: u32| uid.to_string()).collect();
            return format!("* SEARCH {}\r\n{{tag}} OK\r\n", found.join(" "));
        }
        if line.starts_with("UID FETCH 1,") {
            let each = "* 1 FETCH (UID 1 BODY[HEADER.FIELDS (X)] \"Subject: x\")\r\n";
            return format!("{each}{{tag}} OK\r\n");
        }
        if line.starts_with("UID FETCH") {
            return otherwise(line);
        }
        obedient(line)
    }
    let servers: [(u32, Answer); 3] = [
        (PATIENCE, |line| {
            half(line, |_| "{tag} NO [SERVERBUG] oh\r\n".to_owned())
        }),
        (PATIENCE, |line| half(line, |_| "* BYE\r\n".to_owned())),
        (IMPATIENCE, |line| half(line, |_| String::new())),
    ];
    for (seconds, answer) in servers {
        let server = Server::start(GREETING, answer).await;
        let reader = reader(server.port, &server.ca_file, seconds, &[]);
        let mail = reader
            .new_mail(&account(TOKEN), Some("7:1"), Utc::now(), deadline())
            .await
            .unwrap();
        assert_eq!(mail.messages.len(), 1);
        assert_eq!((mail.cursor.as_str(), mail.more), ("7:201", true));
        // And where nothing was read, it says why.
        let failed = reader
            .new_mail(&account(TOKEN), Some("7:201"), Utc::now(), deadline())
            .await;
        assert_eq!(failure(failed).0, "unavailable");
    }
}

#[tokio::test]
async fn the_mailbox_of_sent_mail() {
    // By its mark, asked for where the server can be asked; by its name.
    let servers: [(Answer, &str, Found); 3] = [
        (
            |line| {
                match line {
                "CAPABILITY" => "* CAPABILITY SPECIAL-USE LIST-EXTENDED\r\n{tag} OK\r\n".to_owned(),
                "LIST \"\" \"*\" RETURN (SPECIAL-USE)" => 
                    "* LIST () \"/\" Sent\r\n* LIST (\\Sent) \"/\" \"Gesendet \\\"x\\\"\"\r\n{tag} OK\r\n"
                        .to_owned(),
                "UID SEARCH HEADER Message-ID \"<a@b>\"" => "* SEARCH 3\r\n{tag} OK\r\n".to_owned(),
                _ => obedient(line),
            }
            },
            "EXAMINE \"Gesendet \\\"x\\\"\"",
            Found::OtherCopies,
        ),
        (
            |line| match line {
                "LIST \"\" \"*\"" => {
                    "* LIST () \"/\" Sent\r\n* LIST (\\Sent) \"/\" {2}\r\nab\r\n{tag} OK\r\n"
                        .to_owned()
                }
                _ => obedient(line),
            },
            "EXAMINE \"ab\"",
            Found::Nothing,
        ),
        (
            |line| match line {
                "LIST \"\" \"*\"" => {
                    "* LIST (\\Noselect) \".\" INBOX\r\n* LIST () \".\" INBOX.Sent\r\n{tag} OK\r\n"
                        .to_owned()
                }
                _ => obedient(line),
            },
            "EXAMINE \"INBOX.Sent\"",
            Found::Nothing,
        ),
    ];
    for (answer, opened, found) in servers {
        let server = Server::start("* OK hi\r\n", answer).await;
        let reader = server.reader();
        let looked = reader.find_sent(&account(TOKEN), sought("<a@b>")).await;
        assert_eq!(looked.unwrap(), found);
        let said = server.said();
        let examined: Vec<_> = said
            .iter()
            .filter(|line| line.starts_with("EXAMINE"))
            .collect();
        assert_eq!(examined, [opened]);
    }
    // One that is hidden, or not known as such, was not looked into.
    let server = Server::start(GREETING, obedient).await;
    let failed = server
        .reader()
        .find_sent(&account(TOKEN), sought("<a@b>"))
        .await;
    assert_eq!(failure(failed).0, "forbidden");
    // A mailbox that can't be opened was not looked into.
    let server = Server::start(GREETING, |line| match line.split(' ').next() {
        Some("LIST") => "* LIST (\\Sent) \"/\" Sent\r\n{tag} OK\r\n".to_owned(),
        Some("EXAMINE") => "{tag} NO [NOPERM] not yours\r\n".to_owned(),
        _ => obedient(line),
    });
    let server = server.await;
    let reader = server.reader();
    let failed = reader.find_sent(&account(TOKEN), sought("<a@b>")).await;
    assert_eq!(failure(failed).0, "forbidden");
}

/// A server whose inbox has two messages that may be bounces, and whose junk folder goes by its name.
fn with_bounces(line: &str) -> String {
    let report =
        "From: mailer-daemon@x.org\r\nIn-Reply-To: <m@x>\r\nX-Failed-Recipients: a@x.org\r\n\r\n";
    let header = "From: mailer-daemon@x.org\r\nX-Failed-Recipients: a@x.org\r\n\r\n";
    let fetched = |uid: u32, section: &str, text: &str| {
        format!(
            "* {uid} FETCH (UID {uid} BODY[{section}] {{{}}}\r\n{text})\r\n",
            text.len()
        )
    };
    match line {
        "LIST \"\" \"*\"" => "* LIST () \"/\" Spam\r\n{tag} OK\r\n".to_owned(),
        "UID SEARCH UID 5:*" => "* SEARCH 5 6\r\n{tag} OK\r\n".to_owned(),
        _ if line.starts_with("UID FETCH 5,6 (UID BODY.PEEK[HEADER") => {
            let headers = [5, 6].map(|uid| fetched(uid, "HEADER.FIELDS (X)", header));
            headers.concat() + "{tag} OK\r\n"
        }
        "UID FETCH 5 (UID BODY.PEEK[]<0.262144>)" => {
            "{tag} NO [SERVERBUG] it is damaged\r\n".to_owned()
        }
        "UID FETCH 6 (UID BODY.PEEK[]<0.262144>)" => {
            fetched(6, "]<0>", report).replace("]<0>]", "]<0>") + "{tag} OK\r\n"
        }
        _ => obedient(line),
    }
}

#[tokio::test]
async fn a_damaged_bounce_hides_nothing_behind_it() {
    let server = Server::start("* OK hi\r\n", with_bounces).await;
    let (reader, account) = (server.reader(), account(TOKEN));
    let mail = reader
        .new_mail(&account, Some("7:5"), Utc::now(), deadline())
        .await
        .unwrap();
    let bounced: Vec<bool> = mail
        .messages
        .iter()
        .map(|message| message.bounce.is_some())
        .collect();
    assert_eq!(bounced, [false, true]);
    // Neither is a reply.
    assert!(mail.messages.iter().all(|message| message.automatic));
    assert_eq!((mail.cursor.as_str(), mail.more), ("7:7;7:11", false));
    let said = server.said();
    assert!(said.contains(&"EXAMINE \"Spam\"".to_owned()), "{said:?}");
    assert!(
        !said
            .iter()
            .any(|line| line.starts_with("SELECT") || line.starts_with("STORE"))
    );
}

#[tokio::test]
async fn the_inbox_does_not_wait_for_the_junk() {
    let servers: [Answer; 3] = [
        |line| match line {
            "EXAMINE \"Spam\"" => "{tag} NO [NOPERM] no\r\n".to_owned(),
            _ => with_bounces(line),
        },
        |line| match line {
            "EXAMINE \"Spam\"" => "* BYE\r\n".to_owned(),
            _ => with_bounces(line),
        },
        |line| match line {
            "LIST \"\" \"*\"" => "{tag} BAD what?\r\n".to_owned(),
            _ => with_bounces(line),
        },
    ];
    for answer in servers {
        let server = Server::start("* OK hi\r\n", answer).await;
        let (reader, account) = (server.reader(), account(TOKEN));
        for (cursor, next) in [("7:5", "7:7"), ("7:5;7:9", "7:7;7:9")] {
            let mail = reader
                .new_mail(&account, Some(cursor), Utc::now(), deadline())
                .await
                .unwrap();
            assert_eq!((mail.messages.len(), mail.cursor.as_str()), (2, next));
        }
    }
}
