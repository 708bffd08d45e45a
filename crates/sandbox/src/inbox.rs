//! The messages received by the sandbox mailbox provider: one folder, two files per message.
//!
//! `<id>.eml` holds the exact bytes, `<id>.json` the [`ArrivedMessage`]. The JSON file is created by a rename after the
//! bytes are written, so a message cut short by a crash has none and is skipped. Nothing is synced to disk: this is a
//! development tool. `pages` displays the messages.

mod search;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use uuid::Uuid;

use crate::mime;

pub use self::search::Found;

/// Maximum number of messages; the oldest are removed first.
const KEPT_MESSAGES: usize = 10_000;

/// The number of bytes at the beginning of a large message to search for its subject.
const SUBJECT_WITHIN: usize = 64 * 1024;

/// A received message, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivedMessage {
    /// `UUIDv7`: sorts by arrival.
    pub id: String,
    /// The mailbox that the token belongs to.
    pub mailbox: String,
    /// RFC 5321 reverse-path; empty for `<>`.
    pub envelope_from: String,
    /// The accepted RFC 5321 forward-paths.
    pub envelope_to: Vec<String>,
    /// When it was received.
    pub received_at: DateTime<Utc>,
    /// Size in bytes.
    pub size: usize,
    /// The decoded Subject header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Whether its page has been opened.
    #[serde(default)]
    pub read: bool,
}

impl ArrivedMessage {
    /// Its size and subject are still unknown.
    fn new(
        mailbox: &str,
        envelope_from: &str,
        envelope_to: &[String],
        received_at: DateTime<Utc>,
    ) -> Self {
        Self {
            id: Uuid::now_v7().to_string(),
            mailbox: mailbox.to_owned(),
            envelope_from: envelope_from.to_owned(),
            envelope_to: envelope_to.to_owned(),
            received_at,
            size: 0,
            subject: None,
            read: false,
        }
    }
}

/// The received messages. Clones share one inbox.
#[derive(Debug, Clone)]
pub struct Inbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    kept: usize,
    /// Newest first.
    index: Mutex<VecDeque<Arc<ArrivedMessage>>>,
}

impl Inbox {
    /// Opens the inbox in `directory`, which is created if missing. Blocks: it reads every description.
    ///
    /// # Errors
    /// If the folder can't be created or read.
    pub fn open(directory: &Path) -> io::Result<Self> {
        Self::open_keeping(directory, KEPT_MESSAGES)
    }

    fn open_keeping(directory: &Path, kept: usize) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension() == Some(OsStr::new("json")) {
                found.extend(load(&path).map(Arc::new));
            }
        }
        found.sort_unstable_by(|left, right| right.id.cmp(&left.id));
        let shared = Shared {
            directory: directory.to_owned(),
            kept,
            index: Mutex::new(found.into()),
        };
        shared.remove_surplus();
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Stores a message; it is in [`Inbox::list`] when this returns.
    ///
    /// # Errors
    /// If the files can't be written; nothing is listed then.
    pub async fn add(
        &self,
        mailbox: &str,
        envelope_from: &str,
        envelope_to: &[String],
        received_at: DateTime<Utc>,
        bytes: impl AsRef<[u8]> + Send + 'static,
    ) -> io::Result<Arc<ArrivedMessage>> {
        let mut message = ArrivedMessage::new(mailbox, envelope_from, envelope_to, received_at);
        self.off_thread(move |shared| {
            let bytes = bytes.as_ref();
            message.size = bytes.len();
            let beginning = bytes.get(..SUBJECT_WITHIN).unwrap_or(bytes);
            message.subject = subject(beginning);
            fs::write(shared.raw_path(&message.id), bytes)?;
            shared.describe(message)
        })
        .await
    }

    /// Begins a message that arrives in pieces, which are written to disk as they arrive.
    ///
    /// # Errors
    /// If no file can be created.
    pub async fn begin(&self) -> io::Result<Arriving> {
        let file = self
            .off_thread(|shared| NamedTempFile::new_in(&shared.directory))
            .await?;
        Ok(Arriving { file })
    }

    /// Stores a message that arrived in pieces, like [`Inbox::add`].
    ///
    /// # Errors
    /// If the files can't be written; nothing is listed then.
    pub async fn add_arrived(
        &self,
        mailbox: &str,
        envelope_from: &str,
        envelope_to: &[String],
        received_at: DateTime<Utc>,
        arriving: Arriving,
    ) -> io::Result<Arc<ArrivedMessage>> {
        let mut message = ArrivedMessage::new(mailbox, envelope_from, envelope_to, received_at);
        self.off_thread(move |shared| {
            let mut beginning = Vec::new();
            let mut file = arriving.file;
            message.size = usize::try_from(file.as_file().metadata()?.len()).unwrap_or(usize::MAX);
            file.rewind()?;
            file.as_file_mut()
                .take(SUBJECT_WITHIN as u64)
                .read_to_end(&mut beginning)?;
            message.subject = subject(&beginning);
            file.persist(shared.raw_path(&message.id))?;
            shared.describe(message)
        })
        .await
    }

    /// The newest `limit` messages, newest first.
    #[must_use]
    pub fn list(&self, limit: usize) -> Vec<Arc<ArrivedMessage>> {
        self.shared.index().iter().take(limit).cloned().collect()
    }

    /// The number of messages.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.index().len()
    }

    /// The message with this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Arc<ArrivedMessage>> {
        let index = self.shared.index();
        index.iter().find(|message| message.id == id).cloned()
    }

    /// The exact bytes of a message; `None` if there is no such message.
    ///
    /// # Errors
    /// If the file can't be read.
    pub async fn raw(&self, id: &str) -> io::Result<Option<Vec<u8>>> {
        // Only ids in the index are used as file names, so no id escapes the folder.
        let Some(message) = self.find(id) else {
            return Ok(None);
        };
        self.off_thread(move |shared| match fs::read(shared.raw_path(&message.id)) {
            Ok(bytes) => Ok(Some(bytes)),
            // It has been removed since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// The number of messages whose page hasn't been opened.
    #[must_use]
    pub fn unread(&self) -> usize {
        let index = self.shared.index();
        index.iter().filter(|message| !message.read).count()
    }

    /// Marks a message as read.
    ///
    /// # Errors
    /// If its file can't be written; it is marked until the next start.
    pub async fn mark_read(&self, id: &str) -> io::Result<()> {
        let id = id.to_owned();
        self.off_thread(move |shared| shared.mark(|message| message.id == id))
            .await
    }

    /// Marks all messages as read.
    ///
    /// # Errors
    /// If a file can't be written; all are marked until the next start.
    pub async fn mark_all_read(&self) -> io::Result<()> {
        self.off_thread(|shared| shared.mark(|_| true)).await
    }

    /// Removes a message; returns whether it existed.
    ///
    /// # Errors
    /// If a file can't be removed; the message is no longer listed anyway.
    pub async fn remove(&self, id: &str) -> io::Result<bool> {
        let id = id.to_owned();
        self.off_thread(move |shared| {
            let removed = {
                let mut index = shared.index();
                let place = index.iter().position(|message| message.id == id);
                place.and_then(|place| index.remove(place))
            };
            match removed {
                Some(message) => shared.remove(&message.id).map(|()| true),
                None => Ok(false),
            }
        })
        .await
    }

    /// Removes all messages.
    ///
    /// # Errors
    /// If a file can't be removed; no message is listed anymore anyway.
    pub async fn clear(&self) -> io::Result<()> {
        self.off_thread(|shared| {
            let removed = std::mem::take(&mut *shared.index());
            removed
                .iter()
                .map(|message| shared.remove(&message.id))
                .fold(Ok(()), io::Result::and)
        })
        .await
    }

    async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || work(&shared)).await?
    }
}

