//! The audit trail: who changed what, when, and from where.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::AppState;
use crate::http::access::AuditRead;
use crate::http::authority::AuthenticatedSubscriber;
use crate::http::problem::{Problem, take};
use crate::http::query::{Described, whole_number};
use crate::openapi::enums::inlined;
use mailgate_domain::reports::{AppReference, AuditFilter, StoredEntry};
use mailgate_types::audit::{Actor, AuditAction};
use mailgate_types::date::Date;
use mailgate_types::ids::{ApiSecretId, AuditEntryId};
use mailgate_types::moment::iso8601;

/// Default and maximum number of entries on a page.
const LIMIT: u32 = 20;
const LARGEST: u32 = 100;

/// Maximum number of entries to skip; `cursor` goes further.
const FURTHEST: u32 = 10_000;

/// The filters.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Maximum number of entries.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 100, default = 20)]
    limit: Option<String>,
    /// Number of entries to skip. To go further, use `cursor`.
    #[param(value_type = Option<i64>, minimum = 0, maximum = 10_000, default = 0)]
    offset: Option<String>,
    /// The `next_cursor` of the previous page: returns the entries after it.
    #[param(
        example = "audit_01h2xcejqtf2nbrexx3vqjhp41",
        pattern = "^audit_[0-7][0-9a-hjkmnp-tv-z]{25}$"
    )]
    cursor: Option<String>,
    /// Only entries of this app: its UUID, or its `app_id` (the slug). A deleted app works too; an app that isn't
    /// yours has no entries.
    #[param(pattern = "^[a-z0-9-]{1,69}$")]
    app_id: Option<String>,
    /// Only entries with this action.
    #[param(value_type = Option<AuditAction>, inline)]
    action: Option<String>,
    /// From this moment on: ISO 8601, with an offset or else in UTC; a date alone means the start of that day
    /// (UTC).
    #[param(
        example = "2026-11-01",
        pattern = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?)?$"
    )]
    from_date: Option<String>,
    /// Up to and including this moment: ISO 8601, with an offset or else in UTC; a date alone means the end of that
    /// day (UTC).
    #[param(
        example = "2026-11-30T12:00:00+01:00",
        pattern = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?)?$"
    )]
    to_date: Option<String>,
}

/// A page of the audit trail.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditShown {
    /// Newest first.
    entries: Vec<AuditItem>,
    /// Whether there are older entries.
    has_more: bool,
    /// The `cursor` for the older entries; null if there are none.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// A change.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditItem {
    /// `audit_…`
    #[schema(example = "audit_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// The action.
    #[schema(schema_with = inlined::<AuditAction>)]
    action: String,
    /// The actor.
    #[schema(value_type = Actor)]
    actor: String,
    /// The additional API secret used, `asec_…`; null for the main one, in the portal, and for other
    /// actors.
    #[schema(required, example = "asec_01h2xcejqtf2nbrexx3vqjhp41")]
    api_secret_id: Option<String>,
    /// The client's IP address; null if there was none.
    #[schema(required)]
    address: Option<String>,
    /// The app's UUID; null if the change concerns no app.
    #[schema(required, format = "uuid")]
    app_id: Option<String>,
    /// The app's `app_id`, even after the app is deleted.
    #[schema(required)]
    app_slug: Option<String>,
    /// The target: the mailbox, `cred_…`, the user, by the `user_key`, the webhook configuration, `wconf_…`, the send
    /// key, `skey_…`, or the API secret, `asec_…`.
    #[schema(required)]
    target: Option<String>,
    /// Further details, depending on the action; for changed fields `from` and `to`. Strings are truncated to 256
    /// characters.
    #[schema(value_type = Object)]
    details: serde_json::Value,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
}

impl AuditItem {
    fn new(entry: StoredEntry) -> Self {
        let id = AuditEntryId(entry.id);
        Self {
            id: id.to_string(),
            action: entry.action,
            actor: entry.actor,
            api_secret_id: entry.api_secret_id.map(|id| ApiSecretId(id).to_string()),
            address: entry.address,
            app_id: entry.app_id.map(|id| id.to_string()),
            app_slug: entry.app_slug,
            target: entry.target,
            details: entry.details,
            created_at: iso8601(id.moment().unwrap_or_default()),
        }
    }
}

/// The audit trail, newest first. It records who changed your keys, apps, webhook configurations, mailboxes and
/// subscription, and is kept as long as the log. An app's entries stay when it is deleted.
#[utoipa::path(
    get,
    path = "/audit",
    operation_id = "list_audit_entries",
    tag = "Subscriber",
    security(("api_secret" = ["audit:read"])),
    params(AuditQuery),
    responses(
        (status = 200, body = AuditShown),
        (status = 422, description = "`invalid_request`"),
    )
)]
pub(crate) async fn list(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<AuditRead>,
    Described(query): Described<AuditQuery>,
) -> Result<Json<AuditShown>, Problem> {
    let mut errors = Vec::new();
    let limit = whole_number("limit", query.limit, 1..=LARGEST, &mut errors);
    let offset = whole_number("offset", query.offset, 0..=FURTHEST, &mut errors);
    let filter = AuditFilter {
        app: take(&mut errors, "app_id", query.app_id, AppReference::parse),
        actions: Vec::from_iter(take(&mut errors, "action", query.action, str::parse)),
        actor: None,
        from: take(&mut errors, "from_date", query.from_date, Date::parse).map(Date::first),
        before: take(&mut errors, "to_date", query.to_date, Date::parse).map(Date::behind),
        older_than: take(&mut errors, "cursor", query.cursor, str::parse),
    };
    if !errors.is_empty() {
        return Err(Problem::fields(errors));
    }
    let limit = limit.unwrap_or(LIMIT) as usize;
    let offset = offset.unwrap_or(0).into();
    let page = state
        .reports
        .audit(caller.subscriber.id, &filter, limit, offset)
        .await?;
    let entries: Vec<_> = page.entries.into_iter().map(AuditItem::new).collect();
    Ok(Json(AuditShown {
        next_cursor: page.next.map(|id| id.to_string()),
        has_more: page.next.is_some(),
        entries,
    }))
}
