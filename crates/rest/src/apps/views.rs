//! Apps in responses.

use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::enums::{MailboxStatus, inlined};
use mailgate_domain::accounts::App;
use mailgate_domain::mailboxes::{ConnectedUser, Disconnected};
use mailgate_types::event::DisconnectReason;
use mailgate_types::moment::iso8601;
use mailgate_types::plugin::Plugin;

/// An app in the list.
#[derive(Serialize, ToSchema)]
pub(crate) struct AppItem {
    #[serde(flatten)]
    pub(crate) app: AppFieldsShown,
    /// Its connected mailboxes.
    pub(crate) users_count: i64,
}

/// The fields of both the list and the detail.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Serialize, ToSchema)]
pub(crate) struct AppFieldsShown {
    /// The app's UUID: the `app_id` of logs, filters and events.
    #[schema(format = "uuid")]
    pub(crate) id: String,
    /// The app's slug, which never changes: its SMTP user name.
    #[schema(example = "myapp")]
    pub(crate) app_id: String,
    /// The app's display name.
    pub(crate) name: String,
    /// `pk_…`: identifies the app in paths, in `POST /send` and in connect links.
    pub(crate) pushable_key: String,
    /// Shown to end users; empty if there is none.
    pub(crate) logo_url: String,
    /// Whether the app has several end users.
    pub(crate) multiuser: bool,
    /// Whether an end user may connect several mailboxes of one plugin.
    pub(crate) multilink: bool,
    /// Whether mailboxes can be connected only through connect sessions.
    pub(crate) require_connect_session: bool,
    /// Whether messages to recipients that have hard-bounced in the last 30 days are refused.
    pub(crate) suppress_bounced: bool,
    /// Receives every event; empty if there is none.
    pub(crate) webhook_url: String,
    /// Where end users go after connecting; empty if there is none.
    pub(crate) callback_url: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
}

/// All apps.
#[derive(Serialize, ToSchema)]
pub(crate) struct Apps {
    /// Oldest first.
    pub(crate) apps: Vec<AppItem>,
}

/// An app with its users.
#[derive(Serialize, ToSchema)]
pub(crate) struct AppDetail {
    #[serde(flatten)]
    pub(crate) app: AppFieldsShown,
    /// The connected mailboxes, in the order in which they were connected.
    pub(crate) users: Vec<ConnectedMailbox>,
    /// The disconnected mailboxes.
    pub(crate) former_users: Vec<FormerUser>,
}

/// A connected mailbox.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConnectedMailbox {
    /// The end user.
    #[schema(example = "0188bac7-4afa-78aa-bc3b-bd1eef28d881")]
    pub(crate) user_key: String,
    /// The mailbox's address.
    pub(crate) email: String,
    /// Every address that the mailbox may send as, its own first: the values allowed in `from` and in a `From:`
    /// header. The others come from the provider, if the mailbox's grant lets the gateway read them. They are
    /// refreshed when the mailbox is connected, once a day, and after the provider refuses a sender.
    #[schema(min_items = 1, max_items = 201, example = json!(["ada@example.com", "sales@example.com"]))]
    pub(crate) addresses: Vec<String>,
    /// Its plugin.
    #[schema(value_type = Plugin)]
    pub(crate) plugin: String,
    /// `cred_…`: the mailbox.
    pub(crate) credential_id: String,
    /// Your own ID for the end user; null in an app without multiuser.
    #[schema(required)]
    pub(crate) user_id: Option<String>,
    /// Always `active`: disconnected mailboxes are in `former_users`.
    #[schema(schema_with = inlined::<MailboxStatus>)]
    pub(crate) status: &'static str,
    /// When it was last connected, ISO 8601, UTC.
    #[schema(format = DateTime)]
    pub(crate) connected_at: String,
    /// Whether the gateway detects replies and bounces: only if both the grant and the provider let it read the
    /// mailbox.
    pub(crate) reply_tracking: bool,
    /// Why the provider refuses to let the gateway read the mailbox, in its words; null if it doesn't. Retried at
    /// growing intervals of up to a day.
    #[schema(required)]
    pub(crate) reply_tracking_error: Option<String>,
    /// Whether `message_id` is the Message-ID that recipients see. If not, the provider gives each message its own,
    /// which the mailbox's grant doesn't let the gateway read. Replies then can't be detected, and a message whose
    /// connection closed during sending can't be confirmed as sent.
    pub(crate) message_id_known: bool,
}

