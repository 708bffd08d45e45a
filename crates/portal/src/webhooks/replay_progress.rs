//! How far a replay has come: its page's address has what it began with, and the queue has the rest.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, TimeDelta};
use serde::Deserialize;

use super::{find, path};
use crate::PortalState;
use crate::page::fields::Asked;
use crate::page::frame::{Frame, Section, query};
use crate::page::page;
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::words::number;
use mailgate_domain::webhooks::{MOST_WAITING, Replayed};

/// What is replayed, as the form says it.
#[derive(Default, Deserialize)]
pub(crate) struct ReplayForm {
    #[serde(default)]
    pub(super) since: String,
    #[serde(default)]
    pub(super) until: String,
    /// `true`: delivered events; otherwise failed ones.
    #[serde(default)]
    pub(super) success: String,
    /// Where an earlier replay ended.
    #[serde(default)]
    pub(super) cursor: String,
}

/// Replays that began longer ago are forgotten.
const LONGEST: TimeDelta = TimeDelta::days(40);

/// The result of queuing a replay.
#[derive(Default, Deserialize)]
pub(crate) struct Outcome {
    /// When it began, in microseconds.
    #[serde(default)]
    began: String,
    #[serde(default)]
    pub(super) queued: String,
    #[serde(default)]
    skipped: String,
    #[serde(default)]
    expired: String,
}

impl Outcome {
    pub(super) fn new(replayed: &Replayed) -> Self {
        Self {
            began: replayed.began.timestamp_micros().to_string(),
            queued: replayed.queued.to_string(),
            skipped: replayed.skipped.to_string(),
            expired: replayed.expired.to_string(),
        }
    }

    /// The query of a page about the replay of these events.
    pub(super) fn query(&self, asked: &ReplayForm) -> String {
        query(&[
            ("since", &asked.since),
            ("until", &asked.until),
            ("success", &asked.success),
            ("cursor", &asked.cursor),
            ("began", &self.began),
            ("queued", &self.queued),
            ("skipped", &self.skipped),
            ("expired", &self.expired),
        ])
    }

    /// The events that weren't queued, in words; empty: none.
    pub(super) fn left_out(&self) -> String {
        let count = |text: &str| text.parse::<i64>().unwrap_or_default();
        let mut sentences = Vec::new();
        match count(&self.skipped) {
            0 => {}
            1 => sentences.push("1 is retried already.".to_owned()),
            many => sentences.push(format!("{} are retried already.", number(many))),
        }
        match count(&self.expired) {
            0 => {}
            1 => sentences.push("The body of 1 is no longer kept.".to_owned()),
            many => sentences.push(format!(
                "The bodies of {} are no longer kept.",
                number(many)
            )),
        }
        sentences.join(" ")
    }
}

/// The page of a replay that is queued.
#[derive(Template)]
#[template(path = "replay_progress.html")]
struct ProgressPage {
    frame: Frame,
    path: String,
    /// Its own path and query.
    here: String,
    is_running: bool,
    done: String,
    queued: String,
    /// The same, for the bar.
    value: i64,
    most: i64,
    left_out: String,
    asked: ReplayForm,
}

/// Shows how far a replay has come. The queue says so, whichever process delivers it.
pub(crate) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
    Asked(asked): Asked<ReplayForm>,
    Asked(outcome): Asked<Outcome>,
) -> Result<Response, PortalProblem> {
    let endpoint = find(&state, session.id(), &id).await?.endpoint;
    let began = outcome.began.parse().ok();
    let began = began.and_then(DateTime::from_timestamp_micros);
    let now = state.clock.now();
    let began = began.filter(|began| (now - LONGEST..now + LONGEST).contains(began));
    let (Some(began), Ok(queued)) = (began, outcome.queued.parse::<i64>()) else {
        return Err(PortalProblem::not_found());
    };
    let queued = queued.clamp(0, MOST_WAITING);
    let left = state.webhooks.replay_left(endpoint.id, began, queued);
    let left = left.await?;
    let (section, title) = (Section::Webhooks, "Replay events");
    let slug = Some(endpoint.slug.as_str());
    let path = path(&endpoint);
    let frame = Frame::load(&state, &session.subscriber, section, title, slug).await;
    let body = ProgressPage {
        frame: frame.below(endpoint.url, path.clone()),
        here: format!("{path}/replay/progress?{}", outcome.query(&asked)),
        path,
        is_running: left > 0,
        done: number(queued - left),
        queued: number(queued),
        value: queued - left,
        most: queued,
        left_out: outcome.left_out(),
        asked,
    };
    Ok(page(StatusCode::OK, &body))
}