/// A message being received, on disk. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct Arriving {
    file: NamedTempFile,
}

impl Arriving {
    /// Appends the next piece.
    ///
    /// # Errors
    /// If it can't be written.
    pub async fn append(self, piece: bytes::Bytes) -> io::Result<Self> {
        tokio::task::spawn_blocking(move || {
            let mut file = self.file;
            file.write_all(&piece)?;
            Ok(Self { file })
        })
        .await?
    }
}

impl Shared {
    fn index(&self) -> MutexGuard<'_, VecDeque<Arc<ArrivedMessage>>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn raw_path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.eml"))
    }

    fn description_path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }

    fn write_description(&self, message: &ArrivedMessage) -> io::Result<()> {
        let description = serde_json::to_vec(message)?;
        let mut file = NamedTempFile::new_in(&self.directory)?;
        file.write_all(&description)?;
        file.persist(self.description_path(&message.id))?;
        Ok(())
    }

    /// Marks the messages of this kind as read.
    fn mark(&self, is_meant: impl Fn(&ArrivedMessage) -> bool) -> io::Result<()> {
        let mut marked = Vec::new();
        for message in self.index().iter_mut() {
            if !message.read && is_meant(message) {
                let read = ArrivedMessage {
                    read: true,
                    ..ArrivedMessage::clone(message)
                };
                *message = Arc::new(read);
                marked.push(Arc::clone(message));
            }
        }
        // Without the lock: there may be thousands.
        (marked.iter())
            .map(|message| self.write_mark(message))
            .fold(Ok(()), io::Result::and)
    }

    fn write_mark(&self, message: &ArrivedMessage) -> io::Result<()> {
        self.write_description(message)?;
        // Newest first.
        let is_listed = (self.index())
            .binary_search_by(|other| message.id.cmp(&other.id))
            .is_ok();
        if !is_listed {
            // It has been removed since; its description must not come back.
            fs::remove_file(self.description_path(&message.id))?;
        }
        Ok(())
    }

    /// Lists a message whose bytes are in place.
    fn describe(&self, message: ArrivedMessage) -> io::Result<Arc<ArrivedMessage>> {
        self.write_description(&message)?;
        let message = Arc::new(message);
        {
            let mut index = self.index();
            // Writers finish in any order; a newer message belongs at or near the front.
            let place = index
                .iter()
                .position(|other| other.id < message.id)
                .unwrap_or(index.len());
            index.insert(place, Arc::clone(&message));
        }
        self.remove_surplus();
        Ok(message)
    }

    fn remove_surplus(&self) {
        let surplus = {
            let mut index = self.index();
            let kept = self.kept.min(index.len());
            index.split_off(kept)
        };
        for message in surplus {
            if let Err(error) = self.remove(&message.id) {
                tracing::warn!(%error, "an old sandbox message stays on the disk");
            }
        }
    }

    fn remove(&self, id: &str) -> io::Result<()> {
        // The description first: the bytes alone don't count as a message.
        fs::remove_file(self.description_path(id)).and(fs::remove_file(self.raw_path(id)))
    }
}

/// Reads one description; `None` if it is unreadable or its bytes are missing.
fn load(path: &Path) -> Option<ArrivedMessage> {
    let message: ArrivedMessage = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let named = path.file_stem() == Some(OsStr::new(&message.id));
    (named && path.with_extension("eml").is_file()).then_some(message)
}

fn subject(bytes: &[u8]) -> Option<String> {
    let headers = mime::headers(bytes)?.into_iter();
    let mut subjects = headers.filter(|(name, _)| name.eq_ignore_ascii_case("subject"));
    let last = subjects.next_back().map(|(_, value)| value);
    last.filter(|subject| !subject.is_empty())
}
