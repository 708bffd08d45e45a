//! Holds what is sent against the interface as Google describes it.

use std::sync::Arc;

use super::handlers::header;
use super::{Account, GmailStandIn, lock};
use crate::support::contracts;

impl Drop for GmailStandIn {
    fn drop(&mut self) {
        let violations = Arc::clone(&lock(&self.shared).violations);
        contracts::assert_none(&violations);
    }
}

impl Account {
    /// Holds a request against the interface as Google describes it.
    pub(super) fn hold(&mut self, parts: &axum::http::request::Parts, content: &[u8]) {
        let content_type = header(&parts.headers, "content-type");
        let found = self.contract.as_ref().map(|contract| {
            contract.check(
                parts.method.as_str(),
                parts.uri.path(),
                parts.uri.query().unwrap_or_default(),
                Some(&content_type),
                content,
            )
        });
        let mut violations = self.violations.lock().expect("nobody panics with it");
        violations.extend(found.into_iter().flatten());
    }
}
