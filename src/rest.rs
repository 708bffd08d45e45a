//! Floor 3: the REST interface. Router, problem responses, one file per resource.

mod accept;
mod app_fields;
mod app_views;
mod apps;
mod audit;
mod authority;
mod body;
mod browser;
mod connect;
mod connect_back;
mod connect_button;
mod connect_consent;
mod connect_failure;
mod connect_link;
mod connect_pages;
mod connect_result;
mod connect_sessions;
mod credentials;
mod docs;
mod document;
mod enums;
mod examples;
mod failures;
mod field;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod health;
mod host;
mod json_body;
mod log_actions;
mod log_csv;
mod log_query;
mod log_views;
mod logs;
mod me;
mod messages;
mod oauth_callback;
mod payprov;
mod payprov_actions;
mod payprov_webhook;
mod portal_sessions;
mod problem;
mod query;
mod queue;
mod refusals;
mod request;
mod response_headers;
mod router;
mod send;
mod shared;
mod state;
mod stats;
mod subscribers;
mod suppressions;
mod visitor;
mod visits;
mod webhook_deliveries;
mod webhook_delivery;
mod webhook_document;
mod webhook_fields;
mod webhook_replay;
mod webhook_secret;
mod webhook_test;
mod webhook_views;
mod webhooks;
mod whole_body;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use send::fuzzing::send_request;

pub use router::{openapi_json, router};
pub use state::{AppState, Shared};

pub use visits::Visits;
