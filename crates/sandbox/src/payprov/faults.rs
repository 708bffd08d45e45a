//! Faults that the API injects on purpose, to test how clients handle them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;

/// Longest delay of a response, in milliseconds.
const SLOWEST: u64 = 120_000;

/// Maximum number of pending faults.
const MOST: usize = 1_000;

/// A fault to inject.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Its kind.
    pub kind: FaultKind,
    /// Only for requests with this method; `None` for any.
    #[serde(default)]
    pub method: Option<String>,
    /// Only for paths with this prefix, such as `/v1/subscriptions`, or `/v1/invoices?` for their list; `None` for any.
    #[serde(default)]
    pub path: Option<String>,
    /// How many times; 0: until faults are cleared.
    #[serde(default = "once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The connection is cut before the request is executed.
    Down,
    /// The request is executed, and the connection is cut before the response.
    LostAnswer,
    /// 500, and the request is not executed.
    InternalError,
    /// 503, and the request is not executed.
    Unavailable,
    /// 429 with a `Retry-After` of one second.
    RateLimited,
    /// 401: the API key was revoked.
    Unauthorized,
    /// The response is delayed by this many milliseconds.
    Slow(u64),
}

/// The pending faults.
#[derive(Debug, Default)]
pub(super) struct Faults {
    waiting: Mutex<VecDeque<Fault>>,
}

impl Faults {
    /// `false` if there are too many.
    pub(super) fn add(&self, fault: Fault) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = waiting.len() < MOST;
        if has_room {
            waiting.push_back(fault);
        }
        has_room
    }

    pub(super) fn clear(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.clear();
    }

    /// The fault for a request, if one is pending.
    pub(super) fn take(&self, method: &str, path: &str) -> Option<FaultKind> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let position = waiting.iter().position(|fault| {
            let method_fits = fault
                .method
                .as_ref()
                .is_none_or(|wanted| wanted.eq_ignore_ascii_case(method));
            let path_fits = fault
                .path
                .as_ref()
                .is_none_or(|prefix| path.starts_with(prefix.as_str()));
            method_fits && path_fits
        })?;
        let fault = waiting.get_mut(position)?;
        let kind = fault.kind;
        match fault.times {
            0 => {}
            1 => {
                waiting.remove(position);
            }
            _ => fault.times -= 1,
        }
        Some(kind)
    }
}

/// How long a response is delayed.
pub(super) fn held_back(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds.min(SLOWEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind, path: Option<&str>, times: u32) -> Fault {
        Fault {
            kind,
            method: Some("post".to_owned()),
            path: path.map(str::to_owned),
            times,
        }
    }

    #[test]
    fn a_fault_meets_what_it_waits_for_as_often_as_it_says() {
        let faults = Faults::default();
        faults.add(fault(FaultKind::Down, Some("/v1/subscriptions"), 2));
        faults.add(fault(FaultKind::Unavailable, None, 0));
        assert_eq!(faults.take("GET", "/v1/subscriptions/sub_1"), None);
        for expected in [FaultKind::Down, FaultKind::Down, FaultKind::Unavailable] {
            let met = faults.take("POST", "/v1/subscriptions/sub_1");
            assert_eq!(met, Some(expected));
        }
        let met = faults.take("POST", "/v1/customers");
        assert_eq!(met, Some(FaultKind::Unavailable));
        faults.clear();
        assert_eq!(faults.take("POST", "/v1/customers"), None);
    }
}
