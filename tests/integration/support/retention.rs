//! How long things are kept, with the usual schedule of webhooks.

use std::time::Duration;

use mailgate::workers::Retention;

/// The log for so many days.
pub fn kept_for(log_days: u32) -> Retention {
    Retention {
        log_days,
        webhooks: Duration::from_hours(30),
    }
}
