//! The messages: a search whose state is in the address, in pages.

pub(super) mod actions;
pub(super) mod csv;
mod find;
pub(super) mod message;
mod query;
mod terms;
mod timeline;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use self::query::{MessagesQuery, STATES, WrongField};
use super::PortalState;
use super::page::{page, see};
use crate::page::fields::Asked;
use crate::page::frame::{Frame, Section, query};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
pub(super) use find::Row;
use find::{Answer, Found, find};
use mailgate_domain::mailboxes::NamedMailbox;
pub(super) use timeline::Happening;

/// Mailboxes in the drop-down; with more, the mailbox is entered by its ID.
const MAILBOXES: usize = 100;

/// The page.
#[derive(Template)]
#[template(path = "messages.html")]
struct MessagesPage {
    frame: Frame,
    asked: MessagesQuery,
    /// The search without guesses, for further pages and the export.
    search: String,
    /// All messages of the chosen app.
    clear: String,
    /// The day in UTC.
    today: String,
    /// Whether all of them are of one app.
    is_of_app: bool,
    /// The options of the status menu, with which one is selected.
    states: [(&'static str, &'static str, bool); STATES.len()],
    /// Whether new messages may show up by themselves.
    is_live: bool,
    wrong: Vec<WrongField>,
    found: Found,
    /// The options; `None`: too many.
    mailboxes: Option<Vec<NamedMailbox>>,
}

impl MessagesPage {
    /// Searches that are often wanted, of the chosen app.
    fn presets(&self) -> [(String, &'static str); 3] {
        let search = |status: &str, from_date: &str| {
            let parameters = [
                ("app", self.asked.app.trim()),
                ("status", status),
                ("from_date", from_date),
            ];
            let set: Vec<_> = parameters
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .collect();
            format!("{}?{}", Section::Messages.path(), query(&set))
        };
        [
            (search("failed_perm", &self.today), "Failed today"),
            (search("failed_temp", ""), "Retrying"),
            (search("bounced", ""), "Bounced"),
        ]
    }
}

/// Shows the search result, or the message whose ID was searched for.
pub(super) async fn list(
    session: Session,
    State(state): State<PortalState>,
    Asked(asked): Asked<MessagesQuery>,
    headers: HeaderMap,
) -> Result<Response, PortalProblem> {
    let (status, query, wrong, found) = match find(&state, &session, &asked).await? {
        Answer::Message(id) => {
            let path = format!("/portal/messages/{id}");
            // htmx would take a part of the page that it is redirected to.
            if headers.contains_key("hx-request") {
                return Ok((StatusCode::NO_CONTENT, [("hx-redirect", path)]).into_response());
            }
            return Ok(see(&path));
        }
        Answer::Page(query, found) => (StatusCode::OK, *query, Vec::new(), found),
        Answer::Wrong(wrong) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            (status, MessagesQuery::default(), wrong, Found::default())
        }
    };
    // A wrong search shows what was asked.
    let shown = if wrong.is_empty() { &query } else { &asked };
    let app = Some(shown.app.trim()).filter(|app| !app.is_empty());
    let frame = Frame::load(
        &state,
        &session.subscriber,
        Section::Messages,
        "Messages",
        app,
    )
    .await;
    let mailboxes = choice(&state, &session, app).await;
    let body = MessagesPage {
        clear: frame.scoped(Section::Messages.path()),
        is_live: wrong.is_empty() && asked.is_cheap(),
        today: state.clock.now().format("%Y-%m-%d").to_string(),
        is_of_app: app.is_some(),
        states: STATES.map(|(value, word)| (value, word, shown.is_in(value))),
        search: query.search(),
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
