//! The fields of a draft, except its sender.

use std::collections::HashSet;

use mail_parser::{HeaderName, Message};
use serde_json::{Map, Value};

use super::addressee::{Addressee, addresses};
use super::body::body;
use super::header::{headers, raw, thread_ids};
use crate::mail::verdict::Failure;
use mailgate_types::email_address::{EmailAddress, comparison_key};
use mailgate_types::encoded_words::decoded;

pub(super) fn fields(message: &Message<'_>, recipients: &[String]) -> Result<Value, Failure> {
    let to = addresses(message, &HeaderName::To);
    let cc = addresses(message, &HeaderName::Cc);
    let mut bcc = addresses(message, &HeaderName::Bcc);
    let named: HashSet<String> = to
        .iter()
        .chain(&cc)
        .chain(&bcc)
        .map(|named| {
            // Graph may reject a malformed address.
            let is_one = EmailAddress::parse(&named.address).is_ok();
            if is_one {
                comparison_key(&named.address)
            } else {
                named.address.to_lowercase()
            }
        })
        .collect();
    bcc.extend(
        recipients
            .iter()
            .filter(|recipient| !named.contains(&comparison_key(recipient)))
            .map(|recipient| Addressee {
                name: None,
                address: recipient.clone(),
            }),
    );
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("subject", subject(message).into());
    set("body", body(message));
    for (name, addressees) in [
        ("toRecipients", to),
        ("ccRecipients", cc),
        ("bccRecipients", bcc),
        ("replyTo", addresses(message, &HeaderName::ReplyTo)),
    ] {
        if !addressees.is_empty() {
            set(name, addressees.iter().map(Addressee::json).collect());
        }
    }
    if let Some(id) = message.message_id() {
        set("internetMessageId", format!("<{id}>").into());
    }
    if let Some(importance) = importance(message) {
        set("importance", importance.into());
    }
    let (own, further) = headers(message)?;
    if !own.is_empty() {
        set("internetMessageHeaders", own.into());
    }
    let properties: Vec<Value> = thread_ids(message).chain(further).collect();
    if !properties.is_empty() {
        set("singleValueExtendedProperties", properties.into());
    }
    Ok(Value::Object(fields))
}

fn importance(message: &Message<'_>) -> Option<&'static str> {
    let value = message.header_raw(HeaderName::Importance)?;
    ["low", "normal", "high"]
        .into_iter()
        .find(|word| value.trim().eq_ignore_ascii_case(word))
}

fn subject(message: &Message<'_>) -> String {
    let mut headers = message.headers().iter().rev();
    let subject = headers.find(|header| header.name == HeaderName::Subject);
    subject
        .map(|header| decoded(raw(message, header)))
        .unwrap_or_default()
}
