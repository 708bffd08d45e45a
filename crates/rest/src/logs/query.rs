//! The query of `GET /logs`, and its validation.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use utoipa::IntoParams;

use crate::http::problem::{FieldError, Problem, take};
use crate::http::query::whole_number;
use crate::openapi::enums::{LogPlugin, SCHEDULED, ShownStatus};
use mailgate_domain::mailboxes::USER_ID_LENGTH;
use mailgate_domain::reports::{AppReference, Filter, Position, Search, Start};
use mailgate_types::date::Date;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::SubscriberId;
use mailgate_types::log_status::LogStatus;
use mailgate_types::message_id;
use mailgate_types::plugin::Plugin;
use mailgate_types::seal::SealKeys;
use mailgate_types::sealed_text;

/// Default and maximum number of rows on a page.
const LIMIT: u32 = 20;
const LARGEST: u32 = 100;

/// Maximum number of rows that a search skips; `cursor` goes further.
const FURTHEST: u32 = 10_000;

/// Maximum length of a subject search, in characters.
const SUBJECT_LENGTH: usize = 200;

/// The filters.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogQuery {
    /// Maximum number of messages.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 100, default = 20)]
    limit: Option<String>,
    /// Number of messages to skip; at most 10,000 in a search. To go further, use `cursor`.
    #[param(value_type = Option<i64>, minimum = 0, maximum = 4_294_967_295_i64, default = 0)]
    offset: Option<String>,
    /// The `next_cursor` of the previous page, with the same filters: returns the messages after it. Not with `offset`.
    #[param(pattern = "^[A-Za-z0-9_-]{1,500}$")]
    cursor: Option<String>,
    /// Only messages of this app: its UUID, or its `app_id` (the slug). An app that isn't yours has no messages.
    #[param(pattern = "^[a-z0-9-]{1,69}$")]
    app_id: Option<String>,
    /// Only messages with this status. `scheduled` lists the messages that are still to be sent, the next one first; no
    /// other list or total includes them.
    #[param(value_type = Option<ShownStatus>, inline)]
    status: Option<String>,
    /// Only messages of this plugin.
    #[param(value_type = Option<LogPlugin>, inline)]
    plugin: Option<String>,
    /// Only messages that were sent and have hard-bounced for a recipient (true), or only the others (false).
    #[param(value_type = Option<bool>)]
    bounced: Option<String>,
    /// From this moment on: ISO 8601, with an offset or else in UTC; a date alone means the start of that day
    /// (UTC).
    #[param(
        example = "2026-11-01",
        pattern = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?)?$"
    )]
    from_date: Option<String>,
    /// Up to and including this moment: ISO 8601, with an offset or else in UTC; a date alone means the end of that
    /// day (UTC).
    #[param(
        example = "2026-11-30T12:00:00+01:00",
        pattern = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?)?$"
    )]
    to_date: Option<String>,
    /// A search: messages to this address, in any of To, Cc and Bcc; case doesn't matter.
    #[param(format = "idn-email", max_length = 254, example = "bob@example.com")]
    to_address: Option<String>,
    /// A search: messages with this Message-ID, with or without angle brackets.
    #[param(
        min_length = 1,
        max_length = 1000,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"
    )]
    message_id: Option<String>,
    /// A search: only this message.
    #[param(
        example = "log_01h2xcejqtf2nbrexx3vqjhp41",
        pattern = "^log_[0-7][0-9a-hjkmnp-tv-z]{25}$"
    )]
    log_id: Option<String>,
    /// A search: messages from the mailboxes of this end user: your own ID for the user, or the `user_key`.
    #[param(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"
    )]
    user_id: Option<String>,
    /// A search: messages from this mailbox.
    #[param(
        example = "cred_01h2xcejqtf2nbrexx3vqjhp41",
        pattern = "^cred_[0-7][0-9a-hjkmnp-tv-z]{25}$"
    )]
    credential_id: Option<String>,
    /// A search: messages with this in the subject; case doesn't matter.
    #[param(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"
    )]
    subject: Option<String>,
}

/// The requested page.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) filter: Filter,
    /// Messages that are still to be sent, instead of the log.
    pub(crate) is_scheduled: bool,
    pub(crate) limit: usize,
    pub(crate) start: Start,
    /// The context that cursors of these rows are sealed for: the caller and its filters.
    pub(crate) cursors: String,
}

/// An invalid parameter.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error("must be one email address, without a name")]
    Address,
    #[error("must be a Message-ID of at most 998 bytes")]
    MessageId,
    #[error("must be an id of the form {0}_…")]
    Id(&'static str),
    #[error("must have 1 to 255 characters, none of them a control character")]
    User,
    #[error("must have 1 to 200 characters, none of them a control character")]
    Subject,
    #[error("is not the next_cursor of a page with the same filters")]
    Cursor,
}

fn is_text(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.chars().count()) && !text.contains(char::is_control)
}

