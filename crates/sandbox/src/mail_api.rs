//! The sandbox's mailboxes behind Gmail's and Microsoft Graph's APIs, as far as a gateway uses them to send: for
//! `sandbox.plugin_a = "gmail_api"` and `sandbox.plugin_b = "graph"`.
//!
//! This module has the shared parts: identifying the mailbox by its token, its sender addresses, the faults that a
//! recipient triggers, and storing messages.

mod gmail;
mod graph;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use bytes::Bytes;
use mail_parser::{Address, HeaderName, MessageParser};

use super::inbox::{ArrivedMessage, Inbox};
use super::mime;
use super::oauth::Authorization;
use super::slow::SlowMail;
use super::switches::{Effect, Switches};
use mailgate_types::clock::SharedClock;

/// Maximum number of drafts; further ones are refused.
const DRAFTS: usize = 1_000;

/// Both APIs. Clones share one state.
#[derive(Debug, Clone)]
pub(super) struct MailApi {
    pub(super) authorization: Authorization,
    pub(super) inbox: Inbox,
    pub(super) slow: SlowMail,
    pub(super) switches: Switches,
    pub(super) clock: SharedClock,
    pub(super) drafts: Arc<Mutex<HashMap<String, Draft>>>,
}

/// A message that has not been sent yet.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    mailbox: String,
    mime: Bytes,
}

/// The fault that a recipient's local part triggers, as in the sandbox's SMTP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// `tempfail@…`: rate limited.
    Later,
    /// `quota@…`: the daily limit is reached.
    Tomorrow,
    /// `permfail@…`: no such address.
    NoAddress,
    /// `limit@…`: forbidden by a policy.
    Forbidden,
}

impl MailApi {
    pub(super) fn router(&self) -> Router {
        gmail::router()
            .merge(graph::router())
            .with_state(self.clone())
    }

    /// The mailbox that the request's token belongs to.
    fn mailbox(&self, headers: &HeaderMap) -> Option<String> {
        let said = headers.get(AUTHORIZATION)?.to_str().ok()?;
        self.authorization.mailbox_of(said.strip_prefix("Bearer ")?)
    }

    /// Stores a message for all recipients in its headers. Headers that reveal blind copies are removed.
    async fn take(&self, mailbox: &str, mime: &[u8]) -> io::Result<Arc<ArrivedMessage>> {
        let recipients = recipients(mime);
        let shown = without_headers(mime, &["bcc"]);
        let now = self.clock.now();
        self.inbox
            .add(mailbox, mailbox, &recipients, now, shown)
            .await
    }
}

/// The alias that every mailbox may send as: `ada@…` as `ada.alias@…`.
fn alias(mailbox: &str) -> String {
    beside(mailbox, "alias")
}

/// An alias that was added to a mailbox but never verified: `ada@…` has `ada.pending@…`.
fn pending(mailbox: &str) -> String {
    beside(mailbox, "pending")
}

fn beside(mailbox: &str, word: &str) -> String {
    let (local_part, domain) = mailbox.rsplit_once('@').unwrap_or((mailbox, "localhost"));
    format!("{local_part}.{word}@{domain}")
}

/// Whether a mailbox may send as the address in the message's From.
fn may_send(mailbox: &str, mime: &[u8]) -> bool {
    let parsed = MessageParser::new().parse_headers(mime);
    let from = parsed.as_ref().and_then(|parsed| {
        let first = parsed.from()?.first()?;
        first.address().map(str::to_owned)
    });
    from.is_none_or(|from| {
        from.eq_ignore_ascii_case(mailbox) || from.eq_ignore_ascii_case(&alias(mailbox))
    })
}

/// The addresses in To, Cc and Bcc.
fn recipients(mime: &[u8]) -> Vec<String> {
    let Some(parsed) = MessageParser::new().parse_headers(mime) else {
        return Vec::new();
    };
    (parsed.headers().iter())
        .filter(|header| {
            matches!(
                header.name,
                HeaderName::To | HeaderName::Cc | HeaderName::Bcc
            )
        })
        .filter_map(|header| header.value.as_address())
        .flat_map(Address::iter)
        .filter_map(|entry| entry.address.as_deref().map(str::to_owned))
        .collect()
}

/// The fault of a message: what its recipients ask for, or else what the switches say. Takes its time if they say so.
async fn fault(api: &MailApi, recipients: &[String]) -> Option<Wish> {
    if let Some(wish) = wish(recipients) {
        return Some(wish);
    }
    if recipients.is_empty() {
        return None;
    }
    match api.switches.take(|effect| !effect.returns())? {
        Effect::Fail => Some(Wish::NoAddress),
        Effect::Defer => Some(Wish::Later),
        Effect::Slow => {
            api.slow.pause().await;
            None
        }
        Effect::Bounce | Effect::Reply => None,
    }
}

/// The fault triggered by the first recipient that triggers one.
fn wish(recipients: &[String]) -> Option<Wish> {
    recipients.iter().find_map(|recipient| {
        let (local_part, _) = recipient.rsplit_once('@')?;
        let word = local_part.split('+').next().unwrap_or(local_part);
        match word.to_ascii_lowercase().as_str() {
            "tempfail" => Some(Wish::Later),
            "quota" => Some(Wish::Tomorrow),
            "permfail" => Some(Wish::NoAddress),
            "limit" => Some(Wish::Forbidden),
            _ => None,
        }
    })
}

/// A message without some of its headers; the names are in lower case.
fn without_headers(mime: &[u8], names: &[&str]) -> Vec<u8> {
    let mut kept = mime::fields(mime, |name| !names.contains(&name));
    kept.extend_from_slice(&mime[mime::header(mime).len()..]);
    kept
}
