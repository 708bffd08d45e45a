//! Floor 3: the REST interface. Router, problem responses, one file per resource.

mod app_fields;
mod app_views;
mod apps;
mod authority;
mod connect;
mod connect_failure;
mod connect_pages;
mod credentials;
mod document;
mod field;
mod health;
mod me;
mod oauth_callback;
pub mod page;
mod problem;
mod query;
mod request;
mod router;
mod send;
mod subscribers;

pub use router::{Doors, openapi_json, router};
