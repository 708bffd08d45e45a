//! Reads every log line of the whole suite, at every level and of every crate, as `log.addresses = "hashed"`
//! writes it: one that holds a key, or a test's mail address, ends the test process at once.

use std::io::{self, Write};

use mailgate_telemetry::addresses::Hashing;
use mailgate_types::seal::SealKeys;
use memchr::memmem;
use tracing_subscriber::fmt::MakeWriter;

use super::gateway::SEAL_KEY;

/// How secret keys begin; 43 letters and digits follow, of webhook configurations 32 of base64 at least.
const PREFIXES: [&[u8]; 4] = [b"sk_", b"sek_", b"whs_", CONFIGURATION];
const LENGTH: usize = 43;
const CONFIGURATION: &[u8] = b"whsec_";
const BASE64_LENGTH: usize = 32;

/// Where the mailboxes and recipients of tests are.
const DOMAINS: [&[u8]; 3] = [b"example.com", b"sandbox.example", b"example.org"];

/// Begins to read, once for the process.
pub fn start() {
    let keys = SealKeys::parse([SEAL_KEY]).expect("the key is one");
    let started = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(Hashing::new(Reader, keys.address_hash()))
        .try_init();
    // The second gateway of the process finds it reading.
    drop(started);
}

struct Reader;

impl<'a> MakeWriter<'a> for Reader {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

impl Write for Reader {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(position) = key_within(line) {
            // The key itself must not be shown here either.
            let before = String::from_utf8_lossy(&line[..position]);
            eprintln!("a log line holds a key, behind: {before}");
            std::process::abort();
        }
        if let Some(position) = address_within(line) {
            let line = String::from_utf8_lossy(line);
            eprintln!("a log line holds an address, at {position}: {line}");
            std::process::abort();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn key_within(line: &[u8]) -> Option<usize> {
    PREFIXES.iter().find_map(|prefix| {
        let in_base64 = *prefix == CONFIGURATION;
        let length = if in_base64 { BASE64_LENGTH } else { LENGTH };
        let belongs = |byte: &u8| {
            byte.is_ascii_alphanumeric() || (in_base64 && matches!(byte, b'+' | b'/' | b'='))
        };
        memmem::find_iter(line, prefix).find(|position| {
            line.get(position + prefix.len()..position + prefix.len() + length)
                .is_some_and(|key| key.iter().all(belongs))
        })
    })
}

/// Where the domain of a test's address stands behind an at sign, whatever may be before it.
fn address_within(line: &[u8]) -> Option<usize> {
    DOMAINS.iter().find_map(|domain| {
        memmem::find_iter(line, domain).find(|position| {
            let before = &line[..*position];
            [&b"@"[..], b"%40"].iter().any(|sign| {
                let local = before.strip_suffix(*sign).and_then(<[u8]>::last);
                local.is_some_and(u8::is_ascii_alphanumeric)
            })
        })
    })
}

#[test]
fn keys_are_seen_and_nothing_else() {
    let key = "a".repeat(LENGTH);
    for (line, seen) in [
        (format!("x=sek_{key}"), true),
        (format!("\"api_secret\":\"sk_{key}\""), true),
        (format!("whs_{key}"), true),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa+/".to_owned(), true),
        ("whsec_MfKQ…LaSw".to_owned(), false),
        (format!("pk_{key}"), false),
        (format!("sk_{}", &key[1..]), false),
        ("sek_[masked]".to_owned(), false),
    ] {
        assert_eq!(key_within(line.as_bytes()).is_some(), seen, "{line}");
    }
}

#[test]
fn addresses_are_seen_and_nothing_else() {
    for (line, seen) in [
        ("to bob@example.com", true),
        ("login_hint=ada%40sandbox.example", true),
        ("address:0123456789abcdef", false),
        ("https://example.com/x", false),
        ("@example.com", false),
    ] {
        assert_eq!(address_within(line.as_bytes()).is_some(), seen, "{line}");
    }
}
