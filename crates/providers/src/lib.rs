//! Floor 1: the only outbound network.

pub mod acme;
mod answer;
pub mod egress;
pub mod explanation;
pub mod mail;
pub mod payprov;
mod proxy;
pub mod reach;
pub mod relay;
pub mod tls;
#[cfg(test)]
mod verdict_tables;

#[cfg(any(test, feature = "fuzzing"))]
pub use answer::fuzzing::retry_after_header;
