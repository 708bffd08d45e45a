//! Shared by all requests: bodies, queries, fields, headers, authentication and problem responses.

pub(super) mod accept;
pub(super) mod access;
pub(super) mod authority;
mod blocks;
pub(super) mod body;
pub(super) mod browser;
pub(super) mod failures;
pub(super) mod field;
pub(super) mod headers;
mod host;
pub(super) mod json_body;
pub(super) mod metrics;
pub(super) mod problem;
pub(super) mod query;
pub(super) mod request;
pub(super) mod state;
pub(super) mod values;
pub(super) mod visitor;
pub(super) mod visits;
pub(super) mod whole_body;
