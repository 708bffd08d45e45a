//! Keys and secrets: of a subscriber's API, and of an app's mail.

pub(crate) mod api_secrets;
pub(crate) mod marks;
pub(crate) mod minted;
pub(crate) mod renew;
pub mod reseal;
pub(crate) mod send_keys;
pub(crate) mod show;
pub(crate) mod uses;
