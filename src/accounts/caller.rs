//! A calling app: what its key authenticates, from memory or as queried.

use super::Accounts;
use super::authenticate::{AuthenticateError, PresentedKey};
use crate::storage::apps::SendingApp;
use mailgate_types::ids::AppVersion;
use mailgate_types::subscription::SubscriptionStatus;

/// An app, and the key that authenticated it.
#[derive(Debug, Clone)]
pub struct Caller {
    key: PresentedKey,
    app: SendingApp,
    /// Whether the database was queried since the call began.
    is_proven: bool,
}

impl Caller {
    /// The app that the key authenticates.
    #[must_use]
    pub fn app(&self) -> &SendingApp {
        &self.app
    }

    /// A digest of the send key, for [`Accounts::still_opens`].
    #[must_use]
    pub fn send_key_hash(&self) -> &[u8] {
        &self.key.hash
    }

    /// The status of its subscription.
    #[must_use]
    pub fn status(&self) -> Option<SubscriptionStatus> {
        self.app.subscription_status
    }

    /// The version of the app's data.
    #[must_use]
    pub fn version(&self) -> Option<AppVersion> {
        self.app.version
    }

    /// Whether it was queried during this call.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// Marks it as changed, to be queried again.
    pub fn doubt(&mut self) {
        self.is_proven = false;
    }
}

impl Accounts {
    /// The app that a key authenticated at its last query; `None` if that is not in memory.
    #[must_use]
    pub fn remembered(&self, key: &PresentedKey) -> Option<Caller> {
        let app = self.by_send_key.last(&key.digests)?;
        // Without a version there is no way to check whether it is still current.
        app.version?;
        Some(Caller {
            key: key.clone(),
            app,
            is_proven: false,
        })
    }

    /// The app that a key currently authenticates, with its subscriber's status. A key that was renewed, or whose app
    /// was deleted, is not valid any more.
    pub async fn caller(&self, key: &PresentedKey) -> Result<Caller, AuthenticateError> {
        let app = self.by_send_key.load(&key.digests).await?;
        Ok(Caller {
            key: key.clone(),
            app: app.ok_or(AuthenticateError::Wrong)?,
            is_proven: true,
        })
    }

    /// Queries the caller again unless that was done during this call.
    pub async fn prove(&self, caller: &mut Caller) -> Result<(), AuthenticateError> {
        if !caller.is_proven {
            *caller = self.caller(&caller.key).await?;
        }
        Ok(())
    }
}
