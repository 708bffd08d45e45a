//! Floor 3: the portal, in which subscribers see and do everything in a browser. Server-rendered pages; each works as
//! plain HTML first, and scripts only spare page loads.
//!
//! A page is one file with its handlers and the structs of its templates in `templates/`, which extend
//! `frame.html`. It takes [`session::Session`], which is the permission, fills a [`frame::Frame`], and answers with
//! [`page::page`] or a [`problem::PortalProblem`]. [`router`] lists the paths.

mod api_secrets;
mod app;
mod app_actions;
mod app_code;
mod app_connect;
mod app_form;
mod app_keys;
mod app_parts;
mod apps;
mod assets;
mod billing;
mod billing_actions;
mod email_change;
mod fields;
mod frame;
mod key_form;
mod mailbox;
mod mailbox_actions;
mod mailbox_words;
mod mailboxes;
mod message;
mod message_actions;
mod message_timeline;
mod messages;
mod messages_csv;
mod messages_query;
mod overview;
mod overview_attention;
mod overview_plots;
mod owned_app;
mod page;
mod problem;
mod qr_code;
mod requests;
mod router;
mod send_keys;
mod session;
mod settings;
mod settings_secret;
mod settings_sessions;
mod sign_in;
mod sign_in_link;
mod sign_in_mail;
mod sign_out;
mod state;
mod webhook;
mod webhook_actions;
mod webhook_delivery;
mod webhook_form;
mod webhook_replay;
mod webhook_secret;
mod webhook_week;
mod webhooks;
mod words;
mod wrong;

pub use router::router;
pub use state::{Parts, PortalState, Submission};
