//! The environment for development, tests and benchmarks: a private Postgres, certificates, and a mail provider on
//! loopback with a real OAuth 2 authorization server, a real SMTP server with XOAUTH2, an IMAP server, APIs like
//! Gmail's and Microsoft Graph's, a payment provider, and an inbox page.

pub mod authorize;
mod card;
pub mod certificates;
mod imap;
pub mod inbox;
mod mail_api;
mod mime;
pub mod oauth;
mod own_hosts;
pub mod pages;
pub mod payprov;
pub mod postgres;
pub mod provider;
mod returned;
mod same_site;
pub mod slow;
mod smtp;
pub mod switches;
