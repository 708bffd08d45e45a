//! The providers' responses and the verdicts on them, row by row of `tests/verdicts`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod explained;

use std::time::Duration;

use serde_json::{Value, json};

use super::mail::oauth::{self, OAuthError};
use super::mail::verdict::Verdict;
use super::mail::{gmail, graph, smtp};
use super::payprov;

const TABLES: [(&str, &str); 3] = [
    ("google", include_str!("../../../tests/verdicts/google.md")),
    (
        "microsoft",
        include_str!("../../../tests/verdicts/microsoft.md"),
    ),
    ("stripe", include_str!("../../../tests/verdicts/stripe.md")),
];

/// One row: the request, its response, and the expected verdict.
struct Row<'a> {
    by: &'a str,
    status: u16,
    /// The provider's error code.
    reason: &'a str,
    retry_after: Option<Duration>,
    should_retry: Option<bool>,
    words: &'a str,
    verdict: &'a str,
    source: &'a str,
}

fn rows(table: &str) -> impl Iterator<Item = Row<'_>> {
    let lines = table.lines().filter_map(|line| line.strip_prefix("| "));
    lines.skip(1).map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [by, answer, words, verdict, source, ""] = cells[..] else {
            panic!("a row of five: {line}");
        };
        let (answer, header) = answer.split_once("; ").unwrap_or((answer, ""));
        let (status, reason) = answer.split_once(' ').unwrap_or((answer, ""));
        let value = |name: &str| header.strip_prefix(name).map(str::trim);
        Row {
            by,
            status: status.parse().unwrap(),
            reason,
            retry_after: value("Retry-After")
                .map(|seconds| Duration::from_secs(seconds.parse().unwrap())),
            should_retry: value("should-retry").map(|word| word == "true"),
            words,
            verdict,
            source,
        }
    })
}

/// What a response means.
enum Meaning {
    /// For a message, and whether the operator must act.
    Mail(Verdict, bool),
    /// For a token.
    Token(OAuthError),
}

impl Row<'_> {
    fn google(&self) -> Meaning {
        match self.by {
            "api" => {
                let body = match self.reason {
                    "" if self.words.is_empty() => Value::Null,
                    "id" => json!({ "id": "18c1", "threadId": "18c1", "labelIds": ["SENT"] }),
                    reason => json!({ "error": {
                        "code": self.status,
                        "message": self.words,
                        "errors": [{ "message": self.words, "domain": "global", "reason": reason }],
                    } }),
                };
                let (verdict, is_switched_off) =
                    gmail::verdict_on(self.status, self.retry_after, body);
                Meaning::Mail(verdict, is_switched_off)
            }
            _ => self.both(),
        }
    }

    fn microsoft(&self) -> Meaning {
        match self.by {
            "draft" | "upload" | "send" => {
                let body = if self.reason.is_empty() {
                    Vec::new()
                } else {
                    let error = json!({ "code": self.reason, "message": self.words });
                    json!({ "error": error }).to_string().into_bytes()
                };
                let verdict = graph::verdict_on(self.by, self.status, self.retry_after, body);
                Meaning::Mail(verdict, false)
            }
            _ => self.both(),
        }
    }

    fn both(&self) -> Meaning {
        match self.by {
            "smtp" | "login" => Meaning::Mail(
                smtp::verdict_on(self.status, self.words, self.by == "login"),
                false,
            ),
            "token" => {
                let body = json!({ "error": self.reason, "error_description": self.words });
                Meaning::Token(oauth::error_on(self.status, body.to_string().as_bytes()))
            }
            by => panic!("no known way: {by}"),
        }
    }

    fn stripe(&self) -> String {
        let error = json!({ "type": "any", "code": self.reason, "message": self.words });
        let body = json!({ "error": error });
        let error = payprov::error_on(self.status, body, self.should_retry);
        let shown = match error {
            payprov::PayprovError::Unavailable { .. } => "again",
            error if error.is_missing() => "missing",
            _ => "refused",
        };
        shown.to_owned()
    }
}

impl Meaning {
    fn shown(&self) -> String {
        match self {
            Self::Mail(verdict, is_switched_off) => match shown(verdict).as_str() {
                "later" if *is_switched_off => "operator".to_owned(),
                shown => shown.to_owned(),
            },
            Self::Token(error) => error.grant_ended().map_or_else(
                || "kept".to_owned(),
                |reason| format!("ended {}", reason.as_str()),
            ),
        }
    }
}

fn shown(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Sent { .. } => "sent".to_owned(),
        Verdict::Temporary {
            retry_after: None, ..
        } => "later".to_owned(),
        Verdict::Temporary {
            retry_after: Some(wait),
            ..
        } if *wait == Duration::from_hours(4) => "in 4 h".to_owned(),
        Verdict::Temporary {
            retry_after: Some(wait),
            ..
        } => format!("after {} s", wait.as_secs()),
        Verdict::Permanent(_) => "never".to_owned(),
        Verdict::SenderRefused(_) => "sender".to_owned(),
        Verdict::Unknown(_) => "unknown".to_owned(),
        Verdict::TokenRefused(_) => "token".to_owned(),
    }
}

#[test]
fn every_row_of_the_tables() {
    let mut wrong = Vec::new();
    for (provider, table) in TABLES {
        for row in rows(table) {
            let verdict = match provider {
                "google" => row.google().shown(),
                "microsoft" => row.microsoft().shown(),
                _ => row.stripe(),
            };
            if verdict != row.verdict {
                wrong.push(format!(
                    "{provider}: {} {} {} {}: {verdict} instead of {}",
                    row.by, row.status, row.reason, row.words, row.verdict
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A row names its source document, whose URL is in the table; or says that there is none.
#[test]
fn every_row_names_its_source() {
    for (provider, table) in TABLES {
        assert!(rows(table).count() >= 20, "{provider}");
        for row in rows(table) {
            let address = format!("\n{}: https://", row.source);
            assert!(
                row.source == "none" || table.contains(&address),
                "{provider}: {} {}: {}",
                row.by,
                row.status,
                row.source
            );
        }
    }
}
