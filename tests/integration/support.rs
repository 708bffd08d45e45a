//! What the tests share: databases, gateways in this process, and an SMTP client that says just
//! what it is told.

pub mod database;
pub mod gateway;
pub mod smtp_client;
