//! Revokes grants at the providers. At some of them one revocation ends all grants of an account to a client, so the
//! grant of an account that is still connected is not revoked.

use secrecy::SecretString;

use tracing::Instrument as _;

use super::{Mailboxes, token};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::mailboxes::end::{self, Ended};
use mailgate_types::plugin::Plugin;

/// A grant that is no longer needed.
#[derive(Debug)]
pub(super) struct SpentGrant {
    pub(super) plugin: Plugin,
    /// The account's address in lower case, if known.
    pub(super) address_lookup: Option<String>,
    /// The refresh token, or the access token if there was no refresh token.
    pub(super) token: SecretString,
}

impl Mailboxes {
    /// The grants of disconnected mailboxes; one whose token can't be unsealed is left out.
    pub(super) fn spent_grants(&self, ended: Vec<Ended>) -> Vec<SpentGrant> {
        ended
            .into_iter()
            .filter_map(|ended| {
                let sealed = ended.refresh_token_sealed?;
                let context = token::refresh_context(ended.id);
                Some(SpentGrant {
                    plugin: ended.plugin,
                    address_lookup: Some(ended.email_lookup),
                    token: self.seal_keys.unseal(&context, &sealed).ok()?,
                })
            })
            .collect()
    }

    /// Revokes grants in the background, after the transaction that ended them.
    pub(super) fn revoke(&self, grants: Vec<SpentGrant>) {
        if grants.is_empty() {
            return;
        }
        let mailboxes = self.clone();
        let task = async move {
            // Sequentially, each bounded by the provider's timeout.
            for grant in grants {
                mailboxes.revoke_one(&grant).await;
            }
        };
        self.tracker.spawn(task.in_current_span());
    }

    /// A failure is only logged: the token is gone and can't be retried.
    async fn revoke_one(&self, grant: &SpentGrant) {
        let plugin = grant.plugin;
        let Some(provider) = self.providers.get(plugin) else {
            return;
        };
        match self.is_connected(grant).await {
            Ok(false) => {}
            Ok(true) => {
                tracing::info!(%plugin, "a grant is not revoked: its account is still connected");
                return;
            }
            Err(error) => {
                trouble!(warn, error, %plugin, "a grant is not revoked: it can't be determined whether its account is still connected");
                return;
            }
        }
        match provider.oauth.revoke(&grant.token).await {
            Ok(revoked) => tracing::info!(%plugin, revoked, "a grant has ended"),
            Err(error) => tracing::warn!(%plugin, %error, "a grant could not be revoked"),
        }
    }

    async fn is_connected(&self, grant: &SpentGrant) -> Result<bool, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let address = grant.address_lookup.as_deref();
        end::is_account_connected(&mut connection, grant.plugin, address).await
    }
}
