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
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod health;
mod log_query;
mod log_views;
mod logs;
mod me;
mod oauth_callback;
pub mod page;
mod payprov;
mod payprov_actions;
mod payprov_webhook;
mod problem;
mod query;
mod request;
mod router;
mod send;
mod stats;
mod subscribers;
mod webhook_deliveries;
mod webhook_document;
mod webhook_fields;
mod webhook_test;
mod webhook_views;
mod webhooks;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use send::fuzzing::send_request;

pub use router::{Doors, openapi_json, router};
