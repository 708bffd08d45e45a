//! Signing in to the portal: links, sessions, and the mails with links.

pub(crate) mod links;
pub(crate) mod sessions;
pub(crate) mod sign_in_mail;