/// A disconnected mailbox.
#[derive(Serialize, ToSchema)]
pub(crate) struct FormerUser {
    /// The end user.
    #[schema(example = "0188bac7-4afa-78aa-bc3b-bd1eef28d881")]
    pub(crate) user_key: String,
    /// The mailbox's address.
    pub(crate) email: String,
    /// Its plugin.
    #[schema(value_type = Plugin)]
    pub(crate) plugin: String,
    /// `cred_…`: the mailbox. It keeps this ID when it is reconnected.
    pub(crate) credential_id: String,
    /// Your own ID for the end user; null in an app without multiuser.
    #[schema(required)]
    pub(crate) user_id: Option<String>,
    /// The reason, as in `user.disconnected`.
    #[schema(value_type = DisconnectReason)]
    pub(crate) reason: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    pub(crate) disconnected_at: String,
}

/// A new app, with its secrets.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Serialize, ToSchema)]
pub(crate) struct CreatedApp {
    /// The app's UUID: the `app_id` of logs, filters and events.
    #[schema(format = "uuid")]
    pub(crate) id: String,
    /// The app's slug, which never changes: its SMTP user name.
    #[schema(example = "myapp")]
    pub(crate) app_id: String,
    /// The app's display name.
    pub(crate) name: String,
    /// `pk_…`
    pub(crate) pushable_key: String,
    /// Whether the app has several end users.
    pub(crate) multiuser: bool,
    /// Whether an end user may connect several mailboxes of one plugin.
    pub(crate) multilink: bool,
    /// Whether mailboxes can be connected only through connect sessions.
    pub(crate) require_connect_session: bool,
    /// Whether messages to recipients that have hard-bounced in the last 30 days are refused.
    pub(crate) suppress_bounced: bool,
    /// Receives every event; empty if there is none.
    pub(crate) webhook_url: String,
    /// Where end users go after connecting; empty if there is none.
    pub(crate) callback_url: String,
    /// `whs_…`: signs deliveries to `webhook_url`.
    pub(crate) webhook_secret: String,
    /// `sek_…`: the credential of `POST /send`, and the SMTP password.
    pub(crate) send_key: String,
}

/// A changed app.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChangedApp {
    /// The app's UUID: the `app_id` of logs, filters and events.
    #[schema(format = "uuid")]
    pub(crate) id: String,
    /// The app's slug.
    #[schema(example = "myapp")]
    pub(crate) app_id: String,
    /// Its name.
    pub(crate) name: String,
    /// `pk_…`
    pub(crate) pushable_key: String,
}

/// A deleted app.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeletedApp {
    /// The app's slug.
    pub(crate) deleted: String,
}

/// An app's send key.
#[derive(Serialize, ToSchema)]
pub(crate) struct SendKeyShown {
    /// `sek_…`
    pub(crate) send_key: String,
}

/// An app's pushable key.
#[derive(Serialize, ToSchema)]
pub(crate) struct PushableKeyShown {
    /// `pk_…`
    pub(crate) pushable_key: String,
}

impl AppFieldsShown {
    pub(crate) fn new(app: App) -> Self {
        Self {
            id: app.id.to_string(),
            app_id: app.slug,
            name: app.name,
            pushable_key: app.pushable_key,
            logo_url: app.logo_url,
            multiuser: app.multiuser,
            multilink: app.multilink,
            require_connect_session: app.require_connect_session,
            suppress_bounced: app.suppress_bounced,
            webhook_url: app.webhook_url,
            callback_url: app.callback_url,
            created_at: iso8601(app.created_at),
        }
    }
}

impl ConnectedMailbox {
    pub(crate) fn new(user: ConnectedUser, reply_tracking: bool, message_id_known: bool) -> Self {
        let mut addresses = vec![user.email.clone()];
        addresses.extend(user.aliases);
        Self {
            user_key: user.user_key.to_string(),
            email: user.email,
            addresses,
            plugin: user.plugin.to_string(),
            credential_id: user.id.to_string(),
            user_id: user.user_id,
            status: "active",
            connected_at: iso8601(user.connected_at),
            reply_tracking,
            reply_tracking_error: user.reading_refused,
            message_id_known,
        }
    }
}

impl FormerUser {
    pub(crate) fn new(user: ConnectedUser, ended: Disconnected) -> Self {
        Self {
            user_key: user.user_key.to_string(),
            email: user.email,
            plugin: user.plugin.to_string(),
            credential_id: user.id.to_string(),
            user_id: user.user_id,
            reason: ended.reason,
            disconnected_at: iso8601(ended.at),
        }
    }
}
