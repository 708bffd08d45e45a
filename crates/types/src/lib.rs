//! The types that everything else shares: ids, secrets, addresses, limits, events. They do no I/O.

pub mod audit;
pub mod bounce_type;
pub mod budget;
pub mod clock;
pub mod connection_limits;
pub mod display_name;
pub mod email_address;
pub mod event;
pub mod event_name;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod ids;
pub mod lease;
pub mod limiter;
pub mod log_status;
pub mod message;
pub mod message_id;
pub mod metadata;
pub mod moment;
pub mod named_address;
pub mod neighbourhood;
pub mod notice;
pub mod one_line;
pub mod plugin;
pub mod public_address;
pub mod refusal;
pub mod schemas;
pub mod seal;
pub mod sealed_text;
pub mod secrets;
pub mod signing_secret;
pub mod slug;
pub mod subscription;
pub mod suspend_aware_instant;
pub mod trusted_peers;
pub mod web_address;
