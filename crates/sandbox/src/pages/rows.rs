//! The frame of both pages: the switches, the list with its search, and a message beside it.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use chrono::{Datelike as _, Utc};

use super::switch::outlook;
use super::view::{Content, MessageView};
use super::{NAME, cut, encoded, named, sender};
use crate::inbox::{ArrivedMessage, Found, Inbox};
use crate::switches::{Setting, Switches};

/// How many messages the list shows.
pub(super) const SHOWN: usize = 100;

/// The time limit of a search. It is repeated while its page is open.
const PATIENCE: Duration = Duration::from_millis(500);

/// The faults triggered by a recipient's local part.
pub(super) const FAULTS: [(&str, &str); 6] = [
    ("tempfail@", "451 temporary failure"),
    ("quota@", "452 mailbox full"),
    ("permfail@", "550 no such user"),
    ("limit@", "554 sending limit reached"),
    ("drop@", "connection cut before the reply"),
    ("slow@", "accepted after 2 seconds"),
];

/// The inbox, with or without an opened message.
#[derive(Template)]
#[template(path = "inbox.html")]
pub(super) struct InboxPage {
    pub(super) words: String,
    /// The id of the opened message.
    chosen: Option<String>,
    found: Found,
    /// The number of all messages.
    count: usize,
    unread: usize,
    setting: Setting,
    pub(super) preview: Option<MessageView>,
}

impl InboxPage {
    /// The list of the messages with these words.
    pub(super) async fn list(
        inbox: &Inbox,
        switches: &Switches,
        words: &str,
        chosen: Option<String>,
    ) -> std::io::Result<Self> {
        let words = cut(words.trim(), NAME).to_owned();
        Ok(Self {
            found: inbox.search(&words, SHOWN, PATIENCE).await?,
            words,
            chosen,
            count: inbox.count(),
            unread: inbox.unread(),
            setting: switches.get(),
            preview: None,
        })
    }

    fn messages(&self) -> &[Arc<ArrivedMessage>] {
        &self.found.messages
    }

    /// What is going to happen to messages.
    fn outlook(&self) -> &'static str {
        let Setting { effect, repeat } = self.setting;
        effect.map_or("", |effect| outlook(effect, repeat))
    }

    fn is_chosen(&self, message: &ArrivedMessage) -> bool {
        self.chosen.as_ref() == Some(&message.id)
    }

    /// The address that the list is brought up to date from.
    fn source(&self) -> String {
        let words = encoded(&self.words);
        let chosen = self.chosen.as_deref().map(encoded).unwrap_or_default();
        format!("/?q={words}&id={chosen}")
    }

    fn address(&self, message: &ArrivedMessage) -> String {
        let id = &message.id;
        if self.words.is_empty() {
            format!("/messages/{id}")
        } else {
            format!("/messages/{id}?q={}", encoded(&self.words))
        }
    }
}

/// The first recipient, and the number of the others.
fn recipient(message: &ArrivedMessage) -> String {
    let first = message.envelope_to.first().map_or("", |to| cut(to, NAME));
    match message.envelope_to.len() {
        0 | 1 => first.to_owned(),
        count => format!("{first} + {}", count - 1),
    }
}

/// The sender, and more of the recipients.
fn all_people(message: &ArrivedMessage) -> String {
    format!("{} → {}", sender(message), named(&message.envelope_to))
}

/// The time, as short as it can be.
fn short_time(message: &ArrivedMessage) -> String {
    let (at, now) = (message.received_at, Utc::now());
    let format = if at.date_naive() == now.date_naive() {
        "%H:%M"
    } else if at.year() == now.year() {
        "%-d %b"
    } else {
        "%-d %b %Y"
    };
    at.format(format).to_string()
}
