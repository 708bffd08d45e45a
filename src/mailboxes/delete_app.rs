//! Deletes an app with everything that it had: its users and mailboxes, its keys, its waiting mail. The
//! grants are revoked at the providers, where they can be.

use std::sync::Arc;

use chrono::TimeDelta;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::{Mailboxes, token};
use crate::providers::mail::MailProviders;
use crate::storage::{apps, deleted_apps, mailboxes, spool};
use crate::types::ids::{AppId, CredentialId};
use crate::types::plugin::Plugin;

/// Log rows that are removed together.
const BATCH: i64 = 1_000;

/// How long a message may have been on its way when its app was deleted.
const LATE: TimeDelta = TimeDelta::hours(2);

impl Mailboxes {
    /// Deletes an app; `false` when it was gone. Returns before the grants are revoked.
    ///
    /// # Errors
    ///
    /// What the database said; nothing is deleted then.
    pub async fn delete_app(&self, app: AppId) -> Result<bool, sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        if !apps::lock(&mut transaction, app).await? {
            return Ok(false);
        }
        let grants = mailboxes::grants(&mut transaction, app).await?;
        spool::delete_waiting(&mut transaction, app).await?;
        apps::delete(&mut transaction, app).await?;
        deleted_apps::insert(&mut transaction, app, self.clock.now()).await?;
        apps::announce_deleted(&mut transaction, app).await?;
        transaction.commit().await?;
        tracing::info!(app_id = %app, mailboxes = grants.len(), "an app was deleted");
        let tokens: Vec<_> = grants
            .into_iter()
            .filter_map(|(plugin, id, sealed)| {
                let context = token::refresh_context(id);
                let token = self.seal_keys.unseal(&context, &sealed).ok()?;
                Some((plugin, id, token))
            })
            .collect();
        if !tokens.is_empty() {
            let providers = Arc::clone(&self.providers);
            self.tracker.spawn(revoke(providers, tokens));
        }
        Ok(true)
    }
}

impl Mailboxes {
    /// Removes the log rows of deleted apps, batch by batch, until there are none or `stop`. Several
    /// replicas may do it at once.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn remove_traces(&self, stop: &CancellationToken) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        for app in deleted_apps::list(&mut connection).await? {
            while !stop.is_cancelled() {
                if deleted_apps::remove_logs(&mut connection, app, BATCH).await? == 0 {
                    deleted_apps::remove_counters(&mut connection, app).await?;
                    let before = self.clock.now() - LATE;
                    deleted_apps::forget(&mut connection, app, before).await?;
                    break;
                }
            }
        }
        Ok(())
    }
}

/// One after the other, each bounded by the provider's time-out. What can't be revoked is told; nobody
/// has the token any more.
async fn revoke(providers: Arc<MailProviders>, tokens: Vec<(Plugin, CredentialId, SecretString)>) {
    for (plugin, id, token) in tokens {
        let Some(provider) = providers.get(plugin) else {
            continue;
        };
        match provider.oauth.revoke(&token).await {
            Ok(revoked) => tracing::info!(credential_id = %id, revoked, "a grant has ended"),
            Err(error) => {
                tracing::warn!(credential_id = %id, %error, "a grant could not be revoked");
            }
        }
    }
}
