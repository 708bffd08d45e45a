//! Floor 3: the REST interface. Router, problem responses, one file per resource.

mod account;
mod apps;
mod billing;
mod connect;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod health;
mod http;
mod logs;
mod mailboxes;
mod openapi;
mod router;
mod send;
mod stats;
mod webhooks;

#[cfg(any(test, feature = "fuzzing"))]
pub use send::fuzzing::send_request;

pub use crate::http::state::{AppState, Shared};
pub use router::{openapi_json, router};

pub use crate::http::visits::Visits;
