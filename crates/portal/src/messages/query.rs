//! The search on the messages page, and its validation.

use std::fmt::Display;

use serde::Deserialize;

use super::terms::{Terms, term};
use crate::page::frame::query;
use mailgate_domain::mailboxes::NamedMailbox;
use mailgate_domain::reports::{AppReference, Filter, Position, Search, Start};
use mailgate_types::date::Date;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::{LogId, SubscriberId};
use mailgate_types::seal::{SealError, SealKeys};
use mailgate_types::sealed_text;

/// Longest search text, in characters.
const LONGEST: usize = 998;

/// The page's query; a form sends all fields, and an empty field counts as missing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MessagesQuery {
    /// The text of the search box.
    q: String,
    pub(crate) app: String,
    to_address: String,
    from_address: String,
    subject: String,
    message_id: String,
    log_id: String,
    pub(crate) credential_id: String,
    pub(crate) status: String,
    bounced: String,
    pub(crate) from_date: String,
    pub(crate) to_date: String,
    before_date: String,
    cursor: String,
}

/// The status menu: the values, and their words.
pub(crate) const STATES: [(&str, &str); 6] = [
    ("", "Any status"),
    ("sent", "Sent"),
    ("failed_temp", "Retrying"),
    ("failed_perm", "Failed"),
    ("bounced", "Bounced"),
    ("scheduled", "Scheduled"),
];

/// What the box's other words may mean, in the order in which they are tried.
#[derive(Debug)]
pub(crate) enum Meaning {
    /// Nothing is guessed.
    Plain(Box<MessagesQuery>),
    /// This message is to be opened.
    Message(LogId),
    /// An address or a Message-ID.
    Address(Box<[MessagesQuery; 3]>),
}

/// The validated search.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) filter: Filter,
    /// The mailbox's address.
    pub(crate) from: Option<EmailAddress>,
    /// Messages that are still to be sent, instead of the log.
    pub(crate) is_scheduled: bool,
    pub(crate) start: Start,
}

/// An invalid field, with its rule.
#[derive(Debug)]
pub(crate) struct WrongField {
    pub(crate) label: &'static str,
    pub(crate) text: String,
}

/// Parses a field that isn't empty, and records an error.
fn take<T, E: Display>(
    wrong: &mut Vec<WrongField>,
    label: &'static str,
    text: &str,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Option<T> {
    let text = Some(text.trim()).filter(|text| !text.is_empty())?;
    let read = read(text);
    read.map_err(|error| {
        let text = error.to_string();
        wrong.push(WrongField { label, text });
    })
    .ok()
}

/// A string without control characters.
fn plain(text: &str) -> Result<String, &'static str> {
    let fits = text.chars().count() <= LONGEST && !text.contains(char::is_control);
    fits.then(|| text.to_owned()).ok_or("is too long")
}

/// Without angle brackets.
fn message_id(text: &str) -> Result<String, &'static str> {
    let inside = text.strip_prefix('<').and_then(|id| id.strip_suffix('>'));
    plain(inside.unwrap_or(text))
}

/// `x@y`: an address or a Message-ID.
fn is_like_an_address(text: &str) -> bool {
    let parts = text.split_once('@');
    parts.is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
        && !text.contains(char::is_whitespace)
}

impl MessagesQuery {
    /// For one message.
    pub(crate) fn of_message(id: LogId) -> Self {
        Self {
            log_id: id.to_string(),
            ..Self::default()
        }
    }

    /// Without the search box: its terms become fields.
    pub(crate) fn read(&self) -> Meaning {
        let terms = Terms::parse(&self.q);
        let mut read = Self {
            q: String::new(),
            ..self.clone()
        };
        for (field, term) in [
            (&mut read.app, &terms.app),
            (&mut read.to_address, &terms.to),
            (&mut read.from_address, &terms.from),
            (&mut read.subject, &terms.subject),
            (&mut read.status, &terms.status),
            (&mut read.from_date, &terms.after),
            (&mut read.before_date, &terms.before),
            (
                match terms.id.split_once('_') {
                    Some(("log", _)) => &mut read.log_id,
                    Some(("cred", _)) => &mut read.credential_id,
                    _ => &mut read.message_id,
                },
                &terms.id,
            ),
        ] {
            if !term.is_empty() {
                field.clone_from(term);
            }
        }
        if !terms.status.is_empty() {
            read.status = terms.status.to_ascii_lowercase();
            read.bounced.clear();
        }
        let rest = terms.rest;
        if let Ok(id) = rest.parse() {
            return Meaning::Message(id);
        }
        if rest.starts_with('<') && rest.ends_with('>') {
            read.message_id = rest;
        } else if is_like_an_address(&rest) {
            let with = |set: fn(&mut Self) -> &mut String| {
                let mut query = read.clone();
                set(&mut query).clone_from(&rest);
                query
            };
            return Meaning::Address(Box::new([
                with(|it| &mut it.to_address),
                with(|it| &mut it.message_id),
                with(|it| &mut it.from_address),
            ]));
        } else if !rest.is_empty() {
            read.subject = rest;
        }
        Meaning::Plain(Box::new(read))
    }

