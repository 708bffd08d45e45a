//! The webhook endpoints of all apps, and their deliveries of the last seven days.

pub(super) mod actions;
mod curl;
pub(super) mod delivery;
pub(super) mod form;
mod indented;
pub(super) mod replay;
pub(super) mod replay_progress;
pub(super) mod secret;
pub(super) mod webhook;
pub(super) mod week;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::PortalState;
use super::page::page;
use crate::page::fields::{Asked, Common};
use crate::page::frame::{Frame, Section, query};
use crate::page::problem::PortalProblem;
use crate::page::said::Said;
use crate::page::session::Session;
use crate::page::words::{Moment, Status};
use mailgate_domain::webhooks::{EndpointReport, Health, OwnedEndpoint};
use mailgate_types::ids::{AppId, EndpointId, SubscriberId, WebhookConfigId};
use week::Week;

/// Endpoints per page.
const ROWS: u16 = 50;

/// The page's query.
#[derive(Default, Deserialize)]
pub(super) struct InList {
    #[serde(default)]
    page: String,
}

/// An endpoint in the table.
struct Row {
    path: String,
    url: String,
    app: String,
    events: String,
    /// `7 events`
    count: String,
    status: Status,
    week: Week,
    last: Option<Moment>,
}

impl Row {
    fn new(report: EndpointReport) -> Self {
        Self {
            week: Week::new(&report),
            path: path(&report.endpoint),
            status: status(&report),
            events: events(&report.endpoint),
            count: count(&report.endpoint),
            last: report.endpoint.last_triggered_at.map(Moment::new),
            app: report.endpoint.app_name,
            url: report.endpoint.url,
        }
    }
}

/// The page.
#[derive(Template)]
#[template(path = "webhooks.html")]
struct WebhooksPage {
    frame: Frame,
    said: Said,
    rows: Vec<Row>,
    /// The query of the previous page.
    previous: Option<String>,
    next: Option<String>,
}

/// Shows the list.
pub(super) async fn list(
    session: Session,
    State(state): State<PortalState>,
    Asked(common): Asked<Common>,
    Asked(at): Asked<InList>,
) -> Result<Response, PortalProblem> {
    let number: u32 = at.page.parse().unwrap_or(1).clamp(1, 1_000_000);
    let (limit, offset) = (i64::from(ROWS) + 1, i64::from(number - 1) * i64::from(ROWS));
    let listed = state
        .webhooks
        .endpoints(session.id(), common.app(), limit, offset);
    let mut listed = listed.await?;
    let has_more = listed.len() > usize::from(ROWS);
    listed.truncate(usize::from(ROWS));
    let at = |page: u32| {
        let page = page.to_string();
        query(&[("app", common.app().unwrap_or_default()), ("page", &page)])
    };
    let section = Section::Webhooks;
    let body = WebhooksPage {
        frame: Frame::load(
            &state,
            &session.subscriber,
            section,
            "Webhooks",
            common.app(),
        )
        .await,
        said: common.said(),
        rows: listed.into_iter().map(Row::new).collect(),
        previous: (number > 1).then(|| at(number - 1)),
        next: has_more.then(|| at(number + 1)),
    };
    Ok(page(StatusCode::OK, &body))
}

/// The endpoint in a path: `wconf_…`, or the app's UUID for its own `webhook_url`.
pub(super) fn read_id(text: &str) -> Result<EndpointId, PortalProblem> {
    if let Ok(config) = text.parse::<WebhookConfigId>() {
        return Ok(config.into());
    }
    let app = text.parse().map_err(|_| PortalProblem::not_found())?;
    Ok(AppId(app).into())
}

/// The subscriber's endpoint in a path; another subscriber's is not found.
pub(super) async fn find(
    state: &PortalState,
    subscriber: SubscriberId,
    id: &str,
) -> Result<EndpointReport, PortalProblem> {
    let found = state.webhooks.endpoint(subscriber, read_id(id)?).await?;
    found.ok_or_else(PortalProblem::not_found)
}

/// The path of an endpoint's page.
pub(super) fn path(endpoint: &OwnedEndpoint) -> String {
    path_of(endpoint.id, endpoint.app)
}

/// The path of the page of an app's endpoint.
pub(super) fn path_of(id: EndpointId, app: AppId) -> String {
    match id.config(app) {
        Some(config) => format!("/portal/webhooks/{config}"),
        None => format!("/portal/webhooks/{app}"),
    }
}

/// How it does, in a word.
pub(super) fn status(report: &EndpointReport) -> Status {
    let (word, class) = match report.health {
        Health::Active => ("Active", "good"),
        Health::Degraded => ("Degraded", "busy"),
        Health::Failing => ("Failing", "bad"),
        Health::Paused => ("Paused", "plain"),
        Health::Removed => ("No URL", "plain"),
    };
    Status { word, class }
}

/// How many events it receives.
fn count(endpoint: &OwnedEndpoint) -> String {
    match endpoint.events.len() {
        _ if endpoint.id.config(endpoint.app).is_none() => "All events".to_owned(),
        1 => "1 event".to_owned(),
        number => format!("{number} events"),
    }
}

/// The events that it receives.
pub(super) fn events(endpoint: &OwnedEndpoint) -> String {
    if endpoint.id.config(endpoint.app).is_none() {
        return "All events".to_owned();
    }
    let names: Vec<_> = endpoint.events.iter().map(|event| event.as_str()).collect();
    names.join(", ")
}
