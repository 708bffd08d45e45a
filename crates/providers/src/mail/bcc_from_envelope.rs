//! Prepares a message for an API that reads the recipients from the headers: recipients that are only in the envelope
//! are put into a Bcc header, which such an API removes again.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use std::collections::HashSet;
use std::fmt::Write;

use bytes::Bytes;
use mail_parser::{Address, HeaderName};

use super::transport::Recipients;
use super::verdict::Failure;
use mailgate_types::email_address::{EmailAddress, comparison_key};
use mailgate_types::message::Message;
use mailgate_types::message_parser::message_parser;

/// Maximum size of a message's headers, in bytes.
const HEADER_BYTES: usize = 1024 * 1024;

/// Characters of a header's address that an error shows.
const SHOWN: usize = 254;

/// The message with every recipient named in its headers. It must not have a Bcc header of its own.
///
/// # Errors
///
/// A permanent failure if To or Cc names an address that isn't a recipient: the API would send to it all the same.
pub fn bcc_from_envelope(recipients: &Recipients, message: &Message) -> Result<Message, Failure> {
    let named = named(&header_block(message)?);
    let wanted: HashSet<String> = (recipients.addresses.iter())
        .map(|address| comparison_key(address))
        .collect();
    if let Some(other) = named.iter().find(|named| !wanted.contains(&named.key)) {
        return Err(Failure::own(format!(
            "5.6.0 To or Cc names {}, who is not among the recipients, and this mailbox's provider \
             sends to everybody that the headers name: submit the message once for all of its \
             recipients, or take the others out of its headers",
            shown(&other.written)
        )));
    }
    let mut told: HashSet<String> = (named.into_iter())
        .filter_map(|named| named.certain.then_some(named.key))
        .collect();
    let mut bcc = String::new();
    for address in &recipients.addresses {
        if told.insert(comparison_key(address)) {
            let before = if bcc.is_empty() { "Bcc:" } else { ",\r\n" };
            let written = EmailAddress::parse(address).map_or_else(
                |_| address.clone(),
                |address| address.to_ascii().to_string(),
            );
            let _ = write!(bcc, "{before} {written}");
        }
    }
    if bcc.is_empty() {
        return Ok(message.clone());
    }
    bcc.push_str("\r\n");
    Ok(message.with_front(Bytes::from(bcc)))
}

/// The header lines, followed by an empty line.
fn header_block(message: &Message) -> Result<Vec<u8>, Failure> {
    const END: &[u8] = b"\r\n\r\n";
    let mut block = Vec::new();
    for chunk in message.chunks() {
        // The end may span two chunks.
        let from = block.len().saturating_sub(END.len() - 1);
        block.extend_from_slice(chunk);
        if block.starts_with(b"\r\n") {
            return Ok(Vec::new());
        }
        if let Some(end) = memchr::memmem::find(&block[from..], END) {
            block.truncate(from + end + END.len());
            break;
        }
        if block.len() > HEADER_BYTES {
            return Err(Failure::own(
                "5.6.0 The message's headers take more than 1 MiB",
            ));
        }
    }
    // A message may consist of headers alone.
    block.extend_from_slice(END);
    Ok(block)
}

/// An address in To or Cc.
struct Named {
    key: String,
    written: String,
    /// It is unambiguously an address.
    certain: bool,
}

/// The addresses in To and Cc. An entry without an `@` isn't an address: it is left to the provider.
fn named(headers: &[u8]) -> Vec<Named> {
    let Some(parsed) = message_parser().parse_headers(headers) else {
        return Vec::new();
    };
    parsed
        .headers()
        .iter()
        .filter(|header| matches!(header.name, HeaderName::To | HeaderName::Cc))
        .filter_map(|header| header.value.as_address())
        .flat_map(Address::iter)
        .filter_map(|entry| {
            let name = entry.name.as_deref().unwrap_or_default();
            let written = match entry.address.as_deref() {
                // The parser mistakes a quoted local part without angle brackets for a display name.
                Some(domain) if domain.starts_with('@') => format!("\"{name}\"{domain}"),
                Some(address) => address.to_owned(),
                None => name.to_owned(),
            };
            written.contains('@').then(|| Named {
                key: comparison_key(&written),
                certain: entry.address.is_some(),
                written,
            })
        })
        .collect()
}

