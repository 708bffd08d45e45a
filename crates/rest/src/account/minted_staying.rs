//! Apps and webhooks that a thief may have created: renewing the API secret lists them, but doesn't end them.

use serde::Serialize;
use utoipa::ToSchema;

use mailgate_domain::accounts::{Recent, RecentApp, RecentWebhook};
use mailgate_types::moment::iso8601;

/// What no renewal ends: delete anything that isn't yours.
#[derive(Serialize, ToSchema)]
pub(crate) struct MintedStaying {
    /// Apps created since then, newest first, 100 at most. They stay, with their mailboxes, also with `revoke=all`:
    /// delete those that you don't recognize.
    #[schema(max_items = 100)]
    apps: Vec<MintedAppShown>,
    /// Number of apps created since then.
    #[schema(minimum = 0)]
    app_count: i64,
    /// Webhook configurations created or changed since then, the last changed first, 100 at most. They stay as well.
    /// Changes to an app's own `webhook_url` are in the audit trail.
    #[schema(max_items = 100)]
    webhooks: Vec<MintedWebhookShown>,
    /// Number of webhook configurations created or changed since then.
    #[schema(minimum = 0)]
    webhook_count: i64,
}

/// An app.
#[derive(Serialize, ToSchema)]
pub(crate) struct MintedAppShown {
    /// Its `id`.
    #[schema(format = "uuid")]
    id: String,
    /// Its `app_id`.
    app_slug: String,
    /// Its name.
    name: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
}

/// A webhook configuration.
#[derive(Serialize, ToSchema)]
pub(crate) struct MintedWebhookShown {
    /// `wconf_…`
    #[schema(example = "wconf_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// The app's `app_id`.
    app_slug: String,
    /// The host of its URL.
    #[schema(example = "hooks.example.com")]
    host: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// ISO 8601, UTC: its last change.
    #[schema(format = DateTime)]
    updated_at: String,
}

impl MintedStaying {
    pub(crate) fn new(apps: Recent<RecentApp>, webhooks: Recent<RecentWebhook>) -> Self {
        Self {
            apps: apps
                .listed
                .into_iter()
                .map(|app| MintedAppShown {
                    id: app.id.to_string(),
                    app_slug: app.slug,
                    name: app.name,
                    created_at: iso8601(app.created_at),
                })
                .collect(),
            app_count: apps.count,
            webhooks: webhooks
                .listed
                .into_iter()
                .map(|webhook| MintedWebhookShown {
                    id: webhook.id.to_string(),
                    host: webhook.host(),
                    app_slug: webhook.app_slug,
                    created_at: iso8601(webhook.created_at),
                    updated_at: iso8601(webhook.updated_at),
                })
                .collect(),
            webhook_count: webhooks.count,
        }
    }
}
