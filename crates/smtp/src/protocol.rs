//! The server side of SMTP submission without I/O: bytes go in, replies and events come out. The caller handles
//! sockets, TLS, timeouts and events.
//!
//! RFC 5321 and 6409, with STARTTLS (3207), AUTH (4954), SIZE (1870), PIPELINING (2920), 8BITMIME (6152), SMTPUTF8
//! (6531), CHUNKING (3030) and ENHANCEDSTATUSCODES (2034). The result doesn't depend on how the network splits the
//! bytes, and memory use is bounded.

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
