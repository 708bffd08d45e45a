//! Full-text search.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mail_parser::{MimeHeaders as _, PartType};

use super::{ArrivedMessage, Inbox, Shared};
use crate::mime;

/// The number of bytes to search, from the beginning of a message.
const SEARCHED_BYTES: u64 = 1024 * 1024;

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Newest first.
    pub messages: Vec<Arc<ArrivedMessage>>,
    /// The number of messages searched.
    pub searched: usize,
    /// Whether all messages were searched, or enough found.
    pub is_complete: bool,
}

impl Inbox {
    /// The newest `limit` messages with all of these words, in any case, in envelope, headers, text or attachments'
    /// names. Stops after `patience` with the results so far.
    ///
    /// # Errors
    /// If a file can't be read.
    pub async fn search(&self, words: &str, limit: usize, patience: Duration) -> io::Result<Found> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        self.off_thread(move |shared| search(shared, &words, limit, patience))
            .await
    }
}

fn search(
    shared: &Shared,
    words: &[String],
    limit: usize,
    patience: Duration,
) -> io::Result<Found> {
    let began = Instant::now();
    let all: Vec<Arc<ArrivedMessage>> = shared.index().iter().cloned().collect();
    let mut found = Found {
        messages: Vec::new(),
        searched: 0,
        is_complete: true,
    };
    for message in all {
        if found.messages.len() == limit {
            break;
        }
        if began.elapsed() >= patience {
            found.is_complete = false;
            break;
        }
        found.searched += 1;
        if has(shared, &message, words)? {
            found.messages.push(message);
        }
    }
    Ok(found)
}

fn has(shared: &Shared, message: &ArrivedMessage, words: &[String]) -> io::Result<bool> {
    // The list without a search.
    if words.is_empty() {
        return Ok(true);
    }
    let envelope = [
        message.mailbox.as_str(),
        &message.envelope_from,
        message.subject.as_deref().unwrap_or_default(),
        &message.envelope_to.join(" "),
    ]
    .join(" ")
    .to_lowercase();
    let missing: Vec<&String> = words
        .iter()
        .filter(|word| !envelope.contains(*word))
        .collect();
    // Most searches are for addresses and subjects, which need no file access.
    if missing.is_empty() {
        return Ok(true);
    }
    let mut bytes = Vec::new();
    match File::open(shared.raw_path(&message.id)) {
        Ok(file) => file.take(SEARCHED_BYTES).read_to_end(&mut bytes)?,
        // It has been removed since.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let content = content(&bytes);
    Ok(missing.into_iter().all(|word| content.contains(word)))
}

/// Headers, text and attachments' names, in lower case.
fn content(bytes: &[u8]) -> String {
    let mut content = String::new();
    for (name, value) in mime::headers(bytes).unwrap_or_default() {
        content.extend([&name, ": ", &value, "\n"]);
    }
    let readable = mime::Readable::new(bytes);
    let message = readable.parse();
    for part in message.iter().flat_map(|message| &message.parts) {
        if let PartType::Text(text) | PartType::Html(text) = &part.body {
            content.extend([text, "\n"]);
        }
        content.extend(part.attachment_name());
    }
    mime::restored(&content).to_lowercase()
}
