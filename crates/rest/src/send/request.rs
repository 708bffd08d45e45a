//! The body of `POST /send`, and its description.

use std::io::{self, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::read::DecoderReader;
use serde::Deserialize;
use serde::de::MapAccess;
use serde::de::value::MapAccessDeserializer;
use utoipa::ToSchema;
use utoipa::openapi::SchemaFormat;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type};

use crate::http::field::{Field, Kind, List, Texts};
use mailgate_domain::compose::{HEADER_LENGTH, MOST_HEADERS};
use mailgate_types::metadata::{KEY_LENGTH, MOST, VALUE_LENGTH};
use mailgate_types::plugin::Plugin;

/// A message to send.
#[derive(Deserialize, Default, ToSchema)]
#[schema(example = json!({
    "pk": "pk_7hQ2mT9vXzK4pLwYc1RbN8sHdGjA5uE3oVi6xWq0BtM",
    "to": "bob@example.com",
    "subject": "Your invoice",
    "body": "It is attached.",
    "attachments": [{ "filename": "invoice.txt", "content_type": "text/plain", "content": "SGVsbG8=" }]
}))]
pub(super) struct SendRequest {
    /// The app's pushable key, `pk_…`.
    #[schema(value_type = String, required)]
    pub(super) pk: Field<String>,
    /// One recipient's address, without a name.
    #[schema(value_type = String, required, max_length = 254, format = "idn-email", example = "bob@example.com")]
    pub(super) to: Field<String>,
    #[schema(schema_with = cc, required = false)]
    pub(super) cc: Field<List<String>>,
    #[schema(schema_with = bcc, required = false)]
    pub(super) bcc: Field<List<String>>,
    /// The address for replies, if not the mailbox's, without a name.
    #[schema(value_type = Option<String>, max_length = 254, format = "idn-email", example = "support@example.com")]
    pub(super) reply_to: Field<String>,
    /// The address to send as: one of the `addresses` of a connected mailbox. With several mailboxes, it selects one.
    /// A name before it is shown to recipients.
    #[schema(value_type = Option<String>, min_length = 1, pattern = r"^[^\x00-\x1f\x7f]*$", example = "Ada <ada@example.com>")]
    pub(super) from: Field<String>,
    /// The subject.
    #[schema(value_type = String, required, max_length = 998, pattern = r"^[^\r\n\x00]*$")]
    pub(super) subject: Field<String>,
    /// The plain text; required unless `html` is given.
    #[schema(value_type = Option<String>, pattern = r"^[^\x00]*$")]
    pub(super) body: Field<String>,
    /// The HTML; required unless `body` is given.
    #[schema(value_type = Option<String>, pattern = r"^[^\x00]*$")]
    pub(super) html: Field<String>,
    #[schema(schema_with = headers, required = false)]
    pub(super) headers: Field<Texts>,
    /// File attachments.
    #[schema(value_type = Option<Vec<AttachmentRequest>>, max_items = 100)]
    pub(super) attachments: Field<List<AttachmentRequest>>,
    /// The end user whose mailbox sends the message: your own ID for the user, or the `user_key`. Required when the
    /// app is multiuser.
    #[schema(value_type = Option<String>, max_length = 255, pattern = r"^[^\x00]*$")]
    pub(super) user_id: Field<String>,
    #[schema(schema_with = metadata, required = false)]
    pub(super) metadata: Field<Texts>,
    /// Restricts the mailbox to one kind of provider.
    #[schema(value_type = Option<Plugin>)]
    pub(super) plugin: Field<String>,
    /// When to send the message: RFC 3339 with an offset, later than now and up to 30 days ahead. The response is then
    /// 202 `scheduled`.
    #[schema(value_type = Option<String>, format = DateTime, max_length = 100, example = "2026-12-24T09:00:00+01:00")]
    pub(super) send_at: Field<String>,
}

/// A file attachment.
#[derive(Deserialize, Default, ToSchema)]
pub(super) struct AttachmentRequest {
    /// Its file name, without a folder.
    #[schema(value_type = String, required, min_length = 1, max_length = 255, pattern = r"^[^/\\\x00-\x1f\x7f-\x9f]*$", example = "invoice.pdf")]
    pub(super) filename: Field<String>,
    /// Its media type; neither `multipart/…` nor `message/…`.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"^[\x20-\x7e]*$", default = "application/octet-stream", example = "application/pdf")]
    pub(super) content_type: Field<String>,
    /// Its bytes in base64: the standard alphabet with padding. Line breaks are allowed.
    #[schema(value_type = String, required, pattern = r"^[A-Za-z0-9+/=\r\n]*$", content_encoding = "base64", example = "SGVsbG8=")]
    pub(super) content: Field<Base64Content>,
    /// Makes it an inline part, which `html` references as `cid:` and this value. Without angle brackets; each may be
    /// used once.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"^[A-Za-z0-9.@!#$%&'*+/=?^_`{|}~-]*$", example = "logo")]
    pub(super) content_id: Field<String>,
}

