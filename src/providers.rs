//! Floor 1: the only outbound network.

pub mod mail;
pub mod tls;
