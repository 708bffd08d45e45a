//! One message, as Gmail returns it: its headers, or all of it in base64.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{GmailApi, verdict};
use crate::mail::reader::ReadError;
use crate::mail::received::{self, BOUNCE_BYTES};
use crate::mail::transport::MailboxAccess;

pub(super) const MESSAGES: &str = "/gmail/v1/users/me/messages";

/// Gmail writes the padding; other servers with its API may not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The base64 length of the part of a message that is read.
const ENCODED: usize = BOUNCE_BYTES.div_ceil(3) * 4;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    #[serde(default)]
    pub(super) payload: Payload,
    /// The approximate size of the message, in bytes.
    #[serde(default)]
    pub(super) size_estimate: u64,
}

impl Metadata {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found =
            (self.payload.headers.iter()).find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(found.value.trim())
    }
}

#[derive(Deserialize, Default)]
pub(super) struct Payload {
    #[serde(default)]
    pub(super) headers: Vec<Header>,
}

#[derive(Deserialize)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) value: String,
}

/// A message as it was sent, in base64.
#[derive(Deserialize)]
pub(super) struct Whole {
    #[serde(default)]
    raw: String,
}

impl Whole {
    /// The beginning of the message.
    pub(super) fn beginning(&self) -> Vec<u8> {
        let encoded = self.raw.as_bytes();
        let encoded = &encoded[..encoded.len().min(ENCODED)];
        BASE64.decode(encoded).unwrap_or_default()
    }
}

impl GmailApi {
    /// Some headers of a message.
    pub(super) async fn metadata(
        &self,
        account: &MailboxAccess,
        id: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<Metadata>, ReadError> {
        self.message(account, id, query).await
    }

    /// The beginning of a message as it was sent.
    pub(super) async fn beginning(
        &self,
        account: &MailboxAccess,
        id: &str,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let whole: Option<Whole> = self.message(account, id, &[("format", "raw")]).await?;
        Ok(whole.map(|whole| whole.beginning()))
    }

    /// A message; `None` if it was deleted meanwhile, or can never be read: it must not block later ones.
    async fn message<T: DeserializeOwned>(
        &self,
        account: &MailboxAccess,
        id: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<T>, ReadError> {
        let encoded: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
        let path = format!("{MESSAGES}/{encoded}");
        let answer = self.ask(account, &path, query).await?;
        let unreadable = || {
            tracing::info!(credential_id = %account.credential, mailbox_message = id, status = answer.status, "a message in a mailbox can't be read");
            Ok(None)
        };
        match answer.status {
            200 if answer.is_too_long => unreadable(),
            // It was cut off, or an intermediary wrote it.
            200 if answer.body.is_null() => {
                Err(ReadError::unavailable("HTTP 200 without a message"))
            }
            200 => serde_json::from_value(answer.body)
                .map(Some)
                .or_else(|_| unreadable()),
            404 | 410 => Ok(None),
            _ if verdict::is_refused(&answer, self.clock.now()) => unreadable(),
            _ => Err(verdict::not_read(&answer, self.clock.now())),
        }
    }
}

/// The headers as lines; Gmail has already unfolded the values.
pub(super) fn header_block(headers: &[Header]) -> Vec<u8> {
    let pairs = headers
        .iter()
        .map(|header| (header.name.as_str(), header.value.as_str()));
    received::header_block(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::received::Received;

    #[test]
    fn the_beginning_of_a_message() {
        let of = |raw: &str| {
            let raw = raw.to_owned();
            Whole { raw }.beginning()
        };
        assert_eq!(of("SGk_"), b"Hi?");
        assert_eq!(of("SGk"), b"Hi");
        assert_eq!(of("SGk="), b"Hi");
        assert_eq!(of("S G"), b"");
        assert_eq!(of(""), b"");
        let beginning = of(&"AAAA".repeat(BOUNCE_BYTES)).len();
        assert!((BOUNCE_BYTES..BOUNCE_BYTES + 3).contains(&beginning));
    }

    #[test]
    fn headers_become_lines_and_nothing_else() {
        let header = |name: &str, value: &str| Header {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let block = header_block(&[
            header("From", "Bob <bob@example.org>"),
            header(
                "Subject",
                "=?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nIn-Reply-To: <forged@x>",
            ),
            header("In-Reply-To", "<m1@example.com>"),
            header("X:\r\nReferences", "<forged@x>"),
            header("", "x"),
        ]);
        let received = Received::parse(&block);
        assert_eq!(received.from, "bob@example.org");
        assert_eq!(received.answers, ["<m1@example.com>"]);
        assert_eq!(received.subject, "Grüße  In-Reply-To: <forged@x>");
    }
}
