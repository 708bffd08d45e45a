//! Floor 3: the portal, the subscribers' browser interface. Server-rendered pages; each works as
//! plain HTML first, and scripts only save page loads.
//!
//! A page is one file with its handlers and the structs of its templates in `templates/`, which extend
//! `frame.html`. It takes [`page::session::Session`], which is the permission, fills a [`page::frame::Frame`], and answers with
//! [`page::page`] or a [`page::problem::PortalProblem`]. [`router`] lists the paths.

mod apps;
mod billing;
mod components;
mod mailboxes;
mod messages;
mod overview;
mod page;
mod router;
mod settings;
mod sign_in;
mod webhooks;

pub use crate::page::state::{Parts, PortalState, Submission};
pub use router::router;
