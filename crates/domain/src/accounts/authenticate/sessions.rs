//! Tracks an app's sessions in this process, so that they end when the app is deleted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::accounts::Accounts;
use mailgate_types::ids::AppId;

/// Sessions by app.
#[derive(Debug, Default)]
pub(in crate::accounts) struct Sessions {
    by_app: Mutex<HashMap<AppId, Open>>,
}

#[derive(Debug)]
struct Open {
    count: usize,
    end: CancellationToken,
}

/// One session of an app; counted until it is dropped.
#[derive(Debug)]
pub struct AppSession {
    sessions: Arc<Sessions>,
    app: AppId,
    end: CancellationToken,
}

impl Sessions {
    fn by_app(&self) -> MutexGuard<'_, HashMap<AppId, Open>> {
        self.by_app.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AppSession {
    /// Returns once the app is deleted.
    pub async fn ended(&self) {
        self.end.cancelled().await;
    }
}

impl Drop for AppSession {
    fn drop(&mut self) {
        let mut by_app = self.sessions.by_app();
        if let Some(open) = by_app.get_mut(&self.app) {
            open.count = open.count.saturating_sub(1);
            if open.count == 0 {
                by_app.remove(&self.app);
            }
        }
    }
}

impl Accounts {
    /// Begins a session of an app.
    #[must_use]
    pub fn begin_session(&self, app: AppId) -> AppSession {
        let mut by_app = self.sessions.by_app();
        let open = by_app.entry(app).or_insert_with(|| Open {
            count: 0,
            end: CancellationToken::new(),
        });
        open.count += 1;
        AppSession {
            sessions: Arc::clone(&self.sessions),
            app,
            end: open.end.clone(),
        }
    }

    /// Ends all sessions of an app in this process.
    pub fn end_sessions(&self, app: AppId) {
        if let Some(open) = self.sessions.by_app().get(&app) {
            open.end.cancel();
        }
    }

    /// Ends the sessions of apps deleted from the database: for when an announcement was missed.
    pub async fn end_orphaned_sessions(&self) -> Result<(), sqlx::Error> {
        let apps: Vec<AppId> = self.sessions.by_app().keys().copied().collect();
        if apps.is_empty() {
            return Ok(());
        }
        let gone = {
            let mut connection = self.pool.acquire().await?;
            mailgate_storage::apps::gone(&mut connection, &apps).await?
        };
        for app in gone {
            self.end_sessions(app);
        }
        Ok(())
    }
}
