//! An app that calls: what its key opens, as it was known last or as it is.

use super::Accounts;
use super::authenticate::{AuthenticateError, PresentedKey};
use crate::storage::apps::SendingApp;
use mailgate_types::ids::AppVersion;
use mailgate_types::subscription::SubscriptionStatus;

/// An app, and the key that opens it.
#[derive(Debug, Clone)]
pub struct Caller {
    key: PresentedKey,
    app: SendingApp,
    /// The database was asked since the call began.
    is_proven: bool,
}

impl Caller {
    /// What its key opens.
    #[must_use]
    pub fn app(&self) -> &SendingApp {
        &self.app
    }

    /// Its subscription.
    #[must_use]
    pub fn status(&self) -> Option<SubscriptionStatus> {
        self.app.subscription_status
    }

    /// What all of this is as of.
    #[must_use]
    pub fn version(&self) -> Option<AppVersion> {
        self.app.version
    }

    /// Whether it is as of this call.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// It has changed, and is to be asked anew.
    pub fn doubt(&mut self) {
        self.is_proven = false;
    }
}

impl Accounts {
    /// The app that a key opened when it was asked last; `None` where that is not known.
    #[must_use]
    pub fn remembered(&self, key: &PresentedKey) -> Option<Caller> {
        let app = self.by_send_key.last(&key.digests)?;
        // Without a version nobody could tell whether it still holds.
        app.version?;
        Some(Caller {
            key: key.clone(),
            app,
            is_proven: false,
        })
    }

    /// The app that a key opens at this moment, with its subscriber's status: a key that was renewed or whose app
    /// was deleted since opens nothing.
    pub async fn caller(&self, key: &PresentedKey) -> Result<Caller, AuthenticateError> {
        let app = self.by_send_key.load(&key.digests).await?;
        Ok(Caller {
            key: key.clone(),
            app: app.ok_or(AuthenticateError::Wrong)?,
            is_proven: true,
        })
    }

    /// Asks once more where what is known of a caller is not of this call.
    pub async fn prove(&self, caller: &mut Caller) -> Result<(), AuthenticateError> {
        if !caller.is_proven {
            *caller = self.caller(&caller.key).await?;
        }
        Ok(())
    }
}
