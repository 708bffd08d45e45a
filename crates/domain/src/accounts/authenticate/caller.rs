//! A calling app, authenticated by its key, from memory or the database.

use std::num::NonZeroU32;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::rate::CalledBy;
use crate::accounts::Accounts;
use crate::accounts::authenticate::{AuthenticateError, PresentedKey, Unusable, has_expired};
use crate::accounts::keys::uses::UsedKey;
use mailgate_storage::apps::SendingApp;
use mailgate_types::ids::{AppVersion, CredentialId, SendKeyId};
use mailgate_types::subscription::Subscription;

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

    /// The additional send key; `None`: the app's main one.
    #[must_use]
    pub fn send_key(&self) -> Option<SendKeyId> {
        Some(self.app.restrictions.as_ref()?.id)
    }

    /// The rate limit that its calls count for: each send key has its own, so that one can't use up another's.
    #[must_use]
    pub fn called_by(&self) -> CalledBy {
        let key = self.send_key().map_or(self.app.id.0, |id| id.0);
        CalledBy::Key(key, self.app.subscriber)
    }

    /// The rate of each of the subscriber's keys, if the subscriber has its own.
    #[must_use]
    pub fn own_rate(&self) -> Option<NonZeroU32> {
        self.app.requests_per_second
    }

    /// Its subscription.
    #[must_use]
    pub fn subscription(&self) -> &Subscription {
        &self.app.subscription
    }

    /// The mailboxes that the key may send from; `None`: all of the app's.
    #[must_use]
    pub fn mailboxes(&self) -> Option<Arc<[CredentialId]>> {
        self.app.restrictions.as_ref()?.mailboxes.clone()
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
        // If it can no longer be used, the database decides.
        let now = self.clock.now();
        unusable(&app, key, now).is_none().then_some(())?;
        self.note_use(&app, now);
        Some(Caller {
            key: key.clone(),
            app,
            is_proven: false,
        })
    }

    /// The app that a key currently authenticates, with its subscriber's status. A key that was renewed, deleted or has
    /// expired, or whose app was deleted, is no longer valid; nor is one used from an address that it doesn't allow.
    pub async fn caller(&self, key: &PresentedKey) -> Result<Caller, AuthenticateError> {
        let app = self.by_send_key.load(&key.digests).await?;
        let app = app.ok_or(AuthenticateError::Wrong)?;
        let now = self.clock.now();
        if let Some((id, reason)) = unusable(&app, key, now) {
            tracing::info!(
                app_id = %app.id,
                send_key_id = %id,
                %reason,
                "a send key was refused"
            );
            return Err(AuthenticateError::Wrong);
        }
        self.note_use(&app, now);
        Ok(Caller {
            key: key.clone(),
            app,
            is_proven: true,
        })
    }

    fn note_use(&self, app: &SendingApp, now: DateTime<Utc>) {
        let used = match &app.restrictions {
            None => UsedKey::App(app.id),
            Some(restrictions) => UsedKey::SendKey(restrictions.id),
        };
        self.key_uses.note(used, now);
    }

    /// Queries the caller again unless that was done during this call.
    pub async fn prove(&self, caller: &mut Caller) -> Result<(), AuthenticateError> {
        if !caller.is_proven {
            *caller = self.caller(&caller.key).await?;
        }
        Ok(())
    }
}

/// Why a key is refused; the main one never is.
fn unusable(
    app: &SendingApp,
    key: &PresentedKey,
    now: DateTime<Utc>,
) -> Option<(SendKeyId, Unusable)> {
    let restrictions = app.restrictions.as_ref()?;
    if has_expired(restrictions.expires_at, now) {
        Some((restrictions.id, Unusable::Expired))
    } else if !restrictions.allowed.allow(key.address) {
        Some((restrictions.id, Unusable::Address))
    } else {
        None
    }
}
