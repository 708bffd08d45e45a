//! The addressees of a message, as Graph's JSON.

use std::borrow::Cow;

use mail_parser::{Address, HeaderName, Message};
use serde_json::{Value, json};

use super::header::raw;
use mailgate_types::encoded_words::joined;
use mailgate_types::message_parser::message_parser;

pub(super) struct Addressee {
    pub(super) name: Option<String>,
    pub(super) address: String,
}

impl Addressee {
    pub(super) fn json(&self) -> Value {
        match &self.name {
            Some(name) => json!({ "emailAddress": { "name": name, "address": self.address } }),
            None => json!({ "emailAddress": { "address": self.address } }),
        }
    }
}

pub(super) fn addresses(message: &Message<'_>, name: &HeaderName<'_>) -> Vec<Addressee> {
    let headers = message.headers().iter();
    headers
        .filter(|header| header.name == *name)
        .flat_map(|header| match joined(raw(message, header)) {
            Cow::Borrowed(_) => header
                .value
                .as_address()
                .map(addressees)
                .unwrap_or_default(),
            // The parser decodes each word on its own.
            Cow::Owned(value) => {
                let header = [b"To: ", value.as_slice(), b"\r\n\r\n"].concat();
                let parsed = message_parser().parse_headers(&header);
                let to = parsed.as_ref().and_then(Message::to);
                to.map(addressees).unwrap_or_default()
            }
        })
        .collect()
}

fn addressees(address: &Address<'_>) -> Vec<Addressee> {
    address
        .iter()
        .filter_map(|entry| {
            let (name, address) = (entry.name.as_deref(), entry.address.as_deref()?);
            // The parser mistakes a quoted local part without angle brackets for a display name.
            Some(if address.starts_with('@') {
                Addressee {
                    name: None,
                    address: format!("\"{}\"{address}", name.unwrap_or_default()),
                }
            } else {
                Addressee {
                    name: name.map(str::to_owned),
                    address: address.to_owned(),
                }
            })
        })
        .collect()
}
