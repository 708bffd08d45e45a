//! The SMTP door over real sockets: what an app's client says, what it is answered, and what of it
//! arrives at the sandbox.

mod authentication;
mod chunks;
mod content;
mod described;
mod encryption;
mod limits;
mod one_from;
mod outcomes;
mod pipelining;
mod relayed;
mod sender;
mod shutdown;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::support::gateway::{Gateway, MAILBOX};

const RECIPIENT: &str = "bob@example.com";

/// A message of the demo's mailbox, its last line without CRLF.
fn message(subject: &str) -> Vec<u8> {
    format!("From: {MAILBOX}\r\nTo: {RECIPIENT}\r\nSubject: {subject}\r\n\r\nIt works.")
        .into_bytes()
}

/// The subjects of what arrived, oldest first.
fn subjects(gateway: &Gateway) -> Vec<String> {
    let listed = gateway.sandbox.inbox.list(usize::MAX);
    let subjects = listed
        .iter()
        .rev()
        .map(|arrived| arrived.subject.clone().unwrap_or_default());
    subjects.collect()
}

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

/// The initial response of AUTH PLAIN.
fn plain(app_id: &str, send_key: &str) -> String {
    base64(&format!("\0{app_id}\0{send_key}"))
}
