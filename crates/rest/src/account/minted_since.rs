//! Everything that was created with a renewed API secret.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::minted_staying::MintedStaying;
use crate::http::problem::{FieldError, Problem};
use mailgate_domain::accounts::{Minted, Renewal, RestoredEmail};
use mailgate_types::moment::iso8601;

/// What a renewal ends besides the secret.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RenewalQuery {
    /// `all`: also ends all additional API secrets, additional send keys and connect sessions.
    #[param(value_type = Option<String>, pattern = "^all$")]
    revoke: Option<String>,
    /// `true`: with `revoke=all`, keeps an address that was changed within 72 hours.
    #[param(value_type = Option<String>, pattern = "^true$")]
    keep_email: Option<String>,
}

impl RenewalQuery {
    pub(crate) fn validate(self) -> Result<Renewal, Problem> {
        let mut errors = Vec::new();
        let mut flag = |field, text: Option<String>, only: &'static str| match text {
            None => false,
            Some(text) => {
                if text != only {
                    errors.push(FieldError::new(field, format!("must be {only}")));
                }
                true
            }
        };
        let revokes = flag("revoke", self.revoke, "all");
        let keeps_email = flag("keep_email", self.keep_email, "true");
        if keeps_email && !revokes && errors.is_empty() {
            errors.push(FieldError::new("keep_email", "works only with revoke=all"));
        }
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        Ok(if revokes {
            Renewal::ending_all(keeps_email)
        } else {
            Renewal::default()
        })
    }
}

/// Everything that was created with the old API secret and earlier ones, and still existed.
#[derive(Serialize, ToSchema)]
pub(crate) struct MintedSince {
    /// When the API secret was last renewed before, ISO 8601, UTC; null if it never was. Anything newer was created
    /// with the old secret, or with an additional one.
    #[schema(format = DateTime, required)]
    since: Option<String>,
    /// Whether this call has ended all of these.
    revoked: bool,
    /// Additional API secrets, oldest first.
    api_secrets: Vec<MintedApiSecretShown>,
    /// Additional send keys of all apps.
    send_keys: Vec<MintedSendKeyShown>,
    /// Portal sessions; every renewal ends them.
    #[schema(minimum = 0)]
    portal_sessions: i64,
    /// Unused links that sign in to the portal; every renewal ends them.
    #[schema(minimum = 0)]
    portal_links: i64,
    /// Connect sessions of the last seven days, used or not; 1,000 means 1,000 or more.
    #[schema(minimum = 0, maximum = 1_000)]
    connect_sessions: i64,
    /// The change of the account's address, if it was changed since then, or can still be undone; null otherwise.
    #[schema(required)]
    email_change: Option<EmailChangeShown>,
    #[serde(flatten)]
    staying: MintedStaying,
}

/// A change of the account's address.
#[derive(Serialize, ToSchema)]
pub(crate) struct EmailChangeShown {
    /// The former address.
    #[schema(example = "owner@example.com")]
    former_email: String,
    /// The address that replaced it.
    #[schema(example = "owner@example.com")]
    email: String,
    /// When it was changed, ISO 8601, UTC; of several consecutive changes, the first.
    #[schema(format = DateTime)]
    changed_at: String,
    /// Whether the last change was less than 72 hours ago: then `revoke=all` restores the former address, unless
    /// `keep_email=true`.
    undoable: bool,
    /// Whether this call has restored it.
    restored: bool,
}

/// An additional API secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct MintedApiSecretShown {
    /// `asec_…`
    #[schema(example = "asec_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// Its name.
    name: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
}

/// An additional send key.
#[derive(Serialize, ToSchema)]
pub(crate) struct MintedSendKeyShown {
    /// `skey_…`
    #[schema(example = "skey_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// The app's `app_id`.
    app_slug: String,
    /// Its name.
    name: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
}

impl MintedSince {
    pub(crate) fn new(minted: Minted, renewal: &Renewal) -> Self {
        let secrets = minted.api_secrets.into_iter();
        let keys = minted.send_keys.into_iter();
        Self {
            since: minted.since.map(iso8601),
            revoked: renewal.revokes,
            api_secrets: secrets
                .map(|secret| MintedApiSecretShown {
                    id: secret.id.to_string(),
                    name: secret.name,
                    created_at: iso8601(secret.created_at),
                })
                .collect(),
            send_keys: keys
                .map(|key| MintedSendKeyShown {
                    id: key.id.to_string(),
                    app_slug: key.app_slug,
                    name: key.name,
                    created_at: iso8601(key.created_at),
                })
                .collect(),
            portal_sessions: minted.portal_sessions,
            portal_links: minted.portal_links,
            connect_sessions: minted.connect_sessions,
            email_change: minted.email_change.map(|changed| EmailChangeShown {
                former_email: changed.former_email,
                email: changed.email,
                changed_at: iso8601(changed.at),
                undoable: changed.is_undoable,
                restored: changed.is_undoable && renewal.restores != RestoredEmail::None,
            }),
            staying: MintedStaying::new(minted.apps, minted.webhooks),
        }
    }
}
