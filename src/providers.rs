//! Floor 1: the only outbound network.

pub mod egress;
pub mod mail;
pub mod tls;
