//! The server's side of SMTP submission: the protocol without I/O, the connection that drives it, and the listener
//! that accepts within limits. What becomes of a message is up to the [`connection::Backend`].

pub mod connection;
pub mod listener;
pub mod protocol;
