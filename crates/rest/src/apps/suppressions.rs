//! Suppressed recipients: they have hard-bounced. Deleting a suppression allows sending to them again.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::AppState;
use crate::http::access::{LogsRead, LogsWrite};
use crate::http::authority::OwnedApp;
use crate::http::problem::{Problem, take};
use crate::http::query::{Described, whole_number};
use mailgate_domain::accounts::{SUPPRESSED_FOR, Suppression};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::moment::iso8601;

/// A part of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SuppressionQuery {
    /// Maximum number of suppressions.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 100, default = 20)]
    limit: Option<String>,
    /// Number of suppressions to skip.
    #[param(value_type = Option<i64>, minimum = 0, maximum = 4_294_967_295_i64, default = 0)]
    offset: Option<String>,
    /// Only the suppression of this recipient.
    #[param(format = "idn-email", max_length = 254, example = "bob@example.com")]
    to_address: Option<String>,
}

/// Which suppressions to delete.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Deletion {
    /// Only the suppression of this recipient; all of the app's by default.
    #[param(format = "idn-email", max_length = 254, example = "bob@example.com")]
    to_address: Option<String>,
}

/// Recipients that have bounced.
#[derive(Serialize, ToSchema)]
pub(crate) struct SuppressionList {
    /// The most recent bounce first.
    suppressions: Vec<SuppressionItem>,
    /// The total number.
    #[schema(minimum = 0)]
    total: i64,
    /// Whether there are more.
    has_more: bool,
}

/// A recipient that has hard-bounced in the last 30 days.
#[derive(Serialize, ToSchema)]
pub(crate) struct SuppressionItem {
    /// The recipient, in lower case.
    to_address: String,
    /// The last message that bounced.
    log_id: String,
    /// When the gateway read that bounce, ISO 8601, UTC.
    #[schema(format = DateTime)]
    bounced_at: String,
    /// When the suppression ends, ISO 8601, UTC.
    #[schema(format = DateTime)]
    expires_at: String,
}

/// Suppressions that were deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeletedSuppressions {
    /// The number of suppressions deleted.
    #[schema(minimum = 0, example = 1)]
    deleted: i64,
}

impl From<Suppression> for SuppressionItem {
    fn from(suppression: Suppression) -> Self {
        Self {
            to_address: suppression.address,
            log_id: suppression.log.to_string(),
            bounced_at: iso8601(suppression.bounced_at),
            expires_at: iso8601(suppression.bounced_at + SUPPRESSED_FOR),
        }
    }
}

/// Lists the app's recipients that have hard-bounced in the last 30 days, the most recent bounce first.
///
/// They are listed whether or not the app has `suppress_bounced`, which refuses messages to them.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/suppressions",
    operation_id = "list_suppressions",
    tag = "Apps",
    security(("api_secret" = ["logs:read"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        SuppressionQuery,
    ),
    responses(
        (status = 200, body = SuppressionList),
        (status = 422, description = "`invalid_request`"),
    )
)]
pub(crate) async fn list(
    State(state): State<AppState>,
    OwnedApp { app, .. }: OwnedApp<LogsRead>,
    Described(query): Described<SuppressionQuery>,
) -> Result<Json<SuppressionList>, Problem> {
    let mut errors = Vec::new();
    let limit = whole_number("limit", query.limit, 1..=100, &mut errors);
    let offset = whole_number("offset", query.offset, 0..=u32::MAX, &mut errors);
    let address = take(
        &mut errors,
        "to_address",
        query.to_address,
        EmailAddress::parse,
    );
    if !errors.is_empty() {
        return Err(Problem::fields(errors));
    }
    let (limit, offset) = (limit.unwrap_or(20).into(), offset.unwrap_or(0).into());
    let page = state
        .accounts
        .suppressions(app.id, address.as_ref(), limit, offset)
        .await?;
    let suppressions: Vec<SuppressionItem> =
        page.suppressions.into_iter().map(Into::into).collect();
    let shown = i64::try_from(suppressions.len()).unwrap_or(i64::MAX);
    Ok(Json(SuppressionList {
        has_more: shown > 0 && offset.saturating_add(shown) < page.total,
        suppressions,
        total: page.total,
    }))
}

/// Deletes the suppression of one recipient, or all of the app's. Messages to them are accepted again until they bounce
/// again.
#[utoipa::path(
    delete,
    path = "/apps/{pushable_key}/suppressions",
    operation_id = "delete_suppressions",
    tag = "Apps",
    security(("api_secret" = ["logs:write"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        Deletion,
    ),
    responses(
        (status = 200, body = DeletedSuppressions),
        (status = 422, description = "`invalid_request`"),
    )
)]
pub(crate) async fn delete(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<LogsWrite>,
    Described(query): Described<Deletion>,
) -> Result<Json<DeletedSuppressions>, Problem> {
    let mut errors = Vec::new();
    let address = take(
        &mut errors,
        "to_address",
        query.to_address,
        EmailAddress::parse,
    );
    if !errors.is_empty() {
        return Err(Problem::fields(errors));
    }
    let deleted = state
        .accounts
        .delete_suppressions(app.id, address.as_ref(), caller.author)
        .await?;
    Ok(Json(DeletedSuppressions { deleted }))
}
