//! Tests of the whole gateway: real sockets, a real Postgres, and mail providers from the sandbox to
//! Postfix and Dovecot.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod acme;
mod aliases;
mod apps;
mod audit;
mod billing;
mod bounces;
mod bounces_end_to_end;
mod certificate_reload;
mod chaos;
mod command_line;
mod connecting;
mod crash;
mod documents;
mod fences;
mod gmail_api;
mod graph;
#[path = "../history/history.rs"]
mod history;
mod http_listener;
mod idempotency;
mod imap_reader;
mod kept;
mod limited_keys;
mod notices;
mod openapi;
mod operating;
mod operator;
mod own_limits;
mod pacing;
mod payprov_sandbox;
mod peers;
mod peers_end_to_end;
mod portal;
mod queue;
mod refused;
mod renewal;
mod replicas;
mod replies;
mod reports;
mod rest_send;
mod restorable;
mod restore;
mod sandbox_inbox;
mod sandbox_interfaces;
mod sandbox_switches;
mod smtp_door;
mod spool;
mod strangers;
mod support;
mod suspended;
mod tokens;
mod told;
mod waiting_quota;
mod webhook_configs;
mod webhooks;
