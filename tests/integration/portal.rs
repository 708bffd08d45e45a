//! The portal: who gets in, what it shows, and what it keeps to itself.

mod apps;
mod billing;
mod mailboxes;
mod overview;
mod pages;
mod people;
mod sessions;
mod signing_in;
pub mod visitor;
mod webhooks;
