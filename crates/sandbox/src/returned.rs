//! What comes back to a sender's mailbox: bounces (RFC 3464) and replies; kept in memory, and read by IMAP.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use mail_parser::MessageParser;
use uuid::Uuid;

use crate::mime::{fields, header, headers};

/// Messages of one mailbox; the oldest are removed first.
const KEPT: usize = 500;

/// Bytes of all mailboxes' messages; the oldest are removed first.
const BYTES: usize = 64 * 1024 * 1024;

/// Mailboxes that have had messages.
const MAILBOXES: usize = 10_000;

/// Bytes of a message's headers that a bounce returns.
const RETURNED_BYTES: usize = 64 * 1024;

/// Recipients that a bounce reports.
const REPORTED: usize = 100;

/// Characters of a subject that a reply repeats.
const SUBJECT: usize = 200;

/// A message in a mailbox.
#[derive(Debug, Clone)]
pub(crate) struct Returned {
    pub(crate) uid: u32,
    pub(crate) bytes: Bytes,
}

#[derive(Debug, Default)]
struct Folder {
    last_uid: u32,
    messages: VecDeque<Returned>,
}

#[derive(Debug, Default)]
struct Folders {
    by_mailbox: HashMap<String, Folder>,
    /// In which mailboxes the messages are, oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

impl Folders {
    fn remove_oldest_of(&mut self, mailbox: &str) {
        let folder = self.by_mailbox.get_mut(mailbox);
        if let Some(oldest) = folder.and_then(|folder| folder.messages.pop_front()) {
            self.bytes -= oldest.bytes.len();
        }
    }
}

/// The mailboxes. Clones share one state.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReturnedMail(Arc<Mutex<Folders>>);

impl ReturnedMail {
    /// Puts a message into a mailbox.
    pub(crate) fn add(&self, mailbox: &str, bytes: Vec<u8>) {
        let mut folders = self.folders();
        let name = mailbox.to_ascii_lowercase();
        let known = &mut folders.by_mailbox;
        if known.len() >= MAILBOXES && !known.contains_key(&name) {
            tracing::warn!("the sandbox keeps nothing for yet another mailbox");
            return;
        }
        let folder = known.entry(name.clone()).or_default();
        folder.last_uid += 1;
        let uid = folder.last_uid;
        let is_full = folder.messages.len() == KEPT;
        if is_full {
            folders.remove_oldest_of(&name);
            let place = folders.order.iter().position(|held| *held == name);
            place.and_then(|place| folders.order.remove(place));
        }
        folders.bytes += bytes.len();
        if let Some(folder) = folders.by_mailbox.get_mut(&name) {
            folder.messages.push_back(Returned {
                uid,
                bytes: bytes.into(),
            });
        }
        folders.order.push_back(name);
        while folders.bytes > BYTES
            && let Some(oldest) = folders.order.pop_front()
        {
            folders.remove_oldest_of(&oldest);
        }
    }

    /// A mailbox's messages, oldest first, and the UID of the next one.
    pub(crate) fn of(&self, mailbox: &str) -> (Vec<Returned>, u32) {
        let folders = self.folders();
        match folders.by_mailbox.get(&mailbox.to_ascii_lowercase()) {
            Some(folder) => (
                folder.messages.iter().cloned().collect(),
                folder.last_uid + 1,
            ),
            None => (Vec::new(), 1),
        }
    }

