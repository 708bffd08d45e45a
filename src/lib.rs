//! Mailgate: an email gateway that sends through the end users' own connected OAuth mailboxes.
//!
//! Imports run downward only, between these rooms and between the files of each (`tests/layers` keeps it so):
//!
//! | floor | rooms | |
//! |---|---|---|
//! | 5 | `dev` | `mailgate dev`: the gateway with its sandbox; a default feature, not in the image |
//! | 4 | `daemon` | builds and spawns all of it |
//! | 3 | `rest` `portal` `smtp` `workers` `operator` | what callers, loops and the operator's commands ask for |
//! | 2 | `sending` → `mailboxes` → `billing` → `webhooks` → `accounts` | the domain, in this order; all transactions begin here |
//! | 2 | `reports` | logs and statistics, on its own beside `sending` |
//! | 2 | `certificates` | certificates from an ACME server, on their own beside `sending` |
//! | 1 | `storage` `providers` | the only SQL, the only outbound network |
//! | 0 | `compose` `telemetry` → `config` | no domain |
//!
//! Rooms of one floor don't know each other, but for the orders shown by arrows. What knows nothing of the product is
//! a crate of its own, and an edit up here doesn't build it again:
//!
//! | crate | |
//! |---|---|
//! | `mailgate_types` | ids, secrets, addresses, limits, events: the words that all of it speaks |
//! | `mailgate_smtp` | the server's side of SMTP submission, behind a backend trait |
//! | `mailgate_server` | HTTP's accept loop, TLS that follows its files, the frame of all pages, an orderly end |
//! | `mailgate_sandbox` | stand-ins for the providers, certificates, a private Postgres: for `dev`, tests and benchmarks |
//!
//! `fuzzing` lists what `make fuzz` runs, and is in no release.

pub mod daemon;
#[cfg(feature = "dev")]
pub mod dev;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod operator;
pub mod smtp;
pub mod workers;
