//! Messages that an app had refused before a mailbox was chosen, and that have no log row.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::AppState;
use crate::http::access::LogsRead;
use crate::http::authority::OwnedApp;
use crate::http::problem::Problem;
use crate::http::query::{Described, whole_number};
use mailgate_domain::reports::{LAST, RefusalReport};
use mailgate_types::door::Door;
use mailgate_types::moment::iso8601;
use mailgate_types::refusal::RefusalReason;

/// The filters.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RefusalQuery {
    /// Maximum number of refusals.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 100, default = 20)]
    limit: Option<String>,
}

/// The refusals of the last seven days.
#[derive(Serialize, ToSchema)]
pub(crate) struct RefusalList {
    /// Newest first, out of the last 100 messages that were refused.
    refusals: Vec<RefusalItem>,
    /// The number of refusals per hour and reason, the newest hour first.
    counts: Vec<RefusalCount>,
}

/// A message that was refused before a mailbox was chosen for it.
#[derive(Serialize, ToSchema)]
pub(crate) struct RefusalItem {
    /// `ref_…`
    #[schema(example = "ref_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// When it was refused, ISO 8601, UTC.
    #[schema(format = DateTime)]
    refused_at: String,
    /// The interface that received it.
    #[schema(value_type = Door)]
    door: &'static str,
    /// The reason.
    #[schema(value_type = RefusalReason)]
    reason: &'static str,
    /// Its sender; null if it wasn't given or couldn't be read.
    #[schema(required)]
    from: Option<String>,
    /// Its first recipient; null if it couldn't be read.
    #[schema(required)]
    to: Option<String>,
}

/// The refusals of an hour.
#[derive(Serialize, ToSchema)]
pub(crate) struct RefusalCount {
    /// The start of the hour, ISO 8601, UTC.
    #[schema(format = DateTime)]
    hour: String,
    /// The reason.
    #[schema(value_type = RefusalReason)]
    reason: &'static str,
    /// The number of refusals.
    count: i64,
}

impl From<RefusalReport> for RefusalList {
    fn from(report: RefusalReport) -> Self {
        let refusals = report.last.into_iter().map(|refused| RefusalItem {
            id: refused.id.to_string(),
            refused_at: refused.id.moment().map(iso8601).unwrap_or_default(),
            door: refused.door.as_str(),
            reason: refused.reason.as_str(),
            from: refused.from,
            to: refused.to,
        });
        let counts = report.counts.into_iter().map(|count| RefusalCount {
            hour: iso8601(count.hour),
            reason: count.reason.as_str(),
            count: count.messages,
        });
        Self {
            refusals: refusals.collect(),
            counts: counts.collect(),
        }
    }
}

/// Lists messages that were refused before a mailbox was chosen for them. They appear neither in `GET /logs` nor in the
/// statistics.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/refusals",
    operation_id = "list_refusals",
    tag = "Apps",
    security(("api_secret" = ["logs:read"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        RefusalQuery,
    ),
    responses(
        (status = 200, body = RefusalList),
        (status = 422, description = "`invalid_request`"),
    )
)]
pub(crate) async fn list(
    State(state): State<AppState>,
    OwnedApp { app, .. }: OwnedApp<LogsRead>,
    Described(query): Described<RefusalQuery>,
) -> Result<Json<RefusalList>, Problem> {
    let mut errors = Vec::new();
    let most = u32::try_from(LAST).unwrap_or(u32::MAX);
    let limit = whole_number("limit", query.limit, 1..=most, &mut errors);
    if !errors.is_empty() {
        return Err(Problem::fields(errors));
    }
    let report = state
        .refusals
        .of_app(app.id, limit.unwrap_or(20).into())
        .await?;
    Ok(Json(report.into()))
}
