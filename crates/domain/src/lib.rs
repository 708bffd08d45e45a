//! The gateway's functions. Modules depend on each other in this order: `sending` → `mailboxes` → `billing` →
//! `webhooks` → `accounts`, with `reports`, `certificates` and `history` beside `sending`, and `compose` and
//! `explanation` below all of them. All transactions begin here.

pub mod accounts;
pub mod billing;
pub mod certificates;
pub mod compose;
pub mod explanation;
pub mod history;
pub mod mailboxes;
pub mod reports;
pub mod sending;
pub mod webhooks;

pub use mailgate_storage::database::readiness;
