//! The portal: who gets in, what it shows, and what it keeps to itself.

mod apps;
mod billing;
mod live;
mod mailbox_states;
mod mailboxes;
mod mailed;
mod overview;
mod pages;
mod people;
mod sessions;
mod signing_in;
pub mod visitor;
mod webhook_forms;
mod webhooks;
