//! Delivering many past events to an endpoint again, after an outage of its receiver.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use chrono::TimeDelta;

use crate::PortalState;
use crate::page::fields::{Asked, Sent};
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::words::number;
use crate::page::{page, see};
use crate::webhooks::replay_progress::{Outcome, ReplayForm};
use crate::webhooks::webhook::MissedEvents;
use crate::webhooks::{find, path};
use mailgate_domain::webhooks::{EndpointReport, MOST_WAITING, Replay, ReplayError};
use mailgate_types::date::Date;

/// How far back events are replayed, unless somebody says otherwise.
const BACK: TimeDelta = TimeDelta::days(1);

/// The page.
#[derive(Template)]
#[template(path = "webhook_replay.html")]
struct ReplayPage {
    frame: Frame,
    path: String,
    url: String,
    asked: ReplayForm,
    wrong: Vec<String>,
    /// A replay queued nothing; the events that were left out, in words.
    nothing: Option<String>,
    /// What the endpoint has missed, then.
    missed: Option<MissedEvents>,
}

async fn form(
    state: &PortalState,
    session: &Session,
    report: EndpointReport,
    asked: ReplayForm,
    wrong: Vec<String>,
    nothing: Option<String>,
) -> Response {
    let missed = match nothing {
        Some(_) => MissedEvents::load(state, &report).await,
        None => None,
    };
    let endpoint = report.endpoint;
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
        missed,
        nothing,
    };
    page(status, &body)
}

/// Shows the form; also if a replay found nothing.
pub(crate) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
    Asked(mut asked): Asked<ReplayForm>,
    Asked(result): Asked<Outcome>,
) -> Result<Response, PortalProblem> {
    let report = find(&state, session.id(), &id).await?;
    let nothing = (!result.queued.is_empty()).then(|| result.left_out());
    if asked.since.is_empty() {
        let now = state.clock.now();
        let missed = state.webhooks.missed(report.endpoint.id).await?;
        // All that was missed, if it is known since when.
        let since = (missed.last_accepted).map_or(now - BACK, |last| last.min(now - BACK));
        asked.since = since.date_naive().to_string();
        asked.until = now.date_naive().to_string();
    }
    Ok(form(&state, &session, report, asked, Vec::new(), nothing).await)
}

/// Queues them.
pub(crate) async fn replay(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
    Sent(mut sent): Sent<ReplayForm>,
) -> Result<Response, PortalProblem> {
    let report = find(&state, session.id(), &id).await?;
    let wanted = match read(&sent) {
        Ok(wanted) => wanted,
        Err(wrong) => return Ok(form(&state, &session, report, sent, wrong, None).await),
    };
    let endpoint = &report.endpoint;
    let here = path(endpoint);
    let (app, config) = (endpoint.app, endpoint.id.config(endpoint.app));
    let replayed = state
        .webhooks
        .replay(app, config, &wanted, session.author());
    let replayed = replayed.await.map_err(|error| refused(error, &here))?;
    let cursor = replayed.next.map(|next| next.to_string());
    sent.cursor = cursor.unwrap_or_default();
    let query = Outcome::new(&replayed).query(&sent);
    let of = if replayed.queued == 0 {
        ""
    } else {
        "/progress"
    };
    Ok(see(&format!("{here}/replay{of}?{query}")))
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
