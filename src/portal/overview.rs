//! The overview: first steps until they are done, and the messages of the last 30 days.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::PortalState;
use super::fields::{Asked, Common};
use super::frame::{Frame, Section};
use super::page::page;
use super::problem::PortalProblem;
use super::session::Session;
use super::words::number;
use crate::reports::{AppReference, Period, PeriodCounts};
use mailgate_types::log_status::LogStatus;

/// A first step.
struct Step {
    done: bool,
    words: &'static str,
    path: &'static str,
}

/// A day of the table.
struct Day {
    date: String,
    sent: String,
    waiting: String,
    failed: String,
    bounced: String,
}

impl Day {
    fn new(period: &PeriodCounts) -> Self {
        let counts = &period.counts;
        let of = |status| number(counts.sum(None, Some(status)));
        Self {
            date: period.start.to_string(),
            sent: of(LogStatus::Sent),
            waiting: of(LogStatus::FailedTemp),
            failed: of(LogStatus::FailedPerm),
            bounced: number(counts.bounced(None)),
        }
    }
}

/// The page.
#[derive(Template)]
#[template(path = "portal/overview.html")]
struct OverviewPage {
    frame: Frame,
    /// Empty once all is done.
    steps: Vec<Step>,
    /// Those with messages, newest first.
    days: Vec<Day>,
    total: String,
}

/// Shows it.
pub(super) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Asked(common): Asked<Common>,
) -> Result<Response, PortalProblem> {
    let app = common.app().map(AppReference::parse).transpose();
    let app = app.map_err(|_| PortalProblem::not_found())?;
    let frame = Frame::load(
        &state,
        &session.subscriber,
        Section::Overview,
        "Overview",
        common.app(),
    )
    .await;
    let report = state
        .reports
        .email_stats(session.id(), Period::Day, app.as_ref());
    let report = report.await?;
    let total: i64 = report
        .data
        .iter()
        .map(|day| day.counts.sum(None, None))
        .sum();
    let with_messages = |day: &&PeriodCounts| day.counts.sum(None, None) > 0;
    let days = report.data.iter().rev().filter(with_messages);
    let steps = steps(&frame, total > 0);
    let body = OverviewPage {
        days: days.map(Day::new).collect(),
        total: number(total),
        steps,
        frame,
    };
    Ok(page(StatusCode::OK, &body))
}

fn steps(frame: &Frame, has_sent: bool) -> Vec<Step> {
    let apps = frame.inside.as_ref().map_or(&[][..], |inside| &inside.apps);
    let has_mailbox = apps.iter().any(|app| app.users_count > 0);
    let has_webhook = apps.iter().any(|app| !app.webhook_url.is_empty());
    let step = |done, words, section: Section| Step {
        done,
        words,
        path: section.path(),
    };
    let steps = vec![
        step(!apps.is_empty(), "Create an app", Section::Apps),
        step(has_mailbox, "Connect a mailbox", Section::Mailboxes),
        step(has_sent, "Send a message", Section::Apps),
        step(has_webhook, "Add a webhook", Section::Webhooks),
    ];
    if steps.iter().all(|step| step.done) {
        Vec::new()
    } else {
        steps
    }
}
