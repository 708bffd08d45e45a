//! The fuzz target of the conversion for Graph.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use bytes::Bytes;

use super::convert;
use crate::mail::own_headers::own_message_id;
use mailgate_types::email_address::{EmailAddress, comparison_key};
use mailgate_types::fuzzing::{Input, with_line_ends};
use mailgate_types::message::Message;

/// For any message: every recipient is named, and the files are no larger than the message.
pub fn graph_draft(data: &[u8]) {
    let message = with_line_ends(Input::new(data).rest());
    let recipients = ["a@x.org".to_owned(), "b@x.org".to_owned()];
    let _ = own_message_id(&Message::from_pieces(vec![Bytes::from(message.clone())]));
    let Ok(draft) = convert(&message, &recipients) else {
        return;
    };
    let named = ["toRecipients", "ccRecipients", "bccRecipients"].map(|name| {
        let list = draft.fields[name].as_array();
        list.into_iter().flatten().cloned().collect::<Vec<_>>()
    });
    let named: Vec<String> = named
        .iter()
        .flatten()
        .filter_map(|it| it["emailAddress"]["address"].as_str())
        .filter(|address| EmailAddress::parse(address).is_ok())
        .map(comparison_key)
        .collect();
    for recipient in &recipients {
        assert!(named.contains(recipient), "{recipient} is not named");
    }
    assert!(draft.fields["body"]["content"].is_string());
    for attachment in &draft.attachments {
        assert!(!attachment.name.is_empty() && !attachment.name.contains(['\r', '\n', '\0']));
        assert!(attachment.content.len() <= message.len().max(1) * 4);
    }
}
