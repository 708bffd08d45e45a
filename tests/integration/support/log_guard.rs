//! Reads every log line of the whole suite, at every level and of every crate: one that holds a key
//! ends the test process at once.

use std::io::{self, Write};

use memchr::memmem;
use tracing_subscriber::fmt::MakeWriter;

/// How secret keys begin; 43 letters and digits follow, of webhook configurations 32 of base64 at least.
const PREFIXES: [&[u8]; 4] = [b"sk_", b"sek_", b"whs_", CONFIGURATION];
const LENGTH: usize = 43;
const CONFIGURATION: &[u8] = b"whsec_";
const BASE64_LENGTH: usize = 32;

/// Begins to read, once for the process.
pub fn start() {
    let started = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(Reader)
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
