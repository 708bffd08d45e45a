//! The documents as their readers use them: every program in `examples/` and every command in README.md and
//! `docs/` is run as it stands, every configuration is read by the gateway's own reader, every link leads
//! somewhere, and the tables are held against what they list.

mod architecture;
pub mod blocks;
pub mod commands;
mod configurations;
mod examples;
pub mod languages;
mod line;
pub mod links;
mod receiving;
mod sending;
mod tables;

use blocks::{Block, blocks};

/// What a test does with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Settings.
    Configuration,
    /// Variables for the programs.
    Environment,
    /// Commands for a subscriber's shell.
    Gateway,
    /// What a command answers.
    Answer,
    /// Commands for the shell of somebody who runs `make dev`.
    Dev,
    /// Commands for an operator's shell.
    Operator,
    /// Commands for the account that Postgres runs as, and what follows a restore; tests/integration/restore.rs runs them.
    Backup,
    /// Commands that make Postgres a certificate; `command_line/database_tls.rs` runs them.
    Certificate,
    /// Commands of the runbook; tests/integration/operating/runbook.rs runs these and the next two.
    Asking,
    /// Queries of the runbook.
    Query,
    /// Expressions of the runbook.
    Expression,
    /// The files that something passes.
    Way,
    /// What nginx is told; `tests/integration/limited_keys/nginx.rs` runs it.
    Nginx,
    /// Nothing here, for this reason.
    Elsewhere(&'static str),
}

/// What the word behind a fence says already.
const LANGUAGES: [(&str, Use); 8] = [
    ("toml", Use::Configuration),
    ("json", Use::Answer),
    ("sql", Use::Query),
    ("promql", Use::Expression),
    ("text", Use::Way),
    ("nginx", Use::Nginx),
    (
        "yaml",
        Use::Elsewhere("wants Docker's own compose, which knows `!override`"),
    ),
    (
        "console",
        Use::Elsewhere("what the program says of itself: tests/walk holds it against the program"),
    ),
];

/// The other blocks, by how they begin.
const STARTS: [(&str, Use); 47] = [
    (
        "make ",
        Use::Elsewhere(
            "builds the product or runs these tests; tests/integration/command_line runs what `make dev` does",
        ),
    ),
    ("KEY=$(python3 ", Use::Dev),
    ("curl -w '\\n' -X POST http://127.0.0.1:8080/", Use::Dev),
    ("eval \"$(python3 ", Use::Dev),
    ("python3 examples/", Use::Dev),
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
    (
        "curl https://gateway.example/apps/pk_…/send-keys ",
        Use::Gateway,
    ),
    ("curl https://gateway.example/me/api-secrets ", Use::Gateway),
    (
        "curl -X POST https://gateway.example/portal/sessions ",
        Use::Gateway,
    ),
    ("export MAILGATE_CONFIG=", Use::Operator),
    ("export MAILGATE_URL=", Use::Environment),
    ("export MAILGATE_COMMIT=", Use::Operator),
    ("install -d /etc/mailgate/tls", Use::Operator),
    ("openssl req -x509 -newkey ec", Use::Operator),
    ("cat > /usr/local/bin/mailgate-certificate", Use::Operator),
    ("openssl req -x509 -newkey rsa", Use::Certificate),
    ("cd /\ninstall --directory ", Use::Backup),
    (
        "cd /\nrunuser -u postgres -- psql --quiet --set=ON_ERROR_STOP=1 <<'END'\nALTER SYSTEM SET archive_mode = on;\nALTER SYSTEM SET ",
        Use::Backup,
    ),
    ("cat > /usr/local/bin/mailgate-base-backup", Use::Backup),
    ("runuser -u postgres -- /usr/local/bin/", Use::Backup),
    ("cd /\nrunuser -u postgres -- pg_dumpall ", Use::Backup),
    ("cp -a /var/backups/", Use::Backup),
    ("cd /\nrunuser -u postgres -- createdb ", Use::Backup),
    ("mailgate queue verify", Use::Backup),
    (
        "apt-get install ",
        Use::Elsewhere("wants a machine of its own: tests/container installs the package"),
    ),
    ("curl -s http://127.0.0.1:", Use::Asking),
    ("systemctl ", Use::Elsewhere("wants systemd")),
    (
        "mkdir -p /etc/systemd/system/",
        Use::Elsewhere("wants systemd"),
    ),
    ("mailgate check --config ", Use::Elsewhere("wants systemd")),
    (
        "cp /usr/local/bin/mailgate ",
        Use::Elsewhere("wants systemd"),
    ),
    ("git rev-parse ", Use::Elsewhere("builds the product")),
    (
        "cp config/haproxy/",
        Use::Elsewhere("wants machines of its own: tests/integration/replicas runs HAProxy"),
    ),
    (
        "haproxy -c -V -f ",
        Use::Elsewhere("wants machines of its own: tests/integration/replicas runs HAProxy"),
    ),
    (
        "journalctl ",
        Use::Elsewhere("wants systemd, or containers that run"),
    ),
    (
        "deploy/prepare ",
        Use::Elsewhere("wants containers: tests/container runs it"),
    ),
    (
        "docker compose ",
        Use::Elsewhere("wants containers: tests/container runs it"),
    ),
    (
        "[ -s \"$dump\" ]",
        Use::Elsewhere("wants containers: tests/container runs its commands"),
    ),
    (
        "cat > /usr/local/bin/mailgate-dump",
        Use::Elsewhere("wants containers: tests/container runs its commands"),
    ),
    (
        "dump=/var/backups/mailgate/",
        Use::Elsewhere("wants containers: tests/container runs its commands"),
    ),
    (
        "[ -e /root/mailgate.env ] ",
        Use::Elsewhere("wants a clone that was made before, and a newer commit to pull"),
    ),
    (
        "cp .env ",
        Use::Elsewhere("wants a clone of a newer commit, and containers"),
    ),
    (
        "install -d -m 755 deploy/private/",
        Use::Elsewhere("wants containers: tests/integration/operating reads the alerts' rules"),
    ),
];

