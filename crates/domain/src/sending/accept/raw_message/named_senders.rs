//! The senders in headers besides From: mail programs also show Sender ("on behalf of") and the Resent headers. They
//! are read as strictly as From.

use super::fields::{Field, fields};
use super::sender::sole_address;
use crate::compose::of_sender;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::message::Message;

/// A sender besides the one in From.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSender {
    /// The header.
    pub header: &'static str,
    /// Its address.
    pub address: EmailAddress,
}

/// A header names a sender ambiguously, or is repeated although it is allowed only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnclearSender(pub &'static str);

impl NamedSender {
    /// The senders in these fields whose address isn't `from`.
    pub(super) fn all(
        fields: &[Field<'_>],
        from: &EmailAddress,
    ) -> Result<Vec<Self>, UnclearSender> {
        let mut found = Vec::new();
        let mut has_sender = false;
        for field in fields {
            let name = std::str::from_utf8(field.name).unwrap_or_default();
            let Some(header) = of_sender(name) else {
                continue;
            };
            // A message is sent once, and may be resent many times.
            if header == "Sender" && std::mem::replace(&mut has_sender, true) {
                return Err(UnclearSender(header));
            }
            if field.is_empty() {
                continue;
            }
            let address = sole_address(field.value).ok_or(UnclearSender(header))?;
            if address.lookup_key() != from.lookup_key() {
                found.push(Self { header, address });
            }
        }
        Ok(found)
    }

    /// The same for a stored message.
    pub fn of_stored(message: &Message, from: &str) -> Result<Vec<Self>, UnclearSender> {
        let mut head = Vec::new();
        for chunk in message.chunks() {
            let seam = head.len().saturating_sub(3);
            head.extend_from_slice(chunk);
            if memchr::memmem::find(&head[seam..], b"\r\n\r\n").is_some() {
                break;
            }
        }
        // A stored message had readable headers, and an address in From.
        match (fields(&head), EmailAddress::parse(from)) {
            (Ok(fields), Ok(from)) => Self::all(&fields, &from),
            _ => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    const ADA: &str = "ada@sandbox.example";

    fn named(headers: &str) -> Result<Vec<(&'static str, String)>, &'static str> {
        let message = Message::from_pieces(vec![Bytes::from(format!("{headers}\r\nHi."))]);
        match NamedSender::of_stored(&message, ADA) {
            Ok(named) => Ok(named
                .into_iter()
                .map(|sender| (sender.header, sender.address.to_string()))
                .collect()),
            Err(UnclearSender(header)) => Err(header),
        }
    }

    #[test]
    fn whom_they_name() {
        let eve = || "eve@sandbox.example".to_owned();
        for (headers, expected) in [
            ("", Ok(vec![])),
            ("Sender: ADA@sandbox.example\r\n", Ok(vec![])),
            ("Sender:\r\n", Ok(vec![])),
            (
                "Sender: Eve <eve@sandbox.example>\r\n",
                Ok(vec![("Sender", eve())]),
            ),
            (
                "sEnDeR \t: \r\n eve@sandbox.example\r\n",
                Ok(vec![("Sender", eve())]),
            ),
            (
                "Resent-Sender: eve@sandbox.example\r\nResent-From: eve@sandbox.example\r\n\
                 Resent-From: ada@sandbox.example\r\n",
                Ok(vec![("Resent-Sender", eve()), ("Resent-From", eve())]),
            ),
            (
                "Sender: ada@sandbox.example\r\nSender: ada@sandbox.example\r\n",
                Err("Sender"),
            ),
            ("Sender:\r\nSender:\r\n", Err("Sender")),
            ("Sender: team: ada@sandbox.example;\r\n", Err("Sender")),
            (
                "Sender: \"eve@sandbox.example\" <ada@sandbox.example>\r\n",
                Err("Sender"),
            ),
            (
                "Sender: =?utf-8?q?eve=40sandbox.example?= <ada@sandbox.example>\r\n",
                Err("Sender"),
            ),
            (
                "Resent-From: ada@sandbox.example, eve@sandbox.example\r\n",
                Err("Resent-From"),
            ),
            ("Resent-Sender: root\r\n", Err("Resent-Sender")),
            (
                "X-Sender: eve@sandbox.example\r\nResent-To: eve@sandbox.example\r\n",
                Ok(vec![]),
            ),
        ] {
            let whole = format!("From: {ADA}\r\n{headers}");
            assert_eq!(named(&whole), expected, "{headers:?}");
        }
    }

    #[test]
    fn what_the_body_says_is_none() {
        let message = format!("From: {ADA}\r\n\r\nSender: eve@sandbox.example\r\n");
        let message = Message::from_pieces(vec![Bytes::from(message)]);
        assert_eq!(NamedSender::of_stored(&message, ADA), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn the_cuts_of_a_stored_message_do_not_matter(cuts in prop::collection::vec(0_usize..90, 0..6)) {
            let text = format!("From: {ADA}\r\nX: y\r\nSender: eve@sandbox.example\r\n\r\nSender: x\r\n\r\n");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut start = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                pieces.push(Bytes::copy_from_slice(&text.as_bytes()[start..cut]));
                start = cut;
            }
            let found = NamedSender::of_stored(&Message::from_pieces(pieces), ADA).unwrap();
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(found[0].address.as_str(), "eve@sandbox.example");
        }
    }
}