/// Without angle brackets, if it has both.
fn message_id(text: &str) -> Result<String, Wrong> {
    let inside = text.strip_prefix('<').and_then(|id| id.strip_suffix('>'));
    let id = inside.unwrap_or(text);
    let fits = is_text(id, message_id::LONGEST) && id.len() <= message_id::LONGEST;
    fits.then(|| id.to_owned()).ok_or(Wrong::MessageId)
}

fn text(text: &str, longest: usize, wrong: Wrong) -> Result<String, Wrong> {
    is_text(text, longest).then(|| text.to_owned()).ok_or(wrong)
}

impl LogQuery {
    /// Validates all of it, and reports all errors together.
    pub(crate) fn validate(
        self,
        subscriber: SubscriberId,
        keys: &SealKeys,
    ) -> Result<Wanted, Problem> {
        let mut errors = Vec::new();
        let cursors = self.cursors(subscriber);
        let limit = whole_number("limit", self.limit, 1..=LARGEST, &mut errors);
        let is_scheduled = self.status.as_deref() == Some(SCHEDULED);
        let status = self.status.filter(|_| !is_scheduled);
        let search = Search {
            recipient: take(&mut errors, "to_address", self.to_address, |text| {
                EmailAddress::parse(text).map_err(|_| Wrong::Address)
            }),
            message_id: take(&mut errors, "message_id", self.message_id, message_id),
            log: take(&mut errors, "log_id", self.log_id, |text| {
                text.parse().map_err(|_| Wrong::Id("log"))
            }),
            user: take(&mut errors, "user_id", self.user_id, |user| {
                text(user, USER_ID_LENGTH, Wrong::User)
            }),
            credential: take(&mut errors, "credential_id", self.credential_id, |text| {
                text.parse().map_err(|_| Wrong::Id("cred"))
            }),
            subject: take(&mut errors, "subject", self.subject, |subject| {
                text(subject, SUBJECT_LENGTH, Wrong::Subject)
            }),
        };
        let furthest = if search.is_empty() {
            u32::MAX
        } else {
            FURTHEST
        };
        if self.cursor.is_some() && self.offset.is_some() {
            errors.push(FieldError::new("cursor", "can't be combined with offset"));
        }
        let offset = whole_number("offset", self.offset, 0..=furthest, &mut errors);
        let position = take(&mut errors, "cursor", self.cursor, |text| {
            let position = sealed_text::open(keys, &cursors, text);
            position.ok_or(Wrong::Cursor)
        });
        let bounced = take(&mut errors, "bounced", self.bounced, |text| {
            text.parse::<bool>().map_err(|_| "must be true or false")
        });
        let filter = Filter {
            bounced,
            app: take(&mut errors, "app_id", self.app_id, AppReference::parse),
            status: take(&mut errors, "status", status, shown_status),
            plugin: take(&mut errors, "plugin", self.plugin, Plugin::from_log_name),
            from: take(&mut errors, "from_date", self.from_date, Date::parse).map(Date::first),
            before: take(&mut errors, "to_date", self.to_date, Date::parse).map(Date::behind),
            search,
        };
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        let offset = offset.unwrap_or(0).into();
        Ok(Wanted {
            filter,
            is_scheduled,
            limit: limit.unwrap_or(LIMIT) as usize,
            start: position.map_or(Start::Offset(offset), Start::At),
            cursors,
        })
    }

    /// An export has all rows: a page can't be chosen.
    pub(crate) fn validate_for_export(
        self,
        subscriber: SubscriberId,
        keys: &SealKeys,
    ) -> Result<Wanted, Problem> {
        let given = [
            ("limit", &self.limit),
            ("offset", &self.offset),
            ("cursor", &self.cursor),
        ];
        let errors: Vec<FieldError> = (given.into_iter())
            .filter(|(_, value)| value.is_some())
            .map(|(name, _)| {
                FieldError::new(name, "can't be combined with text/csv, which has all rows")
            })
            .collect();
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        self.validate(subscriber, keys)
    }

    /// A cursor is valid only for its caller's own rows, and for the filters of its page.
    fn cursors(&self, subscriber: SubscriberId) -> String {
        let mut digest = Sha256::new();
        for text in [
            &self.app_id,
            &self.status,
            &self.plugin,
            &self.bounced,
            &self.from_date,
            &self.to_date,
            &self.to_address,
            &self.message_id,
            &self.log_id,
            &self.user_id,
            &self.credential_id,
            &self.subject,
        ] {
            digest.update([u8::from(text.is_some())]);
            let text = text.as_deref().unwrap_or_default();
            digest.update(text.len().to_be_bytes());
            digest.update(text);
        }
        let digest = URL_SAFE_NO_PAD.encode(digest.finalize());
        format!("a page of the log of {subscriber} by {digest}")
    }
}

