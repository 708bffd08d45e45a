//! Mailgate: an email gateway that sends through the end users' own connected OAuth mailboxes.
//!
//! Imports run downward only (`tests/layers.rs` keeps it so):
//!
//! | floor | rooms | |
//! |---|---|---|
//! | 6 | `fuzzing` | what `make fuzz` runs; not in any release |
//! | 5 | `sandbox` | what `mailgate dev` adds |
//! | 4 | `daemon` `operator` | builds and spawns all of it; the operator's commands |
//! | 3 | `rest` `smtp` `workers` | the doors, and the loops that claim due work |
//! | 2 | `sending` → `mailboxes` → `billing` → `webhooks` → `accounts` | the domain, in this order |
//! | 2 | `reports` | logs and statistics, on its own beside `sending` |
//! | 1 | `storage` `providers` | the only SQL, the only outbound network |
//! | 0 | `compose` `telemetry` `shutdown` → `config` → `types` | no domain |
//!
//! Rooms of one floor don't know each other, but for the orders shown by arrows.

pub mod accounts;
pub mod billing;
pub mod compose;
pub mod config;
pub mod daemon;
#[cfg(feature = "dev")]
pub mod dev;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod mailboxes;
pub mod operator;
pub mod providers;
pub mod reports;
pub mod rest;
pub mod sending;
pub mod smtp;
pub mod storage;
pub mod telemetry;
pub mod webhooks;
pub mod workers;
