//! The payment provider: Stripe's API and event format, at the configured address.

pub mod client;
pub mod objects;
mod requests;
pub mod signature;

pub use client::{PayprovClient, PayprovClientError, PayprovError};
pub use requests::Beginning;

#[cfg(test)]
pub(crate) use client::error_on;
