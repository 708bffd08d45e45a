//! How long the clients felt each fault.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::crash::ledger::Ledger;

/// One fault, as the clients saw it.
struct Felt {
    lasted: Duration,
    first_success: Duration,
    last_failure: Duration,
    longest_pause: Duration,
    refused: usize,
    broken: usize,
}

/// All of them, by kind.
#[derive(Default)]
pub struct Table(BTreeMap<&'static str, Vec<Felt>>);

impl Table {
    /// A fault that began at `from`, ended at `until`, and after which all was well by `well`.
    pub fn add(&mut self, kind: &'static str, ledger: &Ledger, [from, until, well]: [Instant; 3]) {
        let answers = ledger.answers(from, well);
        let is_success =
            |word: &str| !matches!(word, "not taken" | "nothing" | "not reached" | "other");
        let count = |words: &[&str]| {
            let counted = answers.iter().filter(|(_, word)| words.contains(word));
            counted.count()
        };
        let successes: Vec<Instant> = (answers.iter())
            .filter(|(_, word)| is_success(word))
            .map(|(at, _)| *at)
            .collect();
        let last_failure = answers.iter().rev().find(|(_, word)| !is_success(word));
        let (mut last, mut longest_pause) = (from, Duration::ZERO);
        for success in successes.iter().copied().chain([well]) {
            longest_pause = longest_pause.max(success - last);
            last = success;
        }
        let felt = Felt {
            lasted: until - from,
            first_success: successes.first().map_or(well - from, |at| *at - from),
            last_failure: last_failure.map_or(Duration::ZERO, |(at, _)| *at - from),
            longest_pause,
            refused: count(&["not taken"]),
            broken: count(&["nothing", "not reached"]),
        };
        println!(
            "  lasted {:.1?}, first success after {:.1?}, last failure after {:.1?}, longest pause {:.1?}, {} refused, {} broken",
            felt.lasted,
            felt.first_success,
            felt.last_failure,
            felt.longest_pause,
            felt.refused,
            felt.broken
        );
        self.0.entry(kind).or_default().push(felt);
    }

    /// In Markdown; of several faults of a kind the longest times.
    pub fn print(&self) {
        println!(
            "| fault | times | lasted s | first success s | last failure s | longest pause s | 503 or 451 | broken |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        for (kind, felt) in &self.0 {
            let longest = |of: fn(&Felt) -> Duration| {
                let longest = felt.iter().map(of).max().unwrap_or_default();
                format!("{:.1}", longest.as_secs_f64())
            };
            println!(
                "| {kind} | {} | {} | {} | {} | {} | {} | {} |",
                felt.len(),
                longest(|it| it.lasted),
                longest(|it| it.first_success),
                longest(|it| it.last_failure),
                longest(|it| it.longest_pause),
                felt.iter().map(|it| it.refused).sum::<usize>(),
                felt.iter().map(|it| it.broken).sum::<usize>(),
            );
        }
    }
}
