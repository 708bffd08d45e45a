//! Helpers for fuzz targets, and the targets of this crate. A target takes any bytes and panics if an invariant is
//! violated.

#![expect(
    clippy::must_use_candidate,
    clippy::missing_panics_doc,
    reason = "targets panic if an invariant is violated"
)]

use secrecy::ExposeSecret;

use super::email_address::EmailAddress;
use super::ids::{LogId, WebhookConfigId};
use super::named_address::NamedAddress;
use super::seal::SealKeys;
use super::secrets::PushableKey;
use super::signing_secret::SigningSecret;
use super::slug::slug;

/// The fuzzer's input, consumed from the front: choices first, the data to parse last.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// The whole input.
    pub fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    /// The next byte; 0 if nothing is left.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    /// A number from the next two bytes.
    pub fn number(&mut self) -> usize {
        (usize::from(self.byte()) << 8) | usize::from(self.byte())
    }

    /// A flag from the next byte.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Up to `length` bytes.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Where to split: a count byte, then the lengths.
    pub fn cuts(&mut self) -> &'a [u8] {
        let count = self.byte() % 16;
        self.take(count.into())
    }

    /// The rest of the input.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// The rest as text, if it is UTF-8.
    pub fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.0).ok()
    }
}

/// Splits `bytes` into pieces of these lengths, in a cycle; a length of 0 stands for 256, and without any lengths the
/// bytes stay in one piece.
pub fn pieces<'a>(bytes: &'a [u8], cuts: &[u8]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let length = usize::from(*cut).wrapping_sub(1) % 256 + 1;
        let (piece, behind) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

/// Text in message form: every line ends in CRLF, and there is no NUL.
pub fn with_line_ends(text: &[u8]) -> Vec<u8> {
    let mut content = Vec::with_capacity(text.len() + text.len() / 16);
    for byte in text {
        match byte {
            b'\n' => content.extend_from_slice(b"\r\n"),
            b'\r' | 0 => {}
            byte => content.push(*byte),
        }
    }
    content
}

/// Whether a text is safe for a log line and a database.
pub fn is_printable(text: &str) -> bool {
    !text.contains(char::is_control)
}

/// Addresses, with and without names, and everything derived from them.
pub fn addresses(data: &[u8]) {
    let Some(text) = Input::new(data).text() else {
        return;
    };
    if let Ok(address) = EmailAddress::parse(text) {
        assert_eq!(address.as_str(), text);
        assert!(text.len() <= 254 && is_printable(text), "{text:?}");
        assert_eq!(
            format!("{}@{}", address.local_part(), address.domain()),
            text
        );
        assert!(!address.domain().is_empty() && !address.local_part().is_empty());
        let key = EmailAddress::parse(&address.lookup_key());
        assert!(key.is_ok_and(|key| key.same_mailbox(&address)), "{text:?}");
        for written in [format!("<{text}>"), format!("\"n, @ <x>\" <{text}>")] {
            let named = NamedAddress::parse(&written).map(|named| named.address);
            assert_eq!(named.as_ref(), Ok(&address), "{written:?}");
        }
    }
    if let Ok(named) = NamedAddress::parse(text) {
        assert!(text.contains(named.address.as_str()));
        if let Some(name) = &named.name {
            assert!(is_printable(name) && name.chars().count() <= 255 && !name.is_empty());
            let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
            let again = NamedAddress::parse(&format!("\"{quoted}\" <{}>", named.address));
            assert_eq!(again.as_ref(), Ok(&named), "{text:?}");
        }
    }
}

/// Names, ids and secrets as sent by callers.
pub fn identifiers(data: &[u8]) {
    let Some(text) = Input::new(data).text() else {
        return;
    };
    let made = slug(text);
    assert!((1..=64).contains(&made.len()), "{made:?}");
    let is_slug = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    assert!(made.bytes().all(is_slug), "{made:?}");
    assert_eq!(slug(&made), made);
    if let Ok(id) = text.parse::<LogId>() {
        assert_eq!(id.to_string(), text);
        // An invented id may contain any time.
        let _ = id.moment();
    }
    if let Ok(id) = text.parse::<WebhookConfigId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Some(key) = PushableKey::parse(text) {
        assert_eq!(key.expose(), text);
        assert!(!format!("{key:?}").contains(text));
    }
    if let Ok(secret) = SigningSecret::parse(text) {
        assert_eq!(secret.expose(), text);
        let shown = secret.truncated();
        let shown = shown.strip_prefix("whsec_").unwrap_or(&shown);
        assert!(shown.chars().count() <= 9 && !format!("{secret:?}").contains(text));
    }
}

/// Sealed values, which may come back modified.
pub fn sealed_values(data: &[u8]) {
    const KEYS: [&str; 2] = [
        "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "k2:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
    ];
    let Ok(keys) = SealKeys::parse(KEYS) else {
        unreachable!("the keys are good");
    };
    assert!(keys.unseal("fuzz", data).is_err(), "nobody sealed it");
    let mut input = Input::new(data);
    let (place, change) = (input.number(), input.byte());
    let text = String::from_utf8_lossy(input.rest());
    let Ok(mut sealed) = keys.seal("fuzz", &text) else {
        return;
    };
    let opened = keys.unseal("fuzz", &sealed);
    assert!(opened.is_ok_and(|opened| opened.expose_secret() == text));
    assert!(keys.unseal("elsewhere", &sealed).is_err());
    let place = place % sealed.len();
    sealed[place] ^= change.max(1);
    assert!(
        keys.unseal("fuzz", &sealed).is_err(),
        "byte {place} changed"
    );
    sealed.truncate(place);
    assert!(keys.unseal("fuzz", &sealed).is_err(), "cut at {place}");
}
