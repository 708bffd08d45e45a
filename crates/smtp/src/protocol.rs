//! The server's side of SMTP submission without I/O: bytes go in, replies and events come out.
//! Sockets, TLS, time limits and what to answer to an event are the callers'.
//!
//! RFC 5321 and 6409, with STARTTLS (3207), AUTH (4954), SIZE (1870), PIPELINING (2920),
//! 8BITMIME (6152), SMTPUTF8 (6531), CHUNKING (3030) and ENHANCEDSTATUSCODES (2034). The result is
//! the same wherever the network cuts the bytes, and what is held of them is bounded.

pub mod authentication;
pub mod command;
pub mod data;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod line;
pub mod parameters;
pub mod proxy;
pub mod reply;
pub mod session;
