//! Moments as the interface writes them.

pub(super) use crate::types::moment::iso8601;
