//! Every error code with its status.

use std::collections::BTreeSet;

use reqwest::StatusCode;
use serde_json::Value;

use super::sources;
use crate::openapi::{document, operations, start, text};

/// Words between backticks that look like a code.
fn codes(description: &str) -> BTreeSet<String> {
    let is_code =
        |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let quoted = description.split('`').skip(1).step_by(2);
    quoted.filter(is_code).map(str::to_owned).collect()
}

/// The failures that the document knows, as `(operation, status, code)`.
pub fn failures(document: &Value) -> Vec<(String, String, String)> {
    let mut failures = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let place = format!("{method} {path}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                if status.starts_with(['4', '5']) {
                    let codes = codes(text(&response["description"]));
                    assert!(!codes.is_empty(), "{place}: {status} has no code");
                    let add = |code| (place.clone(), status.clone(), code);
                    failures.extend(codes.into_iter().map(add));
                }
            }
        }
    }
    failures
}

/// The `(status, code)` pairs of all `Problem::new` in the sources. A status or a code that isn't
/// written out there couldn't be found in the document.
pub fn made() -> BTreeSet<(String, String)> {
    let mut made = BTreeSet::new();
    for (file, source) in sources() {
        // The type's own file calls itself so.
        let own = if file == "http/problem.rs" {
            "Self::new("
        } else {
            "Problem::new("
        };
        for call in source.split(own).skip(1) {
            let mut arguments = call.splitn(3, ',').map(str::trim);
            let status = arguments.next().unwrap();
            let code = arguments.next().unwrap();
            let name = status.rsplit_once("StatusCode::").map(|(_, name)| name);
            let number = (400..600).find(|number| {
                let status = StatusCode::from_u16(*number).unwrap();
                let reason = status.canonical_reason().unwrap_or_default();
                Some(reason.to_uppercase().replace([' ', '-'], "_").as_str()) == name
            });
            let code = code.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            let (Some(number), Some(code)) = (number, code) else {
                panic!("{file}: a status and a code are to be written out: {call:.80}");
            };
            made.insert((number.to_string(), code.to_owned()));
        }
    }
    assert!(made.len() > 15, "{made:?}");
    made
}

#[tokio::test]
async fn every_error_code_is_in_the_document_with_its_status() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let failures = failures(&document);
    for (method, path) in operations(&gateway).await {
        let place = format!("{} {path}", method.to_lowercase());
        // Nothing that a caller of these does can be wrong.
        let is_health = path.ends_with('z');
        assert!(
            is_health
                || failures
                    .iter()
                    .any(|(at, status, _)| *at == place && status < &"5".to_owned()),
            "{place} never fails"
        );
    }
    // What any path may answer stands in front.
    let overall = text(&document["info"]["description"]);
    let made = made();
    for (status, code) in &made {
        let is_described = failures
            .iter()
            .any(|(_, at, word)| at == status && word == code);
        assert!(
            is_described || overall.contains(&format!("{status} `{code}`")),
            "{status} {code}"
        );
    }
    for (place, status, code) in failures {
        let is_made = made.contains(&(status.clone(), code.clone()));
        assert!(is_made, "{place}: {status} {code} is never answered");
    }
    gateway.stop().await;
}
