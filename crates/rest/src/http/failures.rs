//! The log line for each failed request: 5xx at `warn`; 4xx at `info`, and only once the caller has authenticated, so
//! that strangers can't fill the log. Strangers' 5xx lines are rate-limited.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use mailgate_server::failure::Failure;

/// Lines per second for strangers' requests; the burst is the same number.
const STRANGERS_LINES: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);

/// A request with its response.
pub(crate) struct Answered<'a> {
    pub(crate) method: &'a Method,
    /// The pattern, not the path: callers put secrets where a pushable key belongs.
    pub(crate) route: Option<&'a str>,
    pub(crate) status: StatusCode,
    pub(crate) authenticated: bool,
    pub(crate) took: Duration,
}

/// Writes the lines.
#[derive(Debug, Clone)]
pub(crate) struct Failures {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    strangers: DefaultDirectRateLimiter,
    kept_back: AtomicU64,
}

impl Default for Failures {
    fn default() -> Self {
        let strangers = RateLimiter::direct(Quota::per_second(STRANGERS_LINES));
        let kept_back = AtomicU64::new(0);
        Self {
            inner: Arc::new(Inner {
                strangers,
                kept_back,
            }),
        }
    }
}

impl Failures {
    /// Writes the line, if there is one. Probes belong to no caller, and the database's state has its own lines.
    pub(crate) fn log(&self, answered: &Answered<'_>, failure: Option<&Failure>) {
        let is_probe = matches!(answered.route, Some("/healthz" | "/readyz"));
        let none = Failure::default();
        let failure = failure.unwrap_or(&none);
        let Failure { code, fields, .. } = failure;
        let fields = Some(fields.as_str()).filter(|fields| !fields.is_empty());
        let (method, route) = (answered.method, answered.route);
        let status = answered.status.as_u16();
        let milliseconds = u64::try_from(answered.took.as_millis()).unwrap_or(u64::MAX);
        if answered.status.is_server_error() && !is_probe {
            let Some(kept_back) = self.turn(answered.authenticated) else {
                return;
            };
            let kept_back = Some(kept_back).filter(|lines| *lines > 0);
            let cause = failure.cause.as_deref();
            tracing::warn!(%method, route, status, code, cause, milliseconds, kept_back, "a request failed");
        } else if answered.status.is_client_error() && answered.authenticated {
            // A rate-limited client may keep sending requests.
            let is_bounded = answered.status == StatusCode::TOO_MANY_REQUESTS;
            if is_bounded && self.turn(false).is_none() {
                return;
            }
            tracing::info!(%method, route, status, code, fields, milliseconds, "a request was refused");
        } else {
            tracing::debug!(%method, route, status, milliseconds, "request");
        }
    }

    /// Whether a line for a 5xx may be written, and how many were left out before it.
    fn turn(&self, authenticated: bool) -> Option<u64> {
        let inner = &self.inner;
        if authenticated || inner.strangers.check().is_ok() {
            return Some(inner.kept_back.swap(0, Ordering::Relaxed));
        }
        inner.kept_back.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_write_so_many_lines_and_no_more() {
        let failures = Failures::default();
        let written = (0..10_000).filter_map(|_| failures.turn(false)).count();
        assert!((10..100).contains(&written), "{written}");
        let told = failures.turn(true).unwrap_or_default();
        assert!(told >= 9_900, "{told} were kept back");
        assert_eq!(failures.turn(true), Some(0));
    }
}
