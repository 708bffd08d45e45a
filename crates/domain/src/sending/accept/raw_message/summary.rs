//! What the log shows of a message: among others its recipients, and its subject.

use std::collections::HashSet;

use mail_parser::{Header, HeaderName};

use super::fields::Field;
use super::private_headers::is_named;
use crate::sending::accept::prepared::Summary;
use mailgate_types::door::Door;
use mailgate_types::email_address::{EmailAddress, comparison_key};
use mailgate_types::encoded_words;
use mailgate_types::metadata::Metadata;
use mailgate_types::one_line::one_line;

/// Limits on a header's logged addresses: their number, the bytes of each, and the total bytes.
const LOGGED_ADDRESSES: usize = 1_000;
const ADDRESS_BYTES: usize = 320;
const ADDRESSES_BYTES: usize = 64 * 1024;

/// Characters of a subject that are logged.
pub(super) const SUBJECT_LENGTH: usize = 998;

/// What the log shows of a message from this sender, for the recipients in its envelope.
pub(super) fn summary(
    from: &EmailAddress,
    recipients: &[EmailAddress],
    headers: &[Header<'_>],
    fields: &[Field<'_>],
    has_attachments: bool,
    metadata: Metadata,
) -> Summary {
    let to = addresses(headers, &HeaderName::To);
    let cc_addresses = addresses(headers, &HeaderName::Cc);
    let named: HashSet<String> = to
        .iter()
        .chain(&cc_addresses)
        .map(|named| comparison_key(named))
        .collect();
    // A message without a To is shown as addressed to its first recipient, who is then no Bcc.
    let bcc_addresses = recipients
        .iter()
        .skip(usize::from(to.is_empty()))
        .filter(|recipient| !named.contains(&comparison_key(recipient.as_str())))
        .map(|recipient| recipient.as_str().to_owned())
        .collect();
    let to_address = if to.is_empty() {
        recipients
            .first()
            .map(ToString::to_string)
            .unwrap_or_default()
    } else {
        to.join(", ")
    };
    Summary {
        from_address: from.to_string(),
        to_address,
        cc_addresses,
        bcc_addresses,
        subject: subject(fields),
        has_attachments,
        metadata,
        door: Door::Smtp,
    }
}

fn addresses(headers: &[Header<'_>], name: &HeaderName<'_>) -> Vec<String> {
    let mut room = ADDRESSES_BYTES;
    headers
        .iter()
        .filter(|header| is_named(header, name))
        .filter_map(|header| header.value.as_address())
        .flat_map(mail_parser::Address::iter)
        .filter_map(|address| address.address.as_deref())
        .map(|address| one_line(address, ADDRESS_BYTES))
        .filter(|address| !address.is_empty())
        .take(LOGGED_ADDRESSES)
        .take_while(|address| {
            let left = room.checked_sub(address.len());
            room = left.unwrap_or_default();
            left.is_some()
        })
        .collect()
}

/// The subject, decoded and cut to what is logged; of several, mail readers show the last one, or any.
fn subject(fields: &[Field<'_>]) -> String {
    let mut named = fields.iter().rev();
    let last = named.find(|field| field.is_named("subject"));
    last.map(|field| encoded_words::decoded(field.value))
        .unwrap_or_default()
        .chars()
        .filter(|letter| !letter.is_control())
        .take(SUBJECT_LENGTH)
        .collect()
}
