//! Floor 5: what `mailgate dev` adds. A private Postgres, certificates, and a mail provider on
//! loopback: a real OAuth 2 authorization server, a real SMTP server that speaks XOAUTH2, and a page
//! that shows what arrived.

mod authorize;
pub mod certificates;
mod demo;
pub mod dev;
mod home;
pub mod inbox;
mod mail_api;
pub mod oauth;
pub mod pages;
pub mod payprov;
pub mod postgres;
pub mod provider;
pub mod slow;
mod smtp;
