//! The base of every listener: HTTP's accept loop with its limits, TLS that reloads its certificate files, the page
//! frame, and graceful shutdown. Nothing here depends on the content being served.

pub mod certificate_names;
pub mod client;
pub mod content;
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
