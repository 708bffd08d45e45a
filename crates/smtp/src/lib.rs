//! The server side of SMTP submission: the protocol without I/O, the connection that drives it, and the listener with
//! its limits. The [`connection::Backend`] handles the messages.

pub mod connection;
pub mod listener;
pub mod protocol;