    /// The text for the search box: what was typed, and the fields that have no control of their own.
    pub(crate) fn text(&self) -> String {
        let mut text = self.q.clone();
        for (name, value) in [
            ("to", &self.to_address),
            ("from", &self.from_address),
            ("subject", &self.subject),
            ("id", &self.message_id),
            ("id", &self.log_id),
            ("before", &self.before_date),
        ] {
            if !value.trim().is_empty() {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(&term(name, value));
            }
        }
        text
    }

    /// Whether this option of the status menu is selected.
    pub(crate) fn is_in(&self, state: &str) -> bool {
        if self.bounced == "true" {
            state == "bounced"
        } else {
            state == self.status
        }
    }

    /// Validates all of it.
    pub(crate) fn validate(
        &self,
        subscriber: SubscriberId,
        keys: &SealKeys,
    ) -> Result<Wanted, Vec<WrongField>> {
        let mut wrong = Vec::new();
        // The words that people see, besides those of the API.
        let (status, bounced) = match self.status.trim() {
            "bounced" => ("", "true"),
            "retrying" | "waiting" => ("failed_temp", self.bounced.as_str()),
            "failed" => ("failed_perm", self.bounced.as_str()),
            status => (status, self.bounced.as_str()),
        };
        let is_scheduled = status == "scheduled";
        let status = if is_scheduled { "" } else { status };
        let address =
            |text: &str| EmailAddress::parse(text).map_err(|_| "must be one email address");
        let search = Search {
            recipient: take(&mut wrong, "Recipient", &self.to_address, address),
            message_id: take(&mut wrong, "Message-ID", &self.message_id, message_id),
            log: take(&mut wrong, "Log ID", &self.log_id, |text| {
                text.parse().map_err(|_| "must begin with log_")
            }),
            user: None,
            credential: take(&mut wrong, "Mailbox", &self.credential_id, |text| {
                text.parse().map_err(|_| "must begin with cred_")
            }),
            subject: take(&mut wrong, "Subject", &self.subject, plain),
        };
        let filter = Filter {
            app: take(&mut wrong, "App", &self.app, AppReference::parse),
            status: take(&mut wrong, "Status", status, |text| {
                text.parse().map_err(|_| "isn't one of the options")
            }),
            plugin: None,
            bounced: take(&mut wrong, "Bounced", bounced, |text| {
                text.parse().map_err(|_| "must be true or false")
            }),
            from: take(&mut wrong, "From", &self.from_date, Date::parse).map(Date::first),
            before: match (
                take(&mut wrong, "To", &self.to_date, Date::parse).map(Date::behind),
                take(&mut wrong, "Before", &self.before_date, Date::parse).map(Date::first),
            ) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            },
            search,
        };
        let from = take(&mut wrong, "From", &self.from_address, address);
        let position = take(&mut wrong, "Page", &self.cursor, |text| {
            let position = sealed_text::open(keys, &self.context(subscriber), text);
            position.ok_or("belongs to another search; search again")
        });
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(Wanted {
            filter,
            from,
            is_scheduled,
            start: position.map_or(Start::Offset(0), Start::At),
        })
    }

    /// A cursor is valid only for its subscriber's own rows, and for its own search.
    fn context(&self, subscriber: SubscriberId) -> String {
        format!(
            "a page of the portal's messages of {subscriber} by {}",
            self.search()
        )
    }

    /// The query of this search, for its first page.
    pub(crate) fn search(&self) -> String {
        let fields = [
            ("q", &self.q),
            ("app", &self.app),
            ("to_address", &self.to_address),
            ("from_address", &self.from_address),
            ("subject", &self.subject),
            ("message_id", &self.message_id),
            ("log_id", &self.log_id),
            ("credential_id", &self.credential_id),
            ("status", &self.status),
            ("bounced", &self.bounced),
            ("from_date", &self.from_date),
            ("to_date", &self.to_date),
            ("before_date", &self.before_date),
        ];
        let given = fields.into_iter().filter(|(_, text)| !text.is_empty());
        query(
            &given
                .map(|(name, text)| (name, text.as_str()))
                .collect::<Vec<_>>(),
        )
    }

    /// Whether any filter but the app is set.
    pub(crate) fn is_filtered(&self) -> bool {
        let app = query(&[("app", &self.app)]);
        let search = self.search();
        !search.is_empty() && search != app
    }

    /// Whether this mailbox is selected.
    pub(crate) fn is_of(&self, mailbox: &NamedMailbox) -> bool {
        self.credential_id.trim().parse() == Ok(mailbox.id)
    }

    /// Whether the selected mailbox isn't among these.
    pub(crate) fn is_of_another(&self, mailboxes: &[NamedMailbox]) -> bool {
        !self.credential_id.is_empty() && !mailboxes.iter().any(|mailbox| self.is_of(mailbox))
    }

    /// Whether it may be asked again and again: a first page, without guesses, and not of a subject.
    pub(crate) fn is_cheap(&self) -> bool {
        let is_cheap = |query: &Self| query.is_first() && query.subject.is_empty();
        matches!(self.read(), Meaning::Plain(query) if is_cheap(&query))
    }

    /// Whether this is the first page.
    pub(crate) fn is_first(&self) -> bool {
        self.cursor.is_empty()
    }

    /// The query of the page at a position.
    pub(crate) fn at(
        &self,
        subscriber: SubscriberId,
        keys: &SealKeys,
        position: Position,
    ) -> Result<String, SealError> {
        let cursor = sealed_text::seal(keys, &self.context(subscriber), &position)?;
        let cursor = query(&[("cursor", &cursor)]);
        Ok(match self.search() {
            search if search.is_empty() => cursor,
            search => format!("{search}&{cursor}"),
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use chrono::Utc;

    use super::*;

    fn keys() -> SealKeys {
        SealKeys::parse(["k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]).unwrap()
    }

    #[test]
    fn an_empty_form_asks_for_all() {
        let asked = MessagesQuery::default();
        let wanted = asked
            .validate(SubscriberId::at(Utc::now()), &keys())
            .unwrap();
        assert!(wanted.filter.search.is_empty() && !wanted.is_scheduled);
        assert_eq!((asked.search().as_str(), asked.is_filtered()), ("", false));
    }

    #[test]
    fn everything_that_is_wrong_is_said() {
        let asked = MessagesQuery {
            to_address: "Bob".to_owned(),
            log_id: "x".to_owned(),
            status: "open".to_owned(),
            from_date: "yesterday".to_owned(),
            cursor: "x".to_owned(),
            ..MessagesQuery::default()
        };
        let wrong = asked
            .validate(SubscriberId::at(Utc::now()), &keys())
            .unwrap_err();
        let labels: Vec<&str> = wrong.iter().map(|wrong| wrong.label).collect();
        assert_eq!(labels, ["Recipient", "Log ID", "Status", "From", "Page"]);
    }

    #[test]
    fn what_the_box_may_mean() {
        let typed = |q: &str| MessagesQuery {
            q: q.to_owned(),
            ..MessagesQuery::default()
        };
        let Meaning::Plain(plain) = typed("to:bob@example.com status:bounced your order").read()
        else {
            panic!("nothing is guessed");
        };
        assert_eq!(
            plain.search(),
            "to_address=bob%40example.com&subject=your+order&status=bounced"
        );
        let wanted = plain
            .validate(SubscriberId::at(Utc::now()), &keys())
            .unwrap();
        assert_eq!(
            (wanted.filter.bounced, wanted.filter.status),
            (Some(true), None)
        );
        let Meaning::Address(tried) = typed("ada@example.com").read() else {
            panic!("it is an address");
        };
        let searches = tried.map(|query| query.search());
        assert_eq!(
            searches,
            [
                "to_address=ada%40example.com",
                "message_id=ada%40example.com",
                "from_address=ada%40example.com"
            ]
        );
        let id = LogId::at(Utc::now());
        assert!(matches!(typed(&id.to_string()).read(), Meaning::Message(found) if found == id));
        let Meaning::Plain(by_id) = typed(&format!("id:{id}")).read() else {
            panic!("it is a filter");
        };
        assert_eq!(by_id.log_id, id.to_string());
        assert_eq!(
            by_id.text(),
            format!("id:{id}"),
            "without the box it is written there"
        );
    }

    #[test]
    fn the_app_alone_is_no_filter_to_clear() {
        let mut asked = MessagesQuery {
            app: "demo".to_owned(),
            ..MessagesQuery::default()
        };
        assert!(!asked.is_filtered());
        asked.subject = "a b".to_owned();
        assert!(asked.is_filtered());
        assert_eq!(asked.search(), "app=demo&subject=a+b");
    }
}
