//! The server side of SMTP submission: the protocol without I/O, the connection that drives it, and the listener that
//! accepts within limits. Handling the messages is up to the [`connection::Backend`].

pub mod connection;
pub mod listener;
pub mod protocol;