/// Pages whose other commands tests/walk types, one after the other, on a machine of its own: it knows each heading that
/// has some.
const WALKED: [&str; 5] = [
    "docs/first-hour.md",
    "docs/postgres.md",
    "docs/certificates.md",
    "docs/monitoring.md",
    "docs/upgrading.md",
];

fn use_of(block: &Block) -> Option<Use> {
    let by_language = LANGUAGES
        .iter()
        .find(|(language, _)| block.language == *language);
    let by_start = || {
        STARTS
            .iter()
            .find(|(start, _)| block.text.starts_with(start))
    };
    let walked = || {
        let is = block.language == "sh" && WALKED.contains(&block.page.as_str());
        is.then_some(Use::Elsewhere(
            "wants a machine of its own: tests/walk types it",
        ))
    };
    let known = by_language.or_else(by_start).map(|(_, use_)| *use_);
    known.or_else(walked)
}

/// The blocks that are for this.
pub fn used(wanted: Use) -> Vec<Block> {
    blocks()
        .into_iter()
        .filter(|block| use_of(block) == Some(wanted))
        .collect()
}

/// The one block that is for this and begins so.
pub fn the_block(wanted: Use, start: &str) -> String {
    let mut found = used(wanted);
    found.retain(|block| block.text.starts_with(start));
    assert_eq!(found.len(), 1, "{wanted:?}, {start}");
    found.remove(0).text
}

#[test]
fn every_block_is_run_or_has_a_reason() {
    let blocks = blocks();
    for block in &blocks {
        assert!(
            use_of(block).is_some(),
            "{}: nothing runs this block, and no reason is given:\n{}",
            block.place(),
            block.text
        );
    }
    for (start, _) in STARTS {
        assert!(
            blocks.iter().any(|block| block.text.starts_with(start)),
            "no block begins with {start:?} any more"
        );
    }
    for (language, _) in LANGUAGES {
        assert!(
            blocks.iter().any(|block| block.language == language),
            "no block is {language} any more"
        );
    }
}