fn shown(address: &str) -> String {
    address
        .chars()
        .filter(|letter| !letter.is_control())
        .take(SHOWN)
        .collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn run(headers: &str, recipients: &[&str]) -> Result<String, Failure> {
        let recipients = Recipients {
            addresses: recipients.iter().map(ToString::to_string).collect(),
            smtputf8: false,
        };
        let message = Message::from_pieces(vec![Bytes::from(headers.to_owned())]);
        bcc_from_envelope(&recipients, &message).map(|message| {
            let bytes = message.chunks().collect::<Vec<_>>().concat();
            let text = String::from_utf8(bytes).unwrap();
            text.strip_suffix(headers).unwrap().to_owned()
        })
    }

    #[test]
    fn who_is_not_named_goes_into_bcc() {
        for (headers, recipients, front) in [
            ("To: a@x.org\r\n\r\nbody", &["a@x.org"][..], ""),
            ("To: A@X.org\r\n\r\n", &["a@x.ORG"], ""),
            (
                "To: a@x.org\r\nSubject: s\r\n\r\nCc: d@x.org",
                &["a@x.org", "b@x.org", "c@x.org", "B@x.org"],
                "Bcc: b@x.org,\r\n c@x.org\r\n",
            ),
            ("Subject: s\r\n\r\n", &["a@x.org"], "Bcc: a@x.org\r\n"),
            ("\r\nTo: a@x.org\r\n\r\n", &["b@x.org"], "Bcc: b@x.org\r\n"),
            ("Subject: s", &["a@x.org"], "Bcc: a@x.org\r\n"),
            ("To: a@x.org", &["a@x.org"], ""),
            ("", &["a@x.org"], "Bcc: a@x.org\r\n"),
            (
                "To: undisclosed-recipients:;\r\n\r\n",
                &["a@x.org"],
                "Bcc: a@x.org\r\n",
            ),
            (
                "To: friends: Ada <a@x.org>, b@x.org;, c@x.org\r\nCC: d@x.org\r\n\r\n",
                &["a@x.org", "b@x.org", "c@x.org", "d@x.org"],
                "",
            ),
            (
                "To: a@x.org\r\nTo : b@x.org\r\ncc:\r\n c@x.org,\r\n\td@x.org\r\n\r\n",
                &["a@x.org", "b@x.org", "c@x.org", "d@x.org"],
                "",
            ),
            (
                "Resent-To: z@x.org\r\nTo: \"Doe, A (x@y.org)\" <a@x.org> (or z@x.org)\r\n\r\n",
                &["a@x.org"],
                "",
            ),
            (
                "From: z@x.org\r\nReply-To: z@x.org\r\nTo: =?utf-8?q?z=40x.org?= <a@x.org>\r\n\r\n",
                &["a@x.org"],
                "",
            ),
            (
                "To: \"a b\"@x.org, <\"c d\"@x.org>, e@x.org\r\n\r\n",
                &["\"a b\"@x.org", "\"c d\"@x.org", "\"e\"@x.org"],
                "",
            ),
            (
                "To: a@b\u{fc}cher.example\r\n\r\n",
                &["a@xn--bcher-kva.example"],
                "",
            ),
            ("To: a@[192.0.2.1]\r\n\r\n", &["a@[192.0.2.1]"], ""),
            (
                "To: =?utf-8?q?a=40x.org?=\r\n\r\n",
                &["a@x.org"],
                "Bcc: a@x.org\r\n",
            ),
            ("To: everybody\r\n\r\n", &["a@x.org"], "Bcc: a@x.org\r\n"),
            (
                "To: everybody\r\n\r\n",
                &["a@b\u{fc}cher.example"],
                "Bcc: a@xn--bcher-kva.example\r\n",
            ),
        ] {
            assert_eq!(run(headers, recipients).unwrap(), front, "{headers}");
        }
    }

    #[test]
    fn who_is_named_and_not_asked_for_is_refused() {
        for headers in [
            "To: a@x.org, z@x.org\r\n\r\n",
            "To: a@x.org\r\nCc: z@x.org\r\n\r\n",
            "To: a@x.org\r\nTo: z@x.org\r\n\r\n",
            "To: g: z@x.org;\r\n\r\n",
            "CC : Ada\r\n <z@x.org>\r\n\r\n",
            // One-letter zones, after which the date parser reads on.
            "To: a@x.org\r\nDate: Sun, 1 Mar 2026 12:00:00 Z\r\nCc: z@x.org\r\n\r\n",
            "To: a@x.org\r\nResent-Date: Sun, 1 Mar 2026 12:00:00 A\r\nTo: z@x.org\r\n\r\n",
        ] {
            let failure = run(headers, &["a@x.org"]).unwrap_err();
            assert!(failure.text.starts_with("5.6.0 To or Cc names z@x.org,"));
        }
        for unreadable in [
            "To: \"Ada <a@x.org>, z@x.org\r\n\r\n",
            "To: a@x.org z@x.org\r\n\r\n",
            "To: z@x.org <>\r\n\r\n",
        ] {
            assert!(run(unreadable, &["a@x.org"]).is_err(), "{unreadable}");
        }
    }

    #[test]
    fn headers_across_pieces_and_without_an_end() {
        let recipients = Recipients {
            addresses: vec!["a@x.org".to_owned()],
            smtputf8: false,
        };
        let whole = "Subject: s\r\nTo: a@x.org\r\n\r\nTo: z@x.org\r\n\r\n";
        for first in 0..whole.len() {
            let pieces = vec![
                Bytes::from(&whole[..first]),
                Bytes::from(&whole[first..=first]),
                Bytes::from(&whole[(first + 1)..]),
            ];
            let message = Message::from_pieces(pieces);
            assert_eq!(
                bcc_from_envelope(&recipients, &message).unwrap().size(),
                whole.len()
            );
        }
        let endless = Message::from_pieces(vec![Bytes::from("X: y\r\n".repeat(300_000))]);
        let failure = bcc_from_envelope(&recipients, &endless).unwrap_err();
        assert!(failure.text.contains("1 MiB"));
    }

    fn an_address() -> impl Strategy<Value = String> {
        "[a-z][a-z0-9.+]{0,8}[a-z0-9]@[a-z]{1,5}\\.(org|example)"
            .prop_filter("two dots", |address| !address.contains(".."))
    }

    proptest! {
        #[test]
        fn nobody_is_lost_and_nobody_is_added(
            to in proptest::collection::vec(an_address(), 0..4),
            cc in proptest::collection::vec(an_address(), 0..4),
            alone in proptest::collection::vec(an_address(), 0..4),
            junk in "[ -~]{0,60}",
        ) {
            let list = |name: &str, addresses: &[String]| {
                if addresses.is_empty() {
                    String::new()
                } else {
                    format!("{name}: {}\r\n", addresses.join(",\r\n "))
                }
            };
            let message = format!(
                "Subject: {junk}\r\n{}{}\r\nTo: nobody@x.org\r\n",
                list("To", &to),
                list("Cc", &cc),
            );
            let envelope: Vec<&str> = to.iter().chain(&cc).chain(&alone).map(String::as_str).collect();
            let front = run(&message, &envelope).unwrap();
            let whole = format!("{front}{message}");
            let parsed = message_parser().parse_headers(whole.as_bytes()).unwrap();
            let told: HashSet<String> = parsed
                .all_to()
                .chain(parsed.all_cc())
                .chain(parsed.all_bcc())
                .flat_map(Address::iter)
                .filter_map(|address| address.address.as_deref())
                .map(comparison_key)
                .collect();
            let wanted: HashSet<String> = envelope.iter().map(|address| comparison_key(address)).collect();
            prop_assert_eq!(told, wanted);
            prop_assert!(front.lines().all(|line| line.len() < 998));
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let recipients = Recipients { addresses: vec!["a@x.org".to_owned()], smtputf8: false };
            let _ = bcc_from_envelope(&recipients, &Message::from_pieces(vec![Bytes::from(bytes)]));
        }
    }
}