    fn folders(&self) -> MutexGuard<'_, Folders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bounce of a message, of which the beginning is enough, to all of its recipients.
pub(crate) fn bounce(
    mailbox: &str,
    recipients: &[String],
    original: &[u8],
    now: DateTime<Utc>,
) -> Vec<u8> {
    let boundary = Uuid::now_v7().simple().to_string();
    let reports = recipients.iter().take(REPORTED).map(|recipient| {
        format!(
            "\r\nFinal-Recipient: rfc822; {recipient}\r\nAction: failed\r\nStatus: 5.1.1\r\n\
             Diagnostic-Code: smtp; 550 5.1.1 No such user here (sandbox)\r\n"
        )
    });
    let reports: Vec<String> = reports.collect();
    let reports = reports.concat();
    let mut bytes = format!(
        "Return-Path: <>\r\nFrom: Mail Delivery System <mailer-daemon@sandbox.example>\r\nTo: <{mailbox}>\r\n\
         Subject: Undelivered Mail Returned to Sender\r\nDate: {}\r\nMessage-ID: <{boundary}@sandbox.example>\r\n\
         Auto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=\"{boundary}\"\r\n\r\n\
         --{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\
         The message was accepted, but it can't be delivered: there is no such user.\r\n\r\n\
         --{boundary}\r\nContent-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; sandbox.example\r\n{reports}\r\n\
         --{boundary}\r\nContent-Type: text/rfc822-headers\r\n\r\n",
        now.to_rfc2822(),
    )
    .into_bytes();
    bytes.extend_from_slice(head(original));
    bytes.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    bytes
}

/// The answer of a message's first recipient; `None` if the message has no Message-ID to answer to.
pub(crate) fn reply(
    mailbox: &str,
    recipients: &[String],
    original: &[u8],
    now: DateTime<Utc>,
) -> Option<Vec<u8>> {
    let original = head(original);
    let parsed = MessageParser::new().parse_headers(original)?;
    let answered = parsed.message_id()?;
    let from = recipients.first()?;
    let subject: String = (headers(original)?.into_iter())
        .find(|(name, _)| name.eq_ignore_ascii_case("subject"))
        .map(|(_, value)| value)
        .unwrap_or_default()
        .chars()
        .filter(|letter| letter.is_ascii() && !letter.is_control())
        .take(SUBJECT)
        .collect();
    let reference = fields(original, |name| name == "references");
    // Whatever was folded stays folded; RFC 5322 §3.6.4 adds the answered one at its end.
    let reference = String::from_utf8_lossy(&reference);
    let earlier = (reference.trim_end().split_once(':')).map_or("", |(_, ids)| ids.trim());
    let earlier = if earlier.is_empty() {
        String::new()
    } else {
        format!("{earlier}\r\n ")
    };
    let id = Uuid::now_v7().simple();
    Some(
        format!(
            "Return-Path: <{from}>\r\nFrom: <{from}>\r\nTo: <{mailbox}>\r\nSubject: Re: {subject}\r\nDate: {}\r\n\
             Message-ID: <{id}@sandbox.example>\r\nIn-Reply-To: <{answered}>\r\nReferences: {earlier}<{answered}>\r\n\
             MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\
             Thank you, this has arrived.\r\n",
            now.to_rfc2822(),
        )
        .into_bytes(),
    )
}

/// The header of a message, up to the limit, without the empty line.
fn head(original: &[u8]) -> &[u8] {
    let header = header(original);
    let Some(beginning) = header.get(..RETURNED_BYTES) else {
        return header;
    };
    let end = memchr::memrchr(b'\n', beginning).map_or(0, |end| end + 1);
    &beginning[..end]
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const MAIL: &[u8] = b"From: a@x.test\r\nMessage-ID: <m1@x.test>\r\nReferences: <m0@x.test>\r\n\
        Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe=0D=0ABcc:?= you\r\n\r\nMessage-ID: <body@x.test>\r\n";

    #[test]
    fn a_bounce_returns_the_header_and_a_reply_answers_it() {
        let to = ["b@y.test".to_owned(), "c@y.test".to_owned()];
        let bytes = bounce("a@x.test", &to, MAIL, DateTime::UNIX_EPOCH);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("Final-Recipient: rfc822; c@y.test\r\nAction: failed"));
        assert!(text.contains("Message-ID: <m1@x.test>\r\n"));
        assert!(!text.contains("<body@x.test>"));

        let bytes = reply("a@x.test", &to, MAIL, DateTime::UNIX_EPOCH).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("From: <b@y.test>\r\nTo: <a@x.test>\r\n"));
        assert!(
            text.contains(
                "In-Reply-To: <m1@x.test>\r\nReferences: <m0@x.test>\r\n <m1@x.test>\r\n"
            )
        );
        // The subject forges no header.
        assert!(!text.contains("\r\nBcc:"), "{text}");
        assert_eq!(reply("a@x.test", &to, b"From: a\r\n\r\n", Utc::now()), None);
    }

    #[test]
    fn a_huge_header_is_cut_at_a_line() {
        let mail = [
            b"Message-ID: <m1@x.test>\r\n".as_slice(),
            &b"X: y\r\n".repeat(200_000),
            b"\r\n",
        ]
        .concat();
        let returned = head(&mail);
        assert!(returned.len() <= RETURNED_BYTES && returned.ends_with(b"X: y\r\n"));
    }

    #[test]
    fn mailboxes_are_apart_and_bounded() {
        let mail = ReturnedMail::default();
        assert_eq!(mail.of("a@x.test").1, 1);
        for _ in 0..=KEPT {
            mail.add("A@x.test", b"x".to_vec());
        }
        let (messages, next) = mail.of("a@x.test");
        assert_eq!((messages.len(), messages[0].uid), (KEPT, 2));
        assert_eq!(next as usize, KEPT + 2);
        assert!(mail.of("b@x.test").0.is_empty());
        assert_eq!(mail.folders().order.len(), KEPT);
        // Of all mailboxes together, the oldest go first.
        for name in ["b@x.test", "c@x.test"] {
            mail.add(name, vec![b'x'; BYTES / 2]);
        }
        assert!(mail.of("a@x.test").0.is_empty());
        assert_eq!(mail.of("b@x.test").0.len(), 1);
        mail.add("a@x.test", b"y".to_vec());
        assert!(mail.of("b@x.test").0.is_empty());
        assert_eq!(mail.of("a@x.test").0[0].uid as usize, KEPT + 2);
        assert_eq!(mail.folders().bytes, BYTES / 2 + 1);
    }
}
