//! The limits of each mailbox of a provider.

use super::defaults::Defaults;
use crate::reader::Reader;

/// The limits of each mailbox of a provider.
#[derive(Debug, Clone, Copy)]
pub struct MailboxLimits {
    /// Concurrent submissions.
    pub concurrency: usize,
    /// Messages per minute; 0: unlimited.
    pub per_minute: u32,
    /// Messages in 24 hours; 0: unlimited.
    pub per_day: u32,
}

pub(super) fn read(
    reader: &mut Reader<'_>,
    name: &impl Fn(&str) -> String,
    defaults: &Defaults,
) -> MailboxLimits {
    let mut or_default = |key: &str, default| match reader.number(&name(key), 0, u32::MAX) {
        0 => default,
        number => number,
    };
    MailboxLimits {
        per_minute: or_default("limits.per_minute", defaults.per_minute),
        per_day: or_default("limits.per_day", defaults.per_day),
        concurrency: match reader.number(&name("limits.concurrency"), 0, 1_000) {
            0 => defaults.concurrency as usize,
            number => number,
        },
    }
}
