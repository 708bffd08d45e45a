//! What every listener stands on: HTTP's accept loop with its bounds, TLS whose certificate follows its files,
//! the frame of all pages, and an orderly end. Nothing in here knows what is served.

pub mod certificate_names;
pub mod client;
pub mod cookie;
pub mod failure;
pub mod html;
pub mod http;
pub mod issued;
mod listen;
pub mod own_hosts;
pub mod page;
pub mod same_site;
pub mod shutdown;
pub mod stranger;
pub mod tls;

pub use listen::{ListenError, bind};
