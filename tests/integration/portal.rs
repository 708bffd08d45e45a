//! The portal: who gets in, what it shows, and what it keeps to itself.

mod apps;
mod audit_log;
mod billing;
mod explained;
mod keys;
mod live;
mod look;
mod mailbox_states;
mod mailboxes;
mod mailed;
mod markup;
mod outage;
mod overview;
mod pages;
mod passed_on;
mod people;
mod progress;
mod reconnected;
mod search;
mod secrets;
mod sessions;
mod signing_in;
pub mod visitor;
mod webhook_forms;
mod webhooks;
