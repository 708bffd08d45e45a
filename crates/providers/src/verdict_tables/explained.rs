//! The explanations of the tables' failures agree with the verdicts on them.

use super::{Meaning, Row, TABLES, rows};
use crate::explanation::{Concern, Explanation, Next, is_general, of_failure};
use crate::mail::verdict::Verdict;

/// Rows whose answer gives no reason: no code, and no words that say why.
const GENERAL_ROWS: [&str; 5] = [
    "google smtp 554  no",
    "microsoft draft 200  ",
    "microsoft send 200  ",
    "microsoft send 204  ",
    "microsoft send 302  ",
];

/// A failing row, its stored text, and what the gateway does next.
struct Failing {
    name: String,
    text: String,
    next: Next,
    /// Whether the message may have been sent.
    is_unknown: bool,
    verdict: &'static str,
}

fn failing(provider: &str, row: &Row<'_>) -> Option<Failing> {
    let meaning = match provider {
        "google" => row.google(),
        "microsoft" => row.microsoft(),
        _ => return None,
    };
    let (text, next, is_unknown) = match &meaning {
        Meaning::Mail(Verdict::Sent { .. }, _) => return None,
        Meaning::Mail(Verdict::Temporary { failure, .. }, _) => {
            (failure.to_string(), Next::Waiting, false)
        }
        Meaning::Mail(Verdict::Unknown(failure), _) => (failure.to_string(), Next::Waiting, true),
        // A token that is refused twice is final.
        Meaning::Mail(
            Verdict::Permanent(failure)
            | Verdict::SenderRefused(failure)
            | Verdict::TokenRefused(failure),
            _,
        ) => (failure.to_string(), Next::Ended, false),
        Meaning::Token(error) if error.grant_ended().is_some() => {
            (error.to_string(), Next::Ended, false)
        }
        Meaning::Token(error) => (error.to_string(), Next::Waiting, false),
    };
    let verdict = match meaning {
        Meaning::Mail(Verdict::SenderRefused(_), _) => "sender",
        Meaning::Mail(Verdict::TokenRefused(_), _) => "token",
        Meaning::Mail(_, true) => "operator",
        Meaning::Token(error) if error.grant_ended().is_some() => "ended",
        _ => "",
    };
    let name = format!(
        "{provider} {} {} {} {}",
        row.by, row.status, row.reason, row.words
    );
    Some(Failing {
        name,
        text,
        next,
        is_unknown,
        verdict,
    })
}

fn all() -> Vec<Failing> {
    let tables = TABLES.into_iter();
    tables
        .flat_map(|(provider, table)| rows(table).filter_map(move |row| failing(provider, &row)))
        .collect()
}

/// One sentence: a capital, a full stop at the end, and none before.
fn is_sentence(text: &str) -> bool {
    text.starts_with(char::is_uppercase)
        && text.ends_with('.')
        && !text.contains(". ")
        && !text.contains("  ")
}

fn wrong(row: &Failing, explanation: &Explanation) -> Option<&'static str> {
    let Explanation {
        meaning,
        action,
        concerns,
    } = explanation;
    let both = format!("{meaning} {action}").to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| both.contains(word));
    let is_retried = action.contains("by itself");
    match row.next {
        _ if !is_sentence(meaning) || !is_sentence(action) => Some("no sentences"),
        _ if is_general(explanation) != GENERAL_ROWS.contains(&row.name.as_str()) => {
            Some("the general rule, or not")
        }
        Next::Waiting if has(&["permanent", "never", "given up", "then send"]) => {
            Some("temporary, but sounds final")
        }
        Next::Waiting if !is_retried => Some("temporary, but not retried"),
        Next::Ended if is_retried || has(&["wait", "retr", "tries again", "nothing:"]) => {
            Some("final, but sounds temporary")
        }
        _ if row.is_unknown && !action.contains("Sent folder") => {
            Some("unknown, but not looked for")
        }
        _ if ["sender", "token", "ended"].contains(&row.verdict)
            && *concerns != Concern::Mailbox =>
        {
            Some("the mailbox's concern")
        }
        _ if ["token", "ended"].contains(&row.verdict) && !action.contains("reconnect link") => {
            Some("a new connection helps")
        }
        _ if row.verdict == "operator" && *concerns != Concern::Operator => {
            Some("the operator's concern")
        }
        _ => None,
    }
}

#[test]
fn every_failing_row_is_explained_as_its_verdict_is() {
    let all = all();
    assert!(all.len() > 110, "{}", all.len());
    let wrong: Vec<String> = all
        .iter()
        .filter_map(|row| {
            let explanation = of_failure(&row.text, row.next);
            let wrong = wrong(row, &explanation)?;
            Some(format!("{}: {wrong}: {explanation:?}", row.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Retries may be used up: then none of the texts may promise another one.
#[test]
fn a_row_whose_retries_are_used_up_promises_none() {
    for row in all() {
        let Explanation {
            meaning, action, ..
        } = of_failure(&row.text, Next::Ended);
        assert!(
            is_sentence(&meaning) && is_sentence(&action),
            "{}",
            row.name
        );
        let is_retried = action.contains("by itself") || action.starts_with("Nothing");
        assert!(!is_retried, "{}: {action}", row.name);
        if row.is_unknown {
            assert!(action.contains("Sent folder"), "{}: {action}", row.name);
        }
    }
}
