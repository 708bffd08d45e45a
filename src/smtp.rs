//! Floor 3: the SMTP door. Listener, TLS, the pure protocol pieces, the connection that drives them,
//! and what the gateway does with a submission.

pub mod connection;
pub mod listener;
pub mod protocol;
pub mod submission;
pub mod tls;
