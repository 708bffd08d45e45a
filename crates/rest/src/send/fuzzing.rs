//! The fuzz target of `POST /send`: from the body's bytes to the message.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use axum::http::HeaderMap;
use chrono::DateTime;
use mail_parser::{HeaderName, MessageParser, MimeHeaders};
use uuid::Uuid;

use super::idempotency_key;
use super::request::SendRequest;
use super::validate::{ValidRequest, validate};
use crate::http::request::parse;
use mailgate_domain::accounts::SendingApp;
use mailgate_domain::sending::accept::prepared::Prepared;
use mailgate_types::email_address::{EmailAddress, comparison_key};
use mailgate_types::fuzzing::{Input, is_printable};
use mailgate_types::ids::{AppId, SubscriberId};
use mailgate_types::subscription::Subscription;

/// Recipients per message.
const RECIPIENTS: usize = 5;

/// Other parsers read every accepted request's message as intended.
pub fn send_request(data: &[u8]) {
    let mut input = Input::new(data);
    let app = SendingApp {
        id: AppId(Uuid::nil()),
        subscriber: SubscriberId(Uuid::nil()),
        requests_per_second: None,
        slug: "demo".to_owned(),
        pushable_key: "pk_demo".to_owned(),
        suppress_bounced: false,
        multiuser: input.flag(),
        subscription: Subscription::default(),
        version: None,
        restrictions: None,
    };
    let Ok(request) = parse::<SendRequest>(input.rest()) else {
        return;
    };
    let Ok(ValidRequest { fields, .. }) = validate(request, &app, RECIPIENTS, DateTime::UNIX_EPOCH)
    else {
        return;
    };
    let Ok(from) = EmailAddress::parse("ada@x.org") else {
        return;
    };
    let wanted = fields.clone();
    let least = fields.least_size();
    let prepared = Prepared::composed(fields, &from, DateTime::UNIX_EPOCH);
    let octets = prepared.message.chunks().collect::<Vec<_>>().concat();
    assert!(octets.len() >= least.min(1));
    assert!((1..=RECIPIENTS).contains(&prepared.recipients.addresses.len()));
    for line in octets.split_inclusive(|byte| *byte == b'\n') {
        assert!(line.ends_with(b"\r\n") && line.len() <= 1_000, "{line:?}");
        let line = &line[..line.len() - 2];
        assert!(memchr::memchr3(b'\r', b'\n', 0, line).is_none());
    }
    assert!(prepared.recipients.smtputf8 || octets.is_ascii());

    let Some(parsed) = MessageParser::new().parse(&octets) else {
        unreachable!("it can't be parsed");
    };
    for (name, count) in [
        (HeaderName::From, 1),
        (HeaderName::To, 1),
        (HeaderName::Subject, 1),
        (HeaderName::MessageId, 1),
        (HeaderName::Date, 1),
        (
            HeaderName::Cc,
            usize::from(!prepared.summary.cc_addresses.is_empty()),
        ),
        (HeaderName::ReplyTo, usize::from(wanted.reply_to.is_some())),
        (HeaderName::Bcc, 0),
        (HeaderName::Sender, 0),
    ] {
        let found = parsed.headers().iter().filter(|header| header.name == name);
        assert_eq!(found.count(), count, "{name:?}");
    }
    let sole = |address: Option<&mail_parser::Address<'_>>| {
        let mut all = address.into_iter().flat_map(mail_parser::Address::iter);
        let first = all
            .next()
            .and_then(|it| it.address.as_deref())
            .map(str::to_owned);
        first.filter(|_| all.next().is_none())
    };
    assert_eq!(sole(parsed.from()).as_deref(), Some(from.as_str()));
    let to = sole(parsed.to()).map(|to| comparison_key(&to));
    assert_eq!(to, Some(comparison_key(wanted.to.as_str())));
    assert!(
        wanted
            .headers
            .iter()
            .all(|header| is_printable(header.name()))
    );

    let files: Vec<&[u8]> = parsed
        .attachments()
        .map(mail_parser::MessagePart::contents)
        .collect();
    let inline = |file: &&mailgate_domain::compose::Attachment| {
        wanted.html.is_some() && file.content_id.is_some()
    };
    let attached = wanted
        .attachments
        .iter()
        .filter(|file| !inline(file))
        .count();
    assert!(
        files.len() >= attached,
        "{} of {attached} files",
        files.len()
    );
    for part in parsed.attachments() {
        assert!(part.content_type().is_some());
    }
}

/// Whether the headers hold a key; `None` if they are refused.
pub fn has_key(headers: &HeaderMap, body: &[u8]) -> Option<bool> {
    idempotency_key(headers, body).ok().map(|key| key.is_some())
}
