//! The README as its readers use it: every sample and command that stands in it is run as it stands, every
//! configuration is read by the gateway's own reader, and its tables are held against what they list.

mod blocks;
mod commands;
mod configurations;
mod languages;
mod line;
mod receiving;
mod sending;
mod tables;

use blocks::{Block, blocks};
use languages::Language;

/// What a test does with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A program that sends by REST.
    SendByRest(Language),
    /// A program that sends by SMTP.
    SendBySmtp(Language),
    /// A program that receives webhooks.
    Receive(Language),
    /// Settings.
    Configuration,
    /// Variables for the programs.
    Environment,
    /// Commands for a subscriber's shell.
    Gateway,
    /// Commands for the shell of somebody who runs `make dev`.
    Dev,
    /// Commands for an operator's shell.
    Operator,
    /// Nothing here, for this reason.
    Elsewhere(&'static str),
}

/// The blocks without a mark, by how they begin.
const UNMARKED: [(&str, Use); 18] = [
    (
        "make ",
        Use::Elsewhere(
            "builds the product or runs these tests; tests/integration/command_line runs what `make dev` does",
        ),
    ),
    (" REST  ", Use::Elsewhere("a drawing")),
    ("KEY=$(python3 ", Use::Dev),
    ("curl -w '\\n' -X POST http://127.0.0.1:8080/", Use::Dev),
    ("eval \"$(python3 ", Use::Dev),
    ("export MAILGATE_WEBHOOK_SECRET=", Use::Dev),
    ("curl https://gateway.example/send ", Use::Gateway),
    ("curl https://gateway.example/apps \\", Use::Gateway),
    ("swaks --server smtp.gateway.example ", Use::Gateway),
    (
        "curl https://gateway.example/apps/pk_…/connect-sessions ",
        Use::Gateway,
    ),
    (
        "curl https://gateway.example/apps/pk_…/webhooks ",
        Use::Gateway,
    ),
    ("export MAILGATE_CONFIG=", Use::Operator),
    ("export MAILGATE_URL=", Use::Environment),
    ("cargo build ", Use::Operator),
    ("mkdir tls ", Use::Operator),
    ("mkdir -p /etc/mailgate/tls", Use::Operator),
    (
        "deploy/prepare ",
        Use::Elsewhere("wants containers: tests/container runs it"),
    ),
    (
        "docker compose ",
        Use::Elsewhere("wants containers: tests/container runs it"),
    ),
];

fn use_of(block: &Block) -> Option<Use> {
    if let Some(mark) = &block.mark {
        let (kind, language) = mark.split_once(' ')?;
        assert_eq!(language, block.language, "line {}", block.line);
        let language = Language::named(language)?;
        return match kind {
            "send-rest" => Some(Use::SendByRest(language)),
            "send-smtp" => Some(Use::SendBySmtp(language)),
            "receive" => Some(Use::Receive(language)),
            _ => None,
        };
    }
    if block.language == "toml" {
        return Some(Use::Configuration);
    }
    let known = UNMARKED
        .iter()
        .find(|(start, _)| block.text.starts_with(start));
    known.map(|(_, use_)| *use_)
}

/// The blocks that are for this.
fn used(wanted: impl Fn(Use) -> bool) -> Vec<Block> {
    blocks()
        .into_iter()
        .filter(|block| use_of(block).is_some_and(&wanted))
        .collect()
}

/// The one block that is for this.
fn sample(wanted: Use) -> String {
    let mut found = used(|use_| use_ == wanted);
    assert_eq!(found.len(), 1, "{wanted:?}");
    found.remove(0).text
}

#[test]
fn every_block_is_run_or_has_a_reason() {
    let blocks = blocks();
    for block in &blocks {
        assert!(
            use_of(block).is_some(),
            "README.md, line {}: nothing runs this block, and no reason is given:\n{}",
            block.line,
            block.text
        );
    }
    for (start, _) in UNMARKED {
        assert!(
            blocks.iter().any(|block| block.text.starts_with(start)),
            "no block begins with {start:?} any more"
        );
    }
    for language in Language::ALL {
        for wanted in [
            Use::SendByRest(language),
            Use::SendBySmtp(language),
            Use::Receive(language),
        ] {
            assert!(!sample(wanted).is_empty());
        }
    }
}
