//! Floor 1: the only outbound network.

mod answer;
pub mod egress;
pub mod mail;
pub mod payprov;
pub mod relay;
pub mod tls;
