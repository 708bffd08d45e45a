//! Delivering many past events to an endpoint again, after an outage of its receiver.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use chrono::TimeDelta;
use serde::Deserialize;

use crate::PortalState;
use crate::page::fields::{Asked, Sent};
use crate::page::frame::{Frame, Section, query};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::words::number;
use crate::page::{page, see};
use crate::webhooks::{find, path};
use mailgate_domain::webhooks::{MOST_WAITING, OwnedEndpoint, Replay, ReplayError};
use mailgate_types::date::Date;

/// From when on events are replayed, unless somebody says otherwise.
const WEEK: TimeDelta = TimeDelta::days(7);

/// The form.
#[derive(Default, Deserialize)]
pub(crate) struct ReplayForm {
    #[serde(default)]
    since: String,
    #[serde(default)]
    until: String,
    /// `true`: delivered events; otherwise failed ones.
    #[serde(default)]
    success: String,
    /// Where an earlier replay ended.
    #[serde(default)]
    cursor: String,
}

/// The result of queuing a replay.
#[derive(Default, Deserialize)]
pub(crate) struct Outcome {
    #[serde(default)]
    queued: String,
    #[serde(default)]
    skipped: String,
    #[serde(default)]
    expired: String,
}

/// The page.
#[derive(Template)]
#[template(path = "webhook_replay.html")]
struct ReplayPage {
    frame: Frame,
    path: String,
    url: String,
    asked: ReplayForm,
    wrong: Vec<String>,
    /// The numbers of events queued, already queued, and no longer kept.
    done: Option<(String, String, String)>,
}

async fn form(
    state: &PortalState,
    session: &Session,
    endpoint: OwnedEndpoint,
    asked: ReplayForm,
    wrong: Vec<String>,
    done: Option<(String, String, String)>,
) -> Response {
    let (section, title) = (Section::Webhooks, "Replay events");
    let slug = Some(endpoint.slug.as_str());
    let status = if wrong.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let body = ReplayPage {
        frame: Frame::load(state, &session.subscriber, section, title, slug).await,
        path: path(&endpoint),
        url: endpoint.url,
        asked,
        wrong,
        done,
    };
    page(status, &body)
}

/// Shows the form, and the result of the last replay.
pub(crate) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
    Asked(mut asked): Asked<ReplayForm>,
    Asked(result): Asked<Outcome>,
) -> Result<Response, PortalProblem> {
    let endpoint = find(&state, session.id(), &id).await?.endpoint;
    let count = |text: &str| text.parse().map_or_else(|_| number(0), number);
    let done = result.queued.parse::<i64>().ok().map(|queued| {
        let (skipped, expired) = (count(&result.skipped), count(&result.expired));
        (number(queued), skipped, expired)
    });
    if asked.since.is_empty() {
        let week_ago = state.clock.now() - WEEK;
        asked.since = week_ago.date_naive().to_string();
    }
    Ok(form(&state, &session, endpoint, asked, Vec::new(), done).await)
}

/// Queues them.
pub(crate) async fn replay(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
    Sent(sent): Sent<ReplayForm>,
) -> Result<Response, PortalProblem> {
    let endpoint = find(&state, session.id(), &id).await?.endpoint;
    let wanted = match read(&sent) {
        Ok(wanted) => wanted,
        Err(wrong) => return Ok(form(&state, &session, endpoint, sent, wrong, None).await),
    };
    let here = path(&endpoint);
    let (app, config) = (endpoint.app, endpoint.id.config(endpoint.app));
    let replayed = state
        .webhooks
        .replay(app, config, &wanted, session.author());
    let replayed = replayed.await.map_err(|error| refused(error, &here))?;
    let cursor = replayed.next.map(|next| next.to_string());
    let counts = [replayed.queued, replayed.skipped, replayed.expired].map(|it| it.to_string());
    let query = query(&[
        ("since", &sent.since),
        ("until", &sent.until),
        ("success", &sent.success),
        ("cursor", cursor.as_deref().unwrap_or_default()),
        ("queued", &counts[0]),
        ("skipped", &counts[1]),
        ("expired", &counts[2]),
    ]);
    Ok(see(&format!("{here}/replay?{query}")))
}

fn read(sent: &ReplayForm) -> Result<Replay, Vec<String>> {
    let mut wrong = Vec::new();
    let since = Date::parse(sent.since.trim()).map(Date::first);
    if since.is_err() {
        wrong.push("Enter the first day to replay.".to_owned());
    }
    let until = Some(sent.until.trim()).filter(|until| !until.is_empty());
    let before = until.map(|until| Date::parse(until).map(Date::behind));
    if let Some(Err(_)) = before {
        wrong.push("Enter the last day, or leave it empty.".to_owned());
    }
    let before = before.and_then(Result::ok);
    let since = since.ok();
    if let (Some(since), Some(before)) = (since, before)
        && before <= since
    {
        wrong.push("The end must not be before the beginning.".to_owned());
    }
    let cursor = Some(sent.cursor.as_str()).filter(|cursor| !cursor.is_empty());
    let cursor = cursor.map(str::parse);
    if let Some(Err(_)) = cursor {
        wrong.push("Start the replay again: it can't be continued from here.".to_owned());
    }
    match since {
        Some(since) if wrong.is_empty() => Ok(Replay {
            since,
            before,
            success: sent.success == "true",
            event: None,
            cursor: cursor.and_then(Result::ok),
        }),
        _ => Err(wrong),
    }
}

fn refused(error: ReplayError, here: &str) -> PortalProblem {
    let (code, text) = match error {
        ReplayError::NotFound => return PortalProblem::not_found(),
        ReplayError::Database(error) => return PortalProblem::database(&error),
        ReplayError::Inactive => (
            "webhook_inactive",
            "The webhook is paused. Resume it first.".to_owned(),
        ),
        ReplayError::UnderWay => (
            "replay_under_way",
            "Another replay is being queued at this moment. Try again in a few seconds.".to_owned(),
        ),
        ReplayError::OthersUnderWay => (
            "replay_under_way",
            "A replay of another app is being queued at this moment. Try again in a few seconds."
                .to_owned(),
        ),
        ReplayError::Full => (
            "too_many_waiting",
            format!(
                "{} deliveries are waiting for the webhook. Try again when some have been made.",
                number(MOST_WAITING)
            ),
        ),
    };
    PortalProblem::new(StatusCode::CONFLICT, code, "Nothing was queued", text)
        .leading("Back to the webhook", here.to_owned())
}
