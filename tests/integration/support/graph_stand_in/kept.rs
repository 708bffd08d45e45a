//! A message that the stand-in keeps, and its files.

use serde_json::Value;

/// A file at a message.
#[derive(Debug, Clone)]
pub struct File {
    /// What was said of it.
    pub fields: Value,
    pub content: Vec<u8>,
    /// In how many pieces it came; 0 where it came at once.
    pub pieces: usize,
}

/// A message, as a draft or sent.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    pub message_id: String,
    /// As it was handed over, where it was handed over whole.
    pub mime: Vec<u8>,
    /// The fields, where it was put together.
    pub fields: Value,
    pub files: Vec<File>,
}

impl Kept {
    /// The message, as far as its header goes where it was put together.
    pub(super) fn in_mime(&self) -> Vec<u8> {
        if !self.mime.is_empty() {
            return self.mime.clone();
        }
        let headers = self.fields["internetMessageHeaders"].as_array();
        let lines = headers.into_iter().flatten().map(|header| {
            let text = |name: &str| header[name].as_str().expect("text").to_owned();
            format!("{}: {}\r\n", text("name"), text("value"))
        });
        lines.chain(["\r\n".to_owned()]).collect::<String>().into()
    }
}

/// The id of a sent message.
pub(super) fn sent_id(number: usize) -> String {
    format!("AAMkAGI1AAAs={number}")
}

/// Which of the sent messages has this id.
pub(super) fn sent_number(id: &str) -> Option<usize> {
    id.strip_prefix("AAMkAGI1AAAs=")?.parse().ok()
}
