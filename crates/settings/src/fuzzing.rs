//! The fuzz target of the settings file.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic if an invariant is violated"
)]

use std::net::SocketAddr;

use toml::{Table, Value};

use super::reader::Reader;
use super::{DEFAULTS, layers, parse, read};
use mailgate_types::fuzzing::Input;

/// A placeholder for secrets.
const SECRET: &str = "hunter2secret";

/// Any file: it is accepted or rejected, and no error shows a secret.
pub fn settings(data: &[u8]) {
    let Some(text) = Input::new(data).text() else {
        return;
    };
    let mut problems = Vec::new();
    let mut settings = DEFAULT_TABLE.with(Clone::clone);
    let file = parse("fuzz.toml", text, &mut problems);
    layers::lay(&mut settings, file, "fuzz.toml", &mut problems);
    if asks_for_names(&settings) {
        return;
    }
    let mut reader = Reader::new(&settings);
    let read = read(&mut reader);
    problems.extend(reader.into_problems());
    for problem in &problems {
        let told = problem.to_string();
        let is_secret = [
            "client_secret",
            "secret_key",
            "password",
            "seal",
            "operator_token",
        ]
        .iter()
        .any(|name| told.contains(name));
        assert!(!is_secret || !told.contains(SECRET), "{told}");
    }
    assert!(read.is_some() || !problems.is_empty());
    if let Some(settings) = read.filter(|_| problems.is_empty()) {
        assert!((1..=36_500).contains(&settings.log_retention_days));
        assert!(!format!("{settings:?}").contains(SECRET));
    }
}

/// Whether a listen address would need a DNS lookup, which a fuzzer must not do.
fn asks_for_names(settings: &Table) -> bool {
    settings.iter().any(|(key, value)| match value {
        Value::Table(inner) => asks_for_names(inner),
        Value::String(text) => {
            key.ends_with("listen") && !text.is_empty() && text.parse::<SocketAddr>().is_err()
        }
        _ => false,
    })
}

thread_local! {
    static DEFAULT_TABLE: Table = parse("config/default.toml", DEFAULTS, &mut Vec::new());
}
