//! Logs when this machine's clock and the database's differ, and when they agree again.

use chrono::TimeDelta;

use mailgate_types::clock::TOLERANCE;

/// The last report.
#[derive(Debug, Default)]
pub struct ClockWatch {
    is_off: bool,
}

impl ClockWatch {
    /// Checks the clocks: the machine's is `ahead` of the database's, or behind it if negative.
    pub fn look(&mut self, ahead: TimeDelta) {
        let is_off = ahead.abs() > TOLERANCE;
        if is_off == self.is_off {
            return;
        }
        self.is_off = is_off;
        let seconds = ahead.num_seconds();
        if is_off {
            tracing::warn!(
                seconds,
                "this machine's clock and the database's differ: one of them is wrong. This process goes by the \
                 database's, sends scheduled messages when both say so, and deletes nothing before both do; set the \
                 wrong one right, by NTP"
            );
        } else {
            tracing::info!(
                seconds,
                "this machine's clock and the database's agree again"
            );
        }
    }
}
