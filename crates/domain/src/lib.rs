//! What a gateway does, in the order in which its rooms know each other:
//! `sending` → `mailboxes` → `billing` → `webhooks` → `accounts`, with `reports` and `certificates` beside `sending`,
//! and `compose` below all of them. All transactions begin here.

pub mod accounts;
pub mod billing;
pub mod certificates;
pub mod compose;
pub mod mailboxes;
pub mod reports;
pub mod sending;
pub mod webhooks;

pub use mailgate_storage::database::readiness;
