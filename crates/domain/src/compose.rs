//! Floor 0: composes a message (RFC 5322, MIME) from its fields. Sending it is up to other modules.
//!
//! ```text
//! multipart/mixed            if there are files
//!   multipart/alternative    if there is text besides HTML
//!     text/plain
//!     multipart/related      if the HTML displays files
//!       text/html
//!       inline file …
//!   file …
//! ```

mod attachment;
mod base64_lines;
mod body;
mod custom_header;
mod described;
mod header;
mod media_type;
mod pieces;

use std::collections::HashSet;

use chrono::{DateTime, Utc};

pub use attachment::{
    Attachment, ContentId, Filename, InvalidContentId, InvalidFilename, MOST_ATTACHMENTS,
};
pub use custom_header::{CustomHeader, HEADER_LENGTH, HEADERS_LENGTH, InvalidHeader, MOST_HEADERS};
pub use described::{OF_SENDERS, is_of_receivers, of_sender};
use mailgate_types::email_address::{EmailAddress, comparison_key};
use mailgate_types::ids::LOG_ID_HEADER;
use mailgate_types::message::Message;
pub use media_type::{InvalidMediaType, MediaType};
use pieces::Pieces;

/// The fields of a message. There is at least one body; the subject contains no line break.
#[derive(Debug, Clone)]
pub struct Fields {
    /// The sender's display name.
    pub from_name: Option<String>,
    /// The recipient.
    pub to: EmailAddress,
    /// The Cc recipients.
    pub cc: Vec<EmailAddress>,
    /// The Bcc recipients, which no header names.
    pub bcc: Vec<EmailAddress>,
    /// The Reply-To address, if it isn't the sender.
    pub reply_to: Option<EmailAddress>,
    /// Its subject.
    pub subject: String,
    /// Its text body.
    pub text: Option<String>,
    /// Its HTML body.
    pub html: Option<String>,
    /// Further headers.
    pub headers: Vec<CustomHeader>,
    /// Its files.
    pub attachments: Vec<Attachment>,
}

impl Fields {
    /// Octets of the bodies and files: no message composed of them is smaller.
    #[must_use]
    pub fn least_size(&self) -> usize {
        let bodies = [&self.text, &self.html];
        let bodies = bodies.map(|body| body.as_ref().map_or(0, String::len));
        let files = self.attachments.iter();
        let files = files.map(|file| file.content.len().div_ceil(3) * 4);
        bodies.iter().sum::<usize>() + files.sum::<usize>()
    }
}

