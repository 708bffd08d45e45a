//! Test deliveries: sent at once, signed as any other, and recorded nowhere.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::configurations::ConfigurationError;
use super::{Attempt, WebhookConfig, Webhooks};
use crate::types::event::TestEvent;
use crate::types::ids::{AppId, WebhookMessageId};

/// A test that was not sent.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// Another one of the app is under way.
    #[error("another test delivery of this app is under way")]
    UnderWay,
    /// The secret.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
}

/// The apps that have a test under way in this process.
#[derive(Debug, Clone, Default)]
pub(super) struct TestsUnderWay(Arc<Mutex<HashSet<AppId>>>);

/// An app's place, until it is dropped.
struct Place<'a> {
    tests: &'a TestsUnderWay,
    app: AppId,
}

impl TestsUnderWay {
    /// `None` while one is under way; what would be dropped at once would give its place back.
    fn begin(&self, app: AppId) -> Option<Place<'_>> {
        let mut apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        apps.insert(app).then(|| Place { tests: self, app })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut apps = self.tests.0.lock().unwrap_or_else(PoisonError::into_inner);
        apps.remove(&self.app);
    }
}

impl Webhooks {
    /// Sends a test delivery to a configuration, active or not, and answers what was sent and what came of
    /// it. One at a time for an app, since its subscriber says where they go and asks for them at will.
    ///
    /// # Errors
    ///
    /// [`TestError`]; nothing is sent then.
    pub async fn test(&self, config: &WebhookConfig) -> Result<(TestEvent, Attempt), TestError> {
        let _place = self.tests.begin(config.app).ok_or(TestError::UnderWay)?;
        let secret = (self.signing_secret(config)).map_err(ConfigurationError::from)?;
        let now = self.clock.now();
        let event = TestEvent {
            app: config.app,
            at: now,
        };
        let id = WebhookMessageId::at(now);
        let body = Bytes::from(event.body());
        let attempt = self.attempt(&config.url, secret.text(), id, body).await;
        Ok((event, attempt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn one_at_a_time_for_each_app() {
        let (tests, one, two) = (
            TestsUnderWay::default(),
            Uuid::from_u128(1),
            Uuid::from_u128(2),
        );
        let first = tests.begin(AppId(one));
        assert!(first.is_some());
        assert!(tests.begin(AppId(one)).is_none());
        assert!(tests.begin(AppId(two)).is_some());
        drop(first);
        assert!(tests.begin(AppId(one)).is_some());
    }
}
