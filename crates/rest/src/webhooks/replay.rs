//! Delivers many past events again: to a webhook configuration, or to the app's own `webhook_url`.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::delivery::{inactive, replay_under_way};
use super::fields::event_name;
use crate::AppState;
use crate::http::access::WebhooksWrite;
use crate::http::authority::OwnedApp;
use crate::http::field::Field;
use crate::http::json_body::JsonBody;
use crate::http::problem::{FieldError, Problem, take};
use crate::webhooks::{OfWebhook, no_such_webhook};
use mailgate_domain::webhooks::{MOST_WAITING, Replay, ReplayError, Replayed};
use mailgate_types::audit::Author;
use mailgate_types::date::Date;
use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, WebhookConfigId};

/// The events to deliver again.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct ReplayRequest {
    /// Events from this moment on: ISO 8601, with an offset or else in UTC; a date alone means the start of that day
    /// (UTC).
    #[schema(value_type = String, required, example = "2026-11-01T09:00:00Z", pattern = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?)?$")]
    since: Field<String>,
    /// Up to and including this moment: ISO 8601, with an offset or else in UTC; a date alone means the end of that day
    /// (UTC). Up to now if omitted.
    #[schema(value_type = Option<String>, example = "2026-11-01T12:00:00Z", pattern = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?)?$")]
    until: Field<String>,
    /// False: only events whose last delivery attempt failed. True: only those whose last attempt succeeded.
    #[schema(value_type = Option<bool>, default = false)]
    success: Field<bool>,
    /// Only this event.
    #[schema(value_type = Option<EventName>)]
    event: Field<String>,
    /// The `next_cursor` of an earlier response, to continue with the same fields.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,15}([.]wdel_[0-7][0-9a-hjkmnp-tv-z]{25})?$", example = "1793523600000.wdel_01h2xcejqtf2nbrexx3vqjhp41")]
    cursor: Field<String>,
}

/// The result of queuing a replay.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplayResult {
    /// Events that were queued.
    #[schema(minimum = 0, maximum = 10_000)]
    queued: i64,
    /// Events that were already queued, or are being delivered at this moment.
    #[schema(minimum = 0)]
    skipped: i64,
    /// Events whose body is no longer kept.
    #[schema(minimum = 0)]
    expired: i64,
    /// The `cursor` to continue with, once there is room; null if all events were queued.
    #[schema(required)]
    next_cursor: Option<String>,
}

impl ReplayRequest {
    fn validate(self) -> Result<Replay, Problem> {
        let mut errors = Vec::new();
        let since = self.since.required("since", &mut errors);
        let since = take(&mut errors, "since", since, Date::parse).map(Date::first);
        let until = self.until.optional("until", &mut errors);
        let before = take(&mut errors, "until", until, Date::parse).map(Date::behind);
        if let (Some(since), Some(before)) = (since, before)
            && before <= since
        {
            errors.push(FieldError::new("until", "must not be before since"));
        }
        let success = self.success.optional("success", &mut errors);
        let event = self.event.optional("event", &mut errors);
        let event = take(&mut errors, "event", event, event_name);
        let cursor = self.cursor.optional("cursor", &mut errors);
        let cursor = take(&mut errors, "cursor", cursor, |text| {
            text.parse()
                .map_err(|_| "must be the next_cursor of a replay")
        });
        match since {
            Some(since) if errors.is_empty() => Ok(Replay {
                since,
                before,
                success: success.unwrap_or(false),
                event,
                cursor,
            }),
            _ => Err(Problem::fields(errors)),
        }
    }
}

/// Delivers past events to a configuration again, each as its next attempt with the same `webhook-id`. New events for
/// the configuration go first. At most 10,000 deliveries may wait for it: as many events are queued as there is room
/// for, and `next_cursor` continues with the rest.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/webhooks/{webhook_id}/replay",
    operation_id = "replay_webhook",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:write"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("webhook_id" = String, Path, description = "The configuration, `wconf_…`"),
    ),
    request_body = ReplayRequest,
    responses(
        (status = 202, body = ReplayResult),
        (status = 404, description = "`app_not_found`; `webhook_not_found`: the app has no such configuration"),
        (status = 409, description = "`webhook_inactive`: the configuration is inactive; `replay_under_way`: another replay of the app, or of another of your apps, is being queued, or this process is already queuing as many as it can; `too_many_waiting`: 10,000 deliveries are waiting"),
    )
)]
pub(crate) async fn replay(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<WebhooksWrite>,
    Path(path): Path<OfWebhook>,
    JsonBody(request): JsonBody<ReplayRequest>,
) -> Result<(StatusCode, Json<ReplayResult>), Problem> {
    let replay = request.validate()?;
    let author = caller.author;
    replayed(&state, app.id, Some(path.id()?), &replay, author).await
}

/// Delivers past events to the app's own `webhook_url` again, each as its next attempt with the same `webhook-id`. New
/// events go first. At most 10,000 deliveries may wait for it: as many events are queued as there is room for, and
/// `next_cursor` continues with the rest.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/replay",
    operation_id = "replay_app_webhook",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:write"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    request_body = ReplayRequest,
    responses(
        (status = 202, body = ReplayResult),
        (status = 409, description = "`webhook_inactive`: the app has no webhook_url; `replay_under_way`: another replay of the app, or of another of your apps, is being queued, or this process is already queuing as many as it can; `too_many_waiting`: 10,000 deliveries are waiting"),
    )
)]
pub(crate) async fn replay_of_app(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<WebhooksWrite>,
    JsonBody(request): JsonBody<ReplayRequest>,
) -> Result<(StatusCode, Json<ReplayResult>), Problem> {
    let replay = request.validate()?;
    replayed(&state, app.id, None, &replay, caller.author).await
}

async fn replayed(
    state: &AppState,
    app: AppId,
    config: Option<WebhookConfigId>,
    replay: &Replay,
    author: Author,
) -> Result<(StatusCode, Json<ReplayResult>), Problem> {
    let replayed = state.webhooks.replay(app, config, replay, author).await;
    let Replayed {
        queued,
        skipped,
        expired,
        next,
        began: _,
    } = replayed.map_err(|error| not_replayed(&error))?;
    let answer = ReplayResult {
        queued,
        skipped,
        expired,
        next_cursor: next.map(|next| next.to_string()),
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

fn not_replayed(error: &ReplayError) -> Problem {
    match error {
        ReplayError::NotFound => no_such_webhook(),
        ReplayError::Inactive => inactive(),
        ReplayError::UnderWay => replay_under_way(),
        ReplayError::OthersUnderWay => Problem::new(
            StatusCode::CONFLICT,
            "replay_under_way",
            "A replay of another app is being queued at this moment; try again in a few seconds.",
        ),
        ReplayError::Full => Problem::new(
            StatusCode::CONFLICT,
            "too_many_waiting",
            format!(
                "{MOST_WAITING} deliveries are waiting for the webhook; try again when some have been made."
            ),
        ),
        ReplayError::Database(error) => Problem::database(error),
    }
}
