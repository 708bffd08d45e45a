//! The overview: first steps until they are done, what needs attention, and the messages of the last 30 days. Each part
//! is loaded separately, so that one failure doesn't hide the others.

pub(super) mod attention;
pub(super) mod plots;
pub(super) mod tiles;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::PortalState;
use super::page::page;
use crate::messages::Row;
use crate::page::fields::{Asked, Common};
use crate::page::frame::{Frame, Inside, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::words::number;
use attention::{Attention, attention};
use mailgate_domain::reports::{AppReference, EmailStats, Filter, NEWEST, Period, Start};
use mailgate_types::log_status::LogStatus;
use plots::{Day, MailboxBar, Plot, mailbox_bars};
use tiles::{Tile, tiles};

/// How many failed messages are shown.
const FAILURES: usize = 5;

/// A first step.
struct Step {
    done: bool,
    words: &'static str,
    path: String,
}

/// Messages by day.
struct Days {
    total: String,
    is_empty: bool,
    tiles: [Tile; 4],
    plot: Plot,
    /// Oldest first, as the bars are.
    table: Vec<Day>,
}

/// The page.
#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    /// Empty once all steps are done.
    steps: Vec<Step>,
    attention: Attention,
    /// `None`: they can't be shown at the moment.
    days: Option<Days>,
    /// `None`: they can't be shown at the moment.
    mailboxes: Option<Vec<MailboxBar>>,
    /// Number of recent messages that are counted by mailbox.
    newest: String,
    /// The latest messages that failed.
    failures: Vec<Row>,
}

impl OverviewPage {
    /// The number of steps that are done.
    fn done(&self) -> usize {
        self.steps.iter().filter(|step| step.done).count()
    }
}

/// Shows the page.
pub(super) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Asked(common): Asked<Common>,
) -> Result<Response, PortalProblem> {
    let app = common.app().map(AppReference::parse).transpose();
    let app = app.map_err(|_| PortalProblem::not_found())?;
    let (subscriber, section) = (&session.subscriber, Section::Overview);
    let frame = Frame::load(&state, subscriber, section, "Overview", common.app()).await;
    let (id, reports) = (session.id(), &state.reports);
    let later = Filter {
        app: app.clone(),
        ..Filter::default()
    };
    let failed = Filter {
        status: Some(LogStatus::FailedPerm),
        ..later.clone()
    };
    let (by_day, by_mailbox, attention, has_endpoint, has_mailbox, failures, later) = tokio::join!(
        reports.email_stats(id, Period::Day, app.as_ref()),
        reports.by_mailbox(id, app.as_ref()),
        attention(&state, id, &frame),
        state.webhooks.has_endpoint(id),
        state.accounts.has_mailbox(id),
        reports.logs(id, &failed, FAILURES, Start::Offset(0)),
        reports.scheduled(id, &later, 1, Start::Offset(0)),
    );
    let failures = known(failures, "latest failures");
    let later = known(later, "scheduled messages").and_then(|page| page.total);
    let by_day = known(by_day, "messages by day");
    let by_mailbox = known(by_mailbox, "messages by mailbox");
    let has_endpoint = known(has_endpoint, "webhooks");
    let has_mailbox = known(has_mailbox, "mailboxes");
    let days = by_day.map(|stats| Days::new(&stats, later, common.app().unwrap_or_default()));
    let steps = match (&days, has_endpoint, has_mailbox, &frame.inside) {
        (Some(days), Some(has_endpoint), Some(has_mailbox), Some(inside)) => {
            steps(inside, has_mailbox, !days.is_empty, has_endpoint)
        }
        _ => Vec::new(),
    };
    let body = OverviewPage {
        steps,
        attention,
        days,
        mailboxes: by_mailbox.map(|counts| mailbox_bars(&counts)),
        newest: number(NEWEST),
        failures: failures.map_or_else(Vec::new, |page| {
            page.logs.into_iter().map(Row::logged).collect()
        }),
        frame,
    };
    Ok(page(StatusCode::OK, &body))
}

/// A part's content; the error of a failed part is logged.
fn known<T>(read: Result<T, sqlx::Error>, part: &'static str) -> Option<T> {
    read.inspect_err(|error| {
        tracing::warn!(%error, part, "a part of the overview can't be shown");
    })
    .ok()
}

impl Days {
    fn new(stats: &EmailStats, scheduled: Option<i64>, app: &str) -> Self {
        let total: i64 = (stats.data.iter())
            .map(|day| day.counts.sum(None, None))
            .sum();
        Self {
            total: number(total),
            is_empty: total == 0,
            tiles: tiles(&stats.data, scheduled, app),
            plot: Plot::new(&stats.data, app),
            table: stats.data.iter().map(Day::new).collect(),
        }
    }
}

fn steps(inside: &Inside, has_mailbox: bool, has_sent: bool, has_endpoint: bool) -> Vec<Step> {
    let first = inside.apps.first();
    // Without an app, creating one is the first step.
    let at_app = |part: &str| {
        first.map_or_else(
            || Section::Apps.path().to_owned(),
            |app| format!("/portal/apps/{}#{part}", app.slug),
        )
    };
    let step = |done, words, path| Step { done, words, path };
    let steps = vec![
        step(
            first.is_some(),
            "Create an app",
            Section::Apps.path().to_owned(),
        ),
        step(has_mailbox, "Connect a mailbox", at_app("connect")),
        step(has_sent, "Send a message", at_app("code")),
        step(
            has_endpoint,
            "Add a webhook",
            Section::Webhooks.path().to_owned(),
        ),
    ];
    if steps.iter().all(|step| step.done) {
        Vec::new()
    } else {
        steps
    }
}
