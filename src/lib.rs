//! Mailgate: an email gateway that sends through the end users' own connected OAuth mailboxes.
//!
//! Imports only go downward: between crates (each manifest lists the permitted ones), between their rooms, and between
//! the files of each room; `tests/layers` enforces it:
//!
//! | floor | crates, and the rooms of this one | |
//! |---|---|---|
//! | 6 | `dev` | `mailgate dev`: the gateway with its sandbox; a default feature, not in the image |
//! | 5 | `daemon` | builds and spawns all of it |
//! | 4 | `certificates` | the listeners' certificates: stored, renewed, and checked for expiry |
//! | 3 | `smtp` `workers` `operator` | the SMTP listeners, the background loops, the operator's commands |
//! | 3 | `mailgate_rest` `mailgate_portal` | the two HTTP interfaces; they know neither the database nor the providers |
//! | 2 | `mailgate_domain` | the business logic; all transactions begin here |
//! | 1 | `mailgate_storage` `mailgate_providers` | the only SQL, the only outbound network |
//! | 1 | `mailgate_telemetry` | the log and the metrics |
//! | 0 | `mailgate_settings` | the settings |
//!
//! The crates below know nothing of the product:
//!
//! | crate | |
//! |---|---|
//! | `mailgate_types` | ids, secrets, addresses, limits, events: the shared vocabulary |
//! | `mailgate_bounces` | reads bounces |
//! | `mailgate_smtp` | the server's side of SMTP submission, behind a backend trait |
//! | `mailgate_server` | HTTP's accept loop, TLS with certificate reload, the page frame, graceful shutdown |
//! | `mailgate_sandbox` | stand-ins for the providers, certificates, a private Postgres: for `dev`, tests and benchmarks |
//!
//! `fuzzing` lists the fuzz targets of `make fuzz`, and is in no release.

pub mod certificates;
pub mod daemon;
#[cfg(feature = "dev")]
pub mod dev;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod operator;
pub mod smtp;
pub mod workers;
