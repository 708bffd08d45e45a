//! One webhook endpoint, and its deliveries.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::week::Week;
use crate::PortalState;
use crate::page::fields::{Asked, Common};
use crate::page::frame::{Frame, Section, query};
use crate::page::page;
use crate::page::problem::PortalProblem;
use crate::page::said::Said;
use crate::page::session::Session;
use crate::page::words::{Moment, Status, number};
use crate::webhooks::{events, find, path, status};
use mailgate_domain::webhooks::{Delivery, DeliveryFilter, EndpointReport};
use mailgate_types::event::TestEvent;
use mailgate_types::event_name::EventName;

/// Deliveries per page.
const ROWS: u16 = 25;

/// The filters.
#[derive(Default, Deserialize)]
pub(crate) struct DeliveriesQuery {
    #[serde(default)]
    event: String,
    #[serde(default)]
    success: String,
    #[serde(default)]
    page: String,
}

impl DeliveriesQuery {
    fn at(&self, page: u32) -> String {
        let page = page.to_string();
        query(&[
            ("event", &self.event),
            ("success", &self.success),
            ("page", &page),
        ])
    }
}

/// An attempt in a table.
pub(crate) struct Attempt {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) number: i32,
    pub(crate) status: Status,
    pub(crate) answer: String,
    pub(crate) duration: String,
    pub(crate) at: Moment,
}

impl Attempt {
    pub(crate) fn new(delivery: &Delivery) -> Self {
        Self {
            id: delivery.id.to_string(),
            event: delivery.event.clone(),
            number: delivery.attempt_number,
            status: outcome(delivery.success),
            answer: (delivery.http_status)
                .map_or_else(|| "No response".to_owned(), |status| status.to_string()),
            duration: format!("{} ms", number(delivery.duration_ms)),
            at: Moment::new(delivery.delivered_at),
        }
    }
}

/// Whether the receiver accepted it.
pub(crate) fn outcome(success: bool) -> Status {
    if success {
        Status {
            word: "Delivered",
            class: "good",
        }
    } else {
        Status {
            word: "Failed",
            class: "bad",
        }
    }
}

/// What failed in the last day; empty for an endpoint that works, or gets nothing.
fn trouble(report: &EndpointReport) -> String {
    if !report.health.is_trouble() {
        return String::new();
    }
    format!(
        "{} of {} deliveries failed in 24 h.",
        number(report.recent_failures),
        number(report.recent)
    )
}

/// What an endpoint that doesn't work has missed.
pub(super) struct MissedEvents {
    pub(super) last_accepted: Option<Moment>,
    /// `9 events wait for their next attempt,`; empty: none.
    pub(super) waiting: String,
    pub(super) next: Option<Moment>,
}

impl MissedEvents {
    /// `None` if it works. Without them the page stays usable.
    pub(super) async fn load(state: &PortalState, report: &EndpointReport) -> Option<Self> {
        if !report.health.is_trouble() {
            return None;
        }
        let missed = state.webhooks.missed(report.endpoint.id).await.ok()?;
        let next = (missed.waiting.next).filter(|next| *next > state.clock.now());
        let when = if next.is_some() {
            "for their next attempt, the first at"
        } else {
            "and are attempted now"
        };
        Some(Self {
            last_accepted: missed.last_accepted.map(Moment::new),
            waiting: match missed.waiting.count {
                0 => String::new(),
                1 if next.is_some() => "1 event waits for its next attempt, at".to_owned(),
                1 => "1 event waits and is attempted now".to_owned(),
                count => format!("{} events wait {when}", number(count)),
            },
            next: next.map(Moment::new),
        })
    }
}

/// What a test that has just failed got: "your endpoint answered 500", and the id of its delivery.
fn failed_test(common: &Common, newest: Option<&Delivery>) -> Option<(String, String)> {
    let newest = newest.filter(|newest| common.has_done("test-failed") && is_failed_test(newest));
    newest.map(|newest| {
        let words = match newest.http_status {
            Some(status) => format!("your endpoint answered {status}"),
            None => "your endpoint didn't respond".to_owned(),
        };
        (words, newest.id.to_string())
    })
}

fn is_failed_test(delivery: &Delivery) -> bool {
    !delivery.success && delivery.event == TestEvent::NAME
}

/// The page.
#[derive(Template)]
#[template(path = "webhook.html")]
struct WebhookPage {
    frame: Frame,
    said: Said,
    failed_test: Option<(String, String)>,
    path: String,
    url: String,
    app: String,
    events: String,
    status: Status,
    /// What failed in the last day, if it doesn't work.
    trouble: String,
    /// What it has missed, if that is known.
    missed: Option<MissedEvents>,
    is_active: bool,
    /// A configuration; the app's own `webhook_url` is changed with the app.
    is_config: bool,
    app_path: String,
    /// Until when the previous secret also signs.
    overlap: Option<Moment>,
    week: Week,
    names: [EventName; EventName::ALL.len()],
    asked: DeliveriesQuery,
    attempts: Vec<Attempt>,
    total: String,
    previous: Option<String>,
    next: Option<String>,
}

/// Shows the page.
pub(crate) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
    Asked(common): Asked<Common>,
    Asked(asked): Asked<DeliveriesQuery>,
) -> Result<Response, PortalProblem> {
    let report = find(&state, session.id(), &id).await?;
    let endpoint = &report.endpoint;
    let config = endpoint.id.config(endpoint.app);
    let filter = DeliveryFilter {
        // An unknown event name filters nothing.
        event: asked.event.parse().ok(),
        success: asked.success.parse().ok(),
    };
    let number_of_page: u32 = asked.page.parse().unwrap_or(1).clamp(1, 10_000_000);
    let rows = i64::from(ROWS);
    let offset = i64::from(number_of_page - 1) * rows;
    let deliveries = state
        .webhooks
        .deliveries(endpoint.app, config, filter, rows, offset);
    let deliveries = deliveries.await?.ok_or_else(PortalProblem::not_found)?;
    let total = deliveries.totals.successes + deliveries.totals.failures;
    let frame = Frame::load(
        &state,
        &session.subscriber,
        Section::Webhooks,
        if endpoint.url.is_empty() {
            "Webhook"
        } else {
            &endpoint.url
        },
        common.app(),
    )
    .await;
    let now = state.clock.now();
    let overlap = endpoint.previous_secret_expires_at;
    let body = WebhookPage {
        frame,
        said: common.said(),
        failed_test: failed_test(
            &common,
            deliveries.deliveries.first().map(|shown| &shown.delivery),
        ),
        path: path(endpoint),
        status: status(&report),
        missed: MissedEvents::load(&state, &report).await,
        trouble: trouble(&report),
        events: events(endpoint),
        is_active: endpoint.is_active,
        is_config: config.is_some(),
        app_path: format!("/portal/apps/{}", endpoint.slug),
        overlap: overlap.filter(|until| *until > now).map(Moment::new),
        week: Week::new(&report),
        names: EventName::ALL,
        attempts: (deliveries.deliveries.iter())
            .map(|shown| Attempt::new(&shown.delivery))
            .collect(),
        total: number(total),
        previous: (number_of_page > 1).then(|| asked.at(number_of_page - 1)),
        next: (total > offset + rows).then(|| asked.at(number_of_page + 1)),
        url: report.endpoint.url,
        app: report.endpoint.app_name,
        asked,
    };
    Ok(page(StatusCode::OK, &body))
}
