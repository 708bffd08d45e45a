//! The `OpenAPI` description of the REST interface, and the page that shows it.

pub(super) mod docs;
pub(super) mod document;
pub(super) mod enums;
pub(super) mod examples;
mod reference;
pub(super) mod security;
pub(super) mod webhooks;
