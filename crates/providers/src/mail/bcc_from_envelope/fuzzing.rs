//! The fuzz target of messages that are sent by their headers.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use std::collections::HashSet;

use bytes::Bytes;

use super::{bcc_from_envelope, header_block, named};
use crate::mail::transport::Recipients;
use mailgate_types::email_address::comparison_key;
use mailgate_types::fuzzing::{Input, pieces, with_line_ends};
use mailgate_types::message::Message;

/// The headers name exactly the requested recipients, and the message itself is unchanged.
pub fn addressed_message(data: &[u8]) {
    let mut input = Input::new(data);
    let cuts = input.cuts();
    let text = with_line_ends(input.rest());
    let parts = pieces(&text, cuts).into_iter().map(Bytes::copy_from_slice);
    let message = Message::from_pieces(parts.collect());
    let recipients = ["a@x.org", "b@x.org", "\"c d\"@x.org"];
    let recipients = Recipients {
        addresses: recipients.map(str::to_owned).to_vec(),
        smtputf8: false,
    };
    let whole = Message::from_pieces(vec![Bytes::from(text.clone())]);
    let outcome = bcc_from_envelope(&recipients, &message);
    let of_whole = bcc_from_envelope(&recipients, &whole);
    assert_eq!(outcome.is_ok(), of_whole.is_ok());
    let Ok(outcome) = outcome else { return };
    let sent = octets(&outcome);
    assert!(of_whole.is_ok_and(|of_whole| octets(&of_whole) == sent));
    assert!(sent.ends_with(&text));
    let front = String::from_utf8_lossy(&sent[..sent.len() - text.len()]).into_owned();
    // Each recipient once: in the message's own headers, or in the Bcc in front.
    let wanted: HashSet<String> = recipients
        .addresses
        .iter()
        .map(|it| comparison_key(it))
        .collect();
    let Ok(block) = header_block(&message) else {
        unreachable!("it was read before");
    };
    let mut named: HashSet<String> = named(&block)
        .into_iter()
        .filter_map(|named| named.certain.then_some(named.key))
        .collect();
    assert!(named.is_subset(&wanted));
    if let Some(list) = front.strip_prefix("Bcc: ") {
        assert!(list.ends_with("\r\n"));
        for address in list.trim_end().split(",\r\n ") {
            assert!(
                named.insert(comparison_key(address)),
                "{address} is named twice"
            );
        }
    } else {
        assert!(front.is_empty());
    }
    assert_eq!(named, wanted);
}

fn octets(message: &Message) -> Vec<u8> {
    message.chunks().collect::<Vec<_>>().concat()
}
