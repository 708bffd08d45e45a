//! At most one of a kind of request at a time for each app, in this process.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use mailgate_types::ids::AppId;

/// The apps that have a request of the kind in progress.
#[derive(Debug, Clone, Default)]
pub(super) struct UnderWay(Arc<Mutex<HashSet<AppId>>>);

/// Marks an app's request as in progress until dropped.
pub(super) struct Mark<'a> {
    under_way: &'a UnderWay,
    app: AppId,
}

impl UnderWay {
    /// `None` while a request of the app is in progress. No mark is created then, since dropping it would clear the
    /// first one.
    pub(super) fn begin(&self, app: AppId) -> Option<Mark<'_>> {
        let mut apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        apps.insert(app).then(|| Mark {
            under_way: self,
            app,
        })
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        let apps = self.under_way.0.lock();
        apps.unwrap_or_else(PoisonError::into_inner)
            .remove(&self.app);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn one_at_a_time_for_each_app() {
        let (under_way, one, two) = (UnderWay::default(), Uuid::from_u128(1), Uuid::from_u128(2));
        let first = under_way.begin(AppId(one));
        assert!(first.is_some());
        assert!(under_way.begin(AppId(one)).is_none());
        assert!(under_way.begin(AppId(two)).is_some());
        drop(first);
        assert!(under_way.begin(AppId(one)).is_some());
    }
}