/// The cursor of a position.
pub(crate) fn cursor(
    keys: &SealKeys,
    cursors: &str,
    position: Position,
) -> Result<String, Problem> {
    sealed_text::seal(keys, cursors, &position).map_err(|error| Problem::internal(&error))
}

/// The status of a log row.
fn shown_status(text: &str) -> Result<LogStatus, &'static str> {
    let status = text.parse();
    status.map_err(|_| "must be sent, failed_temp, failed_perm or scheduled")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use chrono::Utc;

    use super::*;

    fn keys() -> SealKeys {
        SealKeys::parse(["k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]).unwrap()
    }

    #[expect(clippy::unnecessary_wraps, reason = "fields may be left out")]
    fn given(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn problem(query: LogQuery) -> String {
        let problem = query.validate(SubscriberId::at(Utc::now()), &keys());
        format!("{:?}", problem.err())
    }

    #[test]
    fn all_errors_are_reported_together() {
        let problem = problem(LogQuery {
            limit: given("101"),
            offset: given("-1"),
            cursor: given("x"),
            app_id: given("Demo"),
            status: given("open"),
            plugin: given("plugin_b"),
            bounced: given("yes"),
            from_date: given("x"),
            to_date: given(""),
            to_address: given("Bob <bob@example.com>"),
            message_id: given("<>"),
            log_id: given("cred_01h2xcejqtf2nbrexx3vqjhp41"),
            user_id: given(&"x".repeat(256)),
            credential_id: given("log_01h2xcejqtf2nbrexx3vqjhp41"),
            subject: given("a\0"),
        });
        for field in [
            "limit",
            "offset",
            "cursor",
            "app_id",
            "status",
            "plugin",
            "bounced",
            "from_date",
            "to_date",
            "to_address",
            "message_id",
            "log_id",
            "user_id",
            "credential_id",
            "subject",
        ] {
            assert!(
                problem.contains(&format!("field: \"{field}\"")),
                "{field}: {problem}"
            );
        }
        let far = LogQuery {
            offset: given("10001"),
            subject: given("x"),
            ..LogQuery::default()
        };
        assert!(self::problem(far).contains("from 0 to 10000"));
    }

    #[test]
    fn what_is_not_given() {
        let wanted = LogQuery::default().validate(SubscriberId::at(Utc::now()), &keys());
        let wanted = wanted.unwrap();
        assert_eq!((wanted.limit, wanted.start), (20, Start::Offset(0)));
        assert!(wanted.filter.from.is_none() && wanted.filter.before.is_none());
        assert!(wanted.filter.search.is_empty());
    }

    #[test]
    fn message_ids_with_and_without_brackets() {
        for (text, expected) in [
            ("<a@b>", Some("a@b")),
            ("a@b", Some("a@b")),
            ("<a@b", Some("<a@b")),
            ("<a@b> <c@d>", Some("a@b> <c@d")),
            ("", None),
            ("<>", None),
            ("a\nb", None),
            (&"x".repeat(999), None),
        ] {
            assert_eq!(message_id(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_cursor_is_good_for_its_own_rows_alone() {
        let (keys, ada, bob) = (
            keys(),
            SubscriberId::at(Utc::now()),
            SubscriberId::at(Utc::now()),
        );
        let query = |cursor: Option<&str>, subject: Option<&str>| LogQuery {
            cursor: cursor.map(ToOwned::to_owned),
            subject: subject.map(ToOwned::to_owned),
            ..LogQuery::default()
        };
        let wanted = query(None, Some("x")).validate(ada, &keys).unwrap();
        let position: Position = serde_json::from_str(
            r#"{"older_than":"019aa7f2-6a4e-7c11-8000-0123456789ab","skip":2}"#,
        )
        .unwrap();
        let cursor = cursor(&keys, &wanted.cursors, position).unwrap();
        let again = query(Some(&cursor), Some("x")).validate(ada, &keys);
        assert_eq!(again.unwrap().start, Start::At(position));
        assert!(
            query(Some(&cursor), Some("x"))
                .validate(bob, &keys)
                .is_err()
        );
        assert!(
            query(Some(&cursor), Some("y"))
                .validate(ada, &keys)
                .is_err()
        );
        assert!(query(Some(&cursor), None).validate(ada, &keys).is_err());
        for place in 0..cursor.len() {
            let mut tampered = cursor.clone().into_bytes();
            tampered[place] = if tampered[place] == b'A' { b'B' } else { b'A' };
            let tampered = String::from_utf8(tampered).unwrap();
            assert!(
                query(Some(&tampered), Some("x"))
                    .validate(ada, &keys)
                    .is_err()
            );
        }
        assert!(
            query(Some(&cursor), Some("x"))
                .validate_for_export(ada, &keys)
                .is_err()
        );
        assert!(
            query(None, Some("x"))
                .validate_for_export(ada, &keys)
                .is_ok()
        );
    }
}
