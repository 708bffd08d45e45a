//! Email addresses and client addresses in log lines: unchanged, or hashed, so that lines about one address can still
//! be correlated without revealing it.

use std::io::{self, Write};
use std::sync::Arc;

use tracing_subscriber::fmt::MakeWriter;

use mailgate_types::seal::AddressHash;

/// A log writer that hashes each address.
#[derive(Clone)]
pub struct Hashing<W> {
    inner: W,
    hash: Arc<AddressHash>,
}

impl<W> Hashing<W> {
    /// Writes to `inner`.
    #[must_use]
    pub fn new(inner: W, hash: AddressHash) -> Self {
        Self {
            inner,
            hash: Arc::new(hash),
        }
    }
}

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for Hashing<W> {
    type Writer = HashingWriter<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        HashingWriter {
            inner: self.inner.make_writer(),
            hash: Arc::clone(&self.hash),
        }
    }
}

/// Writes one line, passed in one call.
pub struct HashingWriter<W> {
    inner: W,
    hash: Arc<AddressHash>,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.inner.write_all(&hidden(line, &self.hash))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The field with a client's address.
const CLIENT: &[u8] = b"client_address";

/// The line with each address replaced by `address:` and 16 hexadecimal digits.
fn hidden(line: &[u8], hash: &AddressHash) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut done = 0;
    if let Some((start, end)) = client(line) {
        out.extend_from_slice(&line[..start]);
        push(&mut out, &line[start..end], hash);
        done = end;
    }
    while let Some((at, sign)) = next_sign(line, done) {
        let start = local_part(line, done, at);
        let behind = at + sign;
        let end = behind + domain_length(&line[behind..]);
        if start == at || end == behind {
            out.extend_from_slice(&line[done..behind]);
            done = behind;
            continue;
        }
        out.extend_from_slice(&line[done..start]);
        let address = [&line[start..at], b"@", &line[behind..end]].concat();
        push(&mut out, &address, hash);
        done = end;
    }
    out.extend_from_slice(&line[done..]);
    out
}

fn push(out: &mut Vec<u8>, address: &[u8], hash: &AddressHash) {
    let address = String::from_utf8_lossy(address).to_lowercase();
    out.extend_from_slice(b"address:");
    out.extend_from_slice(hash.of(&address).as_bytes());
}

/// The position of a client's address: after the field's name in JSON, or in text, which is coloured on terminals.
fn client(line: &[u8]) -> Option<(usize, usize)> {
    let name = memchr::memmem::find(line, CLIENT)? + CLIENT.len();
    let rest = &line[name..];
    let value = rest.strip_prefix(b"\":\"").or_else(|| {
        let value = without_colours(rest).strip_prefix(b"=")?;
        Some(without_colours(value))
    })?;
    let is_of_address = |byte: &&u8| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':');
    let length = value.iter().take_while(is_of_address).count();
    let start = line.len() - value.len();
    (length > 0).then_some((start, start + length))
}

/// Skips the escape sequences that select colours (ECMA-48 §8.3.117).
fn without_colours(mut text: &[u8]) -> &[u8] {
    while let Some(sequence) = text.strip_prefix(b"\x1b[") {
        let Some(end) = memchr::memchr(b'm', sequence) else {
            break;
        };
        text = &sequence[end + 1..];
    }
    text
}

/// The position of the next `@`, and its length: in a query it is `%40`.
fn next_sign(line: &[u8], from: usize) -> Option<(usize, usize)> {
    let rest = &line[from..];
    let plain = memchr::memchr(b'@', rest).map(|at| (from + at, 1));
    let encoded = memchr::memmem::find(rest, b"%40").map(|at| (from + at, 3));
    match (plain, encoded) {
        (Some(plain), Some(encoded)) => Some(plain.min(encoded)),
        (plain, encoded) => plain.or(encoded),
    }
}

/// The start of the part before the `@`.
fn local_part(line: &[u8], from: usize, at: usize) -> usize {
    let before = &line[from..at];
    // "Ada Lovelace"@example.com; in JSON its quotes have backslashes.
    if let Some(inner) = before.strip_suffix(b"\"") {
        let opened = memchr::memrchr(b'"', inner);
        return from
            + opened.map_or(0, |quote| {
                quote - usize::from(quote > 0 && inner[quote - 1] == b'\\')
            });
    }
    let length = before
        .iter()
        .rev()
        .take_while(|byte| is_of_local_part(**byte))
        .count();
    let local = &before[before.len() - length..];
    // A field name and its value, or a quotation: the address begins after it.
    let named = memchr::memchr(b'=', local).map_or(0, |end| {
        let name = local[..end].iter().rev();
        let name = name.take_while(|byte| byte.is_ascii_lowercase() || **byte == b'_');
        let before = &local[..end - name.count()];
        let is_name = before.last().is_none_or(|byte| b"?&{".contains(byte));
        if is_name { end + 1 } else { 0 }
    });
    let quotes = local[named..]
        .iter()
        .take_while(|byte| matches!(byte, b'\'' | b'`' | b'{'))
        .count();
    at - length + named + quotes
}