/// A part of a message (RFC 2046).
enum Part {
    /// `text/…` with its subtype.
    Text(&'static str, String),
    /// A file with its disposition.
    File(&'static str, Attachment),
    /// `multipart/…` with its subtype.
    Multiple(&'static str, Vec<Part>),
}

/// A composed message, and its envelope data.
#[derive(Debug, Clone)]
pub struct Composed {
    /// The bytes.
    pub message: Message,
    /// Its Message-ID header, with the angle brackets.
    pub message_id: String,
    /// The recipients, deduplicated, starting with those in To, as they are written.
    pub recipients: Vec<String>,
    /// An address in the envelope or the headers isn't ASCII.
    pub smtputf8: bool,
    /// The Cc header's addresses.
    pub cc: Vec<String>,
    /// Recipients that no header names.
    pub bcc: Vec<String>,
    /// Its subject.
    pub subject: String,
    /// Whether files are attached.
    pub has_attachments: bool,
}

/// Composes the message that `from` sends at the time `at`, with our own Date and a Message-ID based on the log id
/// `id`, which must be unguessable. An address that is named more than once gets it once.
#[must_use]
pub fn compose(fields: Fields, from: &EmailAddress, at: DateTime<Utc>, id: &str) -> Composed {
    let ascii = |of: &[EmailAddress]| of.iter().map(EmailAddress::to_ascii).collect::<Vec<_>>();
    let message_id = format!("<{id}@{}>", message_id_domain(from));
    let key = |address: &EmailAddress| comparison_key(address.as_str());
    let mut known = HashSet::from([key(&fields.to)]);
    let mut new = |address: &EmailAddress| known.insert(key(address));
    let cc: Vec<EmailAddress> = fields.cc.into_iter().filter(&mut new).collect();
    let bcc: Vec<EmailAddress> = fields.bcc.into_iter().filter(&mut new).collect();

    // Written in ASCII wherever possible: whether the provider has SMTPUTF8 isn't known yet.
    let from = from.to_ascii();
    let reply_to = ascii(fields.reply_to.as_slice());
    let to = fields.to.to_ascii();
    let written_cc = ascii(&cc);
    let mut pieces = Pieces::default();
    pieces.push(&format!("Date: {}\r\n", at.to_rfc2822()));
    pieces.push(&header::from(fields.from_name.as_deref(), &from));
    pieces.push(&header::addresses("To", std::slice::from_ref(&to)));
    if !cc.is_empty() {
        pieces.push(&header::addresses("Cc", &written_cc));
    }
    if !reply_to.is_empty() {
        pieces.push(&header::addresses("Reply-To", &reply_to));
    }
    pieces.push(&header::subject(&fields.subject));
    pieces.push(&format!("Message-ID: {message_id}\r\n"));
    pieces.push(&format!("{LOG_ID_HEADER}: {id}\r\n"));
    for header in &fields.headers {
        pieces.push(&header.lines());
    }
    pieces.push("MIME-Version: 1.0\r\n");
    let content = arrange(fields.text, fields.html, fields.attachments);
    let has_attachments = matches!(&content, Part::Multiple("mixed", _));
    content.write(id, &mut pieces);
    pieces.end_line();

    let blind = ascii(&bcc);
    let everybody = || std::iter::once(&to).chain(&written_cc).chain(&blind);
    let in_headers = std::iter::once(&from).chain(&reply_to);
    let addresses = |of: &[EmailAddress]| of.iter().map(ToString::to_string).collect();
    Composed {
        message: pieces.into_message(),
        message_id,
        recipients: everybody().map(ToString::to_string).collect(),
        smtputf8: !everybody().chain(in_headers).all(EmailAddress::is_ascii),
        cc: addresses(&cc),
        bcc: addresses(&bcc),
        subject: fields.subject,
        has_attachments,
    }
}

/// Arranges bodies and files. A file with a Content-ID is placed next to the HTML that displays it; without HTML it is
/// an ordinary attachment.
fn arrange(text: Option<String>, html: Option<String>, files: Vec<Attachment>) -> Part {
    let has_html = html.is_some();
    let (inline, attached): (Vec<_>, Vec<_>) = files
        .into_iter()
        .partition(|file| has_html && file.content_id.is_some());
    let html = html.map(|html| {
        let html = Part::Text("html", html);
        let inline = inline.into_iter().map(|file| Part::File("inline", file));
        Part::several("related", html, inline)
    });
    let text = text.map(|text| Part::Text("plain", text));
    let body = match (text, html) {
        (Some(text), html) => Part::several("alternative", text, html),
        (None, Some(html)) => html,
        (None, None) => Part::Text("plain", String::new()),
    };
    let attached = attached
        .into_iter()
        .map(|file| Part::File("attachment", file));
    Part::several("mixed", body, attached)
}

impl Part {
    /// The first part itself if there are no others.
    fn several(subtype: &'static str, first: Self, others: impl IntoIterator<Item = Self>) -> Self {
        let mut others = others.into_iter().peekable();
        if others.peek().is_none() {
            return first;
        }
        Self::Multiple(subtype, std::iter::once(first).chain(others).collect())
    }

    /// Writes the part with its headers. Its content is freed as soon as it is written.
    fn write(self, id: &str, pieces: &mut Pieces) {
        match self {
            Self::Text(subtype, text) => body::write(subtype, &text, pieces),
            Self::File(disposition, file) => file.write(disposition, pieces),
            Self::Multiple(subtype, parts) => {
                // No encoded line begins like this, and the id can't be known in advance.
                let boundary = format!("=_{subtype}_{id}");
                // RFC 2387 §3.1 requires the type of the root part.
                let root = if subtype == "related" {
                    " type=\"text/html\";"
                } else {
                    ""
                };
                pieces.push(&format!(
                    "Content-Type: multipart/{subtype};{root}\r\n boundary=\"{boundary}\"\r\n"
                ));
                for part in parts {
                    pieces.push(&format!("\r\n--{boundary}\r\n"));
                    part.write(id, pieces);
                }
                pieces.push(&format!("\r\n--{boundary}--\r\n"));
            }
        }
    }
}

/// The domain of the Message-IDs that the gateway assigns: the sender's own, as receivers expect it; an
/// internationalized one isn't allowed there.
#[must_use]
pub fn message_id_domain(from: &EmailAddress) -> &str {
    if from.is_ascii() && !from.domain().starts_with('[') {
        from.domain()
    } else {
        "mailgate.invalid"
    }
}

#[cfg(test)]
mod tests;
