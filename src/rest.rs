//! Floor 3: the REST interface. Router, problem responses, one file per resource.

mod field;
mod health;
mod problem;
mod request;
mod router;
mod send;

pub use router::{Doors, router};
