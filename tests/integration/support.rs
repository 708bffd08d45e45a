//! What the tests share: databases, gateways in this process, an SMTP client that says just what it
//! is told, and a mail provider that does.

pub mod automatic_answers;
pub mod caller;
pub mod contracts;
pub mod database;
pub mod described;
pub mod failure;
pub mod gateway;
pub mod gmail_stand_in;
pub mod graph_stand_in;
pub mod lock_waits;
pub mod log_guard;
pub mod patience;
pub mod payprov_proxy;
pub mod ports;
pub mod postgres_programs;
pub mod receiver;
pub mod retention;
pub mod smtp_client;
pub mod stand_in;

use mailgate_providers::mail::sent_copy::Sought;
use mailgate_types::ids::LogId;

/// Some message with this Message-ID, to be looked for.
pub fn sought(message_id: &str) -> Sought<'_> {
    Sought {
        id: LogId::at(chrono::Utc::now()),
        message_id,
    }
}
