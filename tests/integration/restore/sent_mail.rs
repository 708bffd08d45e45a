//! A provider whose sent mail holds what it was given, once the test files it.

use std::sync::{Arc, Mutex};

use mail_parser::MessageParser;
use tempfile::TempDir;
use toml::Table;

use crate::imap_reader::scripted::{GREETING, Server, obedient};
use crate::support::stand_in::StandIn;

pub struct Provider {
    pub stand_in: StandIn,
    pub plugins: Table,
    /// What is in the sent mail: its Message-ID, and the header with its log id.
    filed: Arc<Mutex<Vec<(String, String)>>>,
    _sent_mail: Server,
    _folder: TempDir,
}

impl Provider {
    pub async fn start() -> Self {
        let stand_in = StandIn::start().await;
        let filed = Arc::<Mutex<Vec<(String, String)>>>::default();
        let searched = Arc::clone(&filed);
        let sent_mail = Server::start(GREETING, move |line| {
            if line == "LIST \"\" \"*\"" {
                return "* LIST (\\Sent) \"/\" Sent\r\n{tag} OK done\r\n".to_owned();
            }
            let filed = searched.lock().unwrap();
            let found = filed.iter().position(|(id, _)| line.contains(id.as_str()));
            if let ("UID SEARCH ", Some(number)) = (&line[..line.len().min(11)], found) {
                return format!("* SEARCH {}\r\n{{tag}} OK done\r\n", number + 1);
            }
            let fetched = line.strip_prefix("UID FETCH ").and_then(|line| {
                let uid: usize = line.split(' ').next()?.parse().ok()?;
                Some((uid, &filed.get(uid - 1)?.1))
            });
            if let Some((uid, header)) = fetched {
                let length = header.len();
                return format!(
                    "* {uid} FETCH (UID {uid} BODY[HEADER.FIELDS (X-Mailgate-Id)] {{{length}}}\r\n{header})\r\n\
                     {{tag}} OK done\r\n"
                );
            }
            obedient(line)
        })
        .await;
        let folder = TempDir::new().unwrap();
        let plugins = sent_mail.plugins(&stand_in, folder.path());
        Self {
            stand_in,
            plugins,
            filed,
            _sent_mail: sent_mail,
            _folder: folder,
        }
    }

    /// The subjects of all that came, as often as it came.
    pub fn has(&self) -> Vec<String> {
        self.texts(|message| message.subject().map(str::to_owned))
    }

    /// All that came is in the sent mail now.
    pub fn file(&self) {
        *self.filed.lock().unwrap() = self.texts(|message| {
            let id = message.header_raw("X-Mailgate-Id")?.trim();
            let header = format!("X-Mailgate-Id: {id}\r\n\r\n");
            Some((format!("<{}>", message.message_id()?), header))
        });
    }

    fn texts<T>(&self, of: impl Fn(&mail_parser::Message<'_>) -> Option<T>) -> Vec<T> {
        let messages = self.stand_in.submission.messages();
        let parsed = messages.iter().map(|message| {
            let message = MessageParser::default().parse(&message.content).unwrap();
            of(&message).expect("every message has it")
        });
        parsed.collect()
    }
}