impl Kind for AttachmentRequest {
    const WANTED: &'static str = "must be an object";

    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

/// A file's bytes, decoded while the body is parsed, so that the text isn't kept; `None` if it isn't
/// base64.
#[derive(Debug, Default)]
pub(super) struct Base64Content(pub(super) Option<Vec<u8>>);

impl Kind for Base64Content {
    const WANTED: &'static str = "must be a base64 string";

    fn from_text(text: &str) -> Option<Self> {
        Some(Self(decode(text)))
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    if memchr::memchr2(b'\r', b'\n', text.as_bytes()).is_none() {
        return STANDARD.decode(text).ok();
    }
    let mut content = Vec::with_capacity(text.len() / 4 * 3);
    let mut decoder = DecoderReader::new(WithoutLineEnds(text.as_bytes()), &STANDARD);
    decoder.read_to_end(&mut content).ok().map(|_| content)
}

/// Reads a string without its line breaks.
struct WithoutLineEnds<'a>(&'a [u8]);

impl Read for WithoutLineEnds<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let [b'\r' | b'\n', rest @ ..] = self.0 {
            self.0 = rest;
        }
        let end = memchr::memchr2(b'\r', b'\n', self.0).unwrap_or(self.0.len());
        let (mut line, _) = self.0.split_at(end);
        let length = line.read(buffer)?;
        self.0 = &self.0[length..];
        Ok(length)
    }
}

fn cc() -> Schema {
    addresses(
        "Addresses in Cc, without names. An address given more than once gets the message once; \
         `to`, `cc` and `bcc` together may have 100 addresses, unless the operator has set another limit.",
    )
}

fn bcc() -> Schema {
    addresses("Addresses in Bcc, which other recipients don't see, without names.")
}

fn addresses(description: &str) -> Schema {
    let address = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::Custom("idn-email".to_owned())))
        .max_length(Some(254))
        .examples(["carol@example.com"]);
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
        .description(Some(description))
        .items(address)
        .into()
}

fn headers() -> Schema {
    let name = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(76))
        .pattern(Some("^[!-9;-~]*$"));
    let value = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(HEADER_LENGTH))
        .pattern(Some(
            r"^(?:[^\x00-\x20\x7f-\x9f]{0,998} )*[^\x00-\x20\x7f-\x9f]{0,998}$",
        ));
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some(
            "Headers of your own, each name once, of 64,000 characters in all: `In-Reply-To`, `References`, `List-Unsubscribe`, \
             `Auto-Submitted`, `X-…` and the like. Not those that another field sets, nor `Sender`, \
             `Date`, `Message-ID`, `Received`, `Received-SPF`, `Return-Path`, `Delivered-To`, \
             `Resent-…`, `MIME-Version`, `Content-…`, `DKIM-Signature`, `ARC-…`, \
             `Authentication-Results`, `Idempotency-Key`, `X-Mailgate-…`.",
        ))
        .property_names(Some(Schema::from(name)))
        .additional_properties(Some(Schema::from(value)))
        .max_properties(Some(MOST_HEADERS))
        .into()
}

fn metadata() -> Schema {
    let name = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(KEY_LENGTH))
        .pattern(Some("^[A-Za-z0-9_.-]*$"));
    let value = ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(VALUE_LENGTH))
        .pattern(Some(r"^[^\x00-\x1f\x7f-\x9f]*$"));
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some(
            "Strings of your own, which the log and the message's events return, and no recipient sees. Keys \
            that differ only in case are the same, and can't both be given.",
        ))
        .property_names(Some(Schema::from(name)))
        .additional_properties(Some(Schema::from(value)))
        .max_properties(Some(MOST))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn base64_is_strict_but_for_line_ends() {
        for (text, expected) in [
            ("", Some("")),
            ("SGVsbG8=", Some("Hello")),
            ("SGVs\r\nbG8=\r\n", Some("Hello")),
            ("S\nG\nV\nsbG8\n=", Some("Hello")),
            ("\r\n", Some("")),
            ("SGVsbG8", None),
            ("SGVsbG8==", None),
            ("SGVsbG8=SGVsbG8=", None),
            ("SGVsbG9=", None),
            ("SGVs bG8=", None),
            ("SGVs\tbG8=", None),
            ("-_-_", None),
            ("SGVs\nbG8", None),
            ("SGVs\nbG9=", None),
            ("data:text/plain;base64,SGVsbG8=", None),
            ("ü", None),
            ("=", None),
        ] {
            let decoded = decode(text);
            assert_eq!(decoded.as_deref(), expected.map(str::as_bytes), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn line_ends_change_nothing(content in prop::collection::vec(any::<u8>(), 0..5_000), width in 1_usize..200) {
            let text = STANDARD.encode(&content);
            let lines: Vec<&str> = text
                .as_bytes()
                .chunks(width)
                .map(|line| std::str::from_utf8(line).unwrap_or_default())
                .collect();
            let decoded = decode(&lines.join("\r\n"));
            prop_assert_eq!(decoded.as_deref(), Some(content.as_slice()));
            prop_assert_eq!(decode(&text), Some(content));
        }
    }
}
