//! The search on the messages page, and its validation.

use std::fmt::Display;

use serde::Deserialize;

use crate::page::frame::query;
use mailgate_domain::mailboxes::NamedMailbox;
use mailgate_domain::reports::{AppReference, Filter, Position, Search, Start};
use mailgate_types::date::Date;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::SubscriberId;
use mailgate_types::seal::{SealError, SealKeys};
use mailgate_types::sealed_text;

/// Longest search text, in characters.
const LONGEST: usize = 998;

/// The page's query; a form sends all fields, and an empty field counts as missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MessagesQuery {
    pub(crate) app: String,
    pub(crate) to_address: String,
    pub(crate) subject: String,
    pub(crate) message_id: String,
    pub(crate) log_id: String,
    pub(crate) credential_id: String,
    pub(crate) status: String,
    pub(crate) bounced: String,
    pub(crate) from_date: String,
    pub(crate) to_date: String,
    cursor: String,
}

/// The validated search.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) filter: Filter,
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

impl MessagesQuery {
    /// Validates all of it.
    pub(crate) fn validate(
        &self,
        subscriber: SubscriberId,
        keys: &SealKeys,
    ) -> Result<Wanted, Vec<WrongField>> {
        let mut wrong = Vec::new();
        let is_scheduled = self.status == "scheduled";
        let status = if is_scheduled { "" } else { &self.status };
        let search = Search {
            recipient: take(&mut wrong, "Recipient", &self.to_address, |text| {
                EmailAddress::parse(text).map_err(|_| "must be one email address")
            }),
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
            bounced: take(&mut wrong, "Bounced", &self.bounced, |text| {
                text.parse().map_err(|_| "must be true or false")
            }),
            from: take(&mut wrong, "From", &self.from_date, Date::parse).map(Date::first),
            before: take(&mut wrong, "To", &self.to_date, Date::parse).map(Date::behind),
            search,
        };
        let position = take(&mut wrong, "Page", &self.cursor, |text| {
            let position = sealed_text::open(keys, &self.context(subscriber), text);
            position.ok_or("belongs to another search; search again")
        });
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(Wanted {
            filter,
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
            ("app", &self.app),
            ("to_address", &self.to_address),
            ("subject", &self.subject),
            ("message_id", &self.message_id),
            ("log_id", &self.log_id),
            ("credential_id", &self.credential_id),
            ("status", &self.status),
            ("bounced", &self.bounced),
            ("from_date", &self.from_date),
            ("to_date", &self.to_date),
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