/// RFC 5322 §3.2.3 atext and the dot, and non-ASCII characters (RFC 6531).
fn is_of_local_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b".!#$%&'*+-/=?^_`{|}~".contains(&byte)
}

fn domain_length(rest: &[u8]) -> usize {
    if rest.first() == Some(&b'[') {
        return memchr::memchr(b']', rest).map_or(0, |end| end + 1);
    }
    let is_of_domain = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'.' | b'-')
    };
    let length = rest.iter().take_while(is_of_domain).count();
    // A full stop may follow.
    rest[..length]
        .iter()
        .rposition(|byte| *byte != b'.')
        .map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;
    use mailgate_types::seal::SealKeys;

    fn hash(byte: u8) -> AddressHash {
        use base64::Engine as _;
        let key = base64::engine::general_purpose::STANDARD.encode([byte; 32]);
        SealKeys::parse([format!("k:{key}").as_str()])
            .unwrap()
            .address_hash()
    }

    fn hide(line: &str) -> String {
        String::from_utf8(hidden(line.as_bytes(), &hash(1))).unwrap()
    }

    #[test]
    fn addresses_are_hashed_wherever_they_stand() {
        let bob = format!("address:{}", hash(1).of("bob@example.com"));
        for (line, expected) in [
            (
                "550 5.1.1 <bob@example.com> unknown",
                format!("550 5.1.1 <{bob}> unknown"),
            ),
            (
                "550 5.1.1 <BOB@Example.COM> unknown",
                format!("550 5.1.1 <{bob}> unknown"),
            ),
            ("to=bob@example.com, x", format!("to={bob}, x")),
            ("'bob@example.com' is full.", format!("'{bob}' is full.")),
            ("ask bob@example.com.", format!("ask {bob}.")),
            (
                r#"{"error":"bob@example.com"}"#,
                format!(r#"{{"error":"{bob}"}}"#),
            ),
            (
                "?login_hint=bob%40example.com&x",
                format!("?login_hint={bob}&x"),
            ),
            ("bob@example.com,bob@example.com", format!("{bob},{bob}")),
            ("nothing here", "nothing here".to_owned()),
            ("a @ b, @x, x@", "a @ b, @x, x@".to_owned()),
            ("a%40", "a%40".to_owned()),
        ] {
            assert_eq!(hide(line), expected, "{line}");
        }
        for line in [
            "\"Ada Lovelace\"@example.com",
            r#"{"error":"\"Ada Lovelace\"@example.com"}"#,
            "ada@[192.0.2.1]",
            "jörg@exämple.de",
            "bounce+ada=x.example@list.example",
            "o'ada@example.com",
        ] {
            let hidden = hide(line).to_lowercase();
            assert!(hidden.contains("address:"), "{line}: {hidden}");
            for part in ["ada", "lovelace", "example.com", "192", "jörg", "o'"] {
                assert!(!hidden.contains(part), "{line}: {hidden}");
            }
        }
    }

    #[test]
    fn a_clients_address_is_hashed() {
        let of = |address: &str| format!("address:{}", hash(1).of(address));
        for (line, expected) in [
            (
                r#"{"action":"x","client_address":"192.0.2.7","message":"audit"}"#,
                format!(
                    r#"{{"action":"x","client_address":"{}","message":"audit"}}"#,
                    of("192.0.2.7")
                ),
            ),
            (
                r#"{"client_address":"::1"}"#,
                format!(r#"{{"client_address":"{}"}}"#, of("::1")),
            ),
            (
                "audit action=\"x\" client_address=2001:db8::1 more=1",
                format!(
                    "audit action=\"x\" client_address={} more=1",
                    of("2001:db8::1")
                ),
            ),
            (
                "\u{1b}[3mclient_address\u{1b}[0m\u{1b}[2m=\u{1b}[0m192.0.2.7\n",
                format!(
                    "\u{1b}[3mclient_address\u{1b}[0m\u{1b}[2m=\u{1b}[0m{}\n",
                    of("192.0.2.7")
                ),
            ),
            (
                "client_address=192.0.2.7 to bob@example.com",
                format!(
                    "client_address={} to {}",
                    of("192.0.2.7"),
                    of("bob@example.com")
                ),
            ),
            ("http=127.0.0.1:8080", "http=127.0.0.1:8080".to_owned()),
            ("client_address", "client_address".to_owned()),
        ] {
            assert_eq!(hide(line), expected, "{line}");
        }
    }

    #[test]
    fn another_key_gives_another_hash() {
        assert_ne!(hash(1).of("bob@example.com"), hash(2).of("bob@example.com"));
        assert_eq!(hash(1).of("bob@example.com").len(), 16);
    }

    proptest! {
        #[test]
        fn any_line_goes_through_and_no_address_does(
            before in "[ -~é]{0,20}[ <\"(]",
            local in "[a-z0-9.+_-]{1,12}",
            domain in "[a-z0-9]{1,8}(\\.[a-z]{2,5}){1,2}",
            behind in "[ >\")][ -~é]{0,20}",
        ) {
            let address = format!("{local}@{domain}");
            let shown = hide(&format!("{before}{address}{behind}"));
            prop_assert!(!shown.contains(&address), "{}", shown);
        }
    }
}
