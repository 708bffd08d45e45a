//! The messages: a search whose state is in the address, in pages.

pub(super) mod actions;
pub(super) mod csv;
pub(super) mod message;
mod query;
mod timeline;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::PortalState;
use super::page::page;
use crate::page::fields::Asked;
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::words::{self, Moment, Status, logged, number};
use mailgate_domain::mailboxes::NamedMailbox;
use mailgate_domain::reports::{LogRow, Position, Scheduled};
use query::{MessagesQuery, Wanted, WrongField};

/// Mailboxes in the drop-down; with more, the mailbox is entered by its ID.
const MAILBOXES: usize = 100;

/// Rows per page.
const ROWS: usize = 25;

/// A message in the table.
struct Row {
    id: String,
    status: Status,
    to: String,
    from: String,
    subject: String,
    app: String,
    at: Moment,
}

impl Row {
    fn logged(row: LogRow) -> Self {
        Self {
            id: row.id.to_string(),
            status: logged(&row),
            to: row.to_address,
            from: row.from_address,
            subject: row.subject,
            app: row.app_name,
            at: Moment::new(row.sent_at),
        }
    }

    fn scheduled(message: Scheduled) -> Self {
        Self {
            id: message.id.to_string(),
            status: words::scheduled(),
            to: message.to_address,
            from: message.from_address,
            subject: message.subject,
            app: message.app_name,
            at: Moment::new(message.send_at),
        }
    }
}

/// The search result.
#[derive(Default)]
struct Found {
    rows: Vec<Row>,
    /// `None` for a search.
    total: Option<String>,
    /// The query of the next page.
    next: Option<String>,
    /// How far back the search got before its time ran out.
    searched_until: Option<Moment>,
}

/// The page.
#[derive(Template)]
#[template(path = "messages.html")]
struct MessagesPage {
    frame: Frame,
    asked: MessagesQuery,
    wrong: Vec<WrongField>,
    found: Found,
    /// The options; `None`: too many.
    mailboxes: Option<Vec<NamedMailbox>>,
}

/// Shows the search result.
pub(super) async fn list(
    session: Session,
    State(state): State<PortalState>,
    Asked(asked): Asked<MessagesQuery>,
) -> Result<Response, PortalProblem> {
    let app = Some(asked.app.as_str()).filter(|app| !app.is_empty());
    let frame = Frame::load(
        &state,
        &session.subscriber,
        Section::Messages,
        "Messages",
        app,
    )
    .await;
    let (status, wrong, found) = match asked.validate(session.id(), &state.seal_keys) {
        Ok(wanted) => {
            let found = find(&state, &session, &asked, wanted).await?;
            (StatusCode::OK, Vec::new(), found)
        }
        Err(wrong) => (StatusCode::UNPROCESSABLE_ENTITY, wrong, Found::default()),
    };
    let mailboxes = choice(&state, &session, app).await;
    let body = MessagesPage {
        frame,
        asked,
        wrong,
        found,
        mailboxes,
    };
    Ok(page(status, &body))
}

/// The mailboxes for the drop-down. Without them the page stays usable.
async fn choice(
    state: &PortalState,
    session: &Session,
    app: Option<&str>,
) -> Option<Vec<NamedMailbox>> {
    let limit = i64::try_from(MAILBOXES + 1).unwrap_or(i64::MAX);
    let named = state.mailboxes.named(session.id(), app, limit).await.ok()?;
    (named.len() <= MAILBOXES).then_some(named)
}

async fn find(
    state: &PortalState,
    session: &Session,
    asked: &MessagesQuery,
    wanted: Wanted,
) -> Result<Found, PortalProblem> {
    let (reports, subscriber) = (&state.reports, session.id());
    let next = |next: Option<Position>| {
        let query = next.map(|next| asked.at(subscriber, &state.seal_keys, next));
        query
            .transpose()
            .map_err(|error| PortalProblem::internal(&error))
    };
    if wanted.is_scheduled {
        let page = reports.scheduled(subscriber, &wanted.filter, ROWS, wanted.start);
        let page = page.await?;
        return Ok(Found {
            rows: page.messages.into_iter().map(Row::scheduled).collect(),
            total: page.total.map(number),
            next: next(page.next)?,
            searched_until: None,
        });
    }
    let page = reports
        .logs(subscriber, &wanted.filter, ROWS, wanted.start)
        .await?;
    Ok(Found {
        rows: page.logs.into_iter().map(Row::logged).collect(),
        total: page.total.map(number),
        next: next(page.next)?,
        searched_until: page.searched_until.map(Moment::new),
    })
}
