//! The mailboxes of all apps and their status, in pages.

pub(super) mod actions;
pub(super) mod mailbox;
mod words;

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
use crate::page::words::{Moment, number};
use mailgate_domain::mailboxes::{OwnedFilter, OwnedMailbox, own_failure};
use words::State as Standing;

/// Mailboxes per page.
const ROWS: usize = 25;

/// The status filter: the values, and their words.
const STATES: [(&str, &str); 3] = [
    ("", "All"),
    ("connected", "Connected"),
    ("disconnected", "Disconnected"),
];

/// Mailboxes are counted up to this number.
const COUNTED: i64 = 10_000;

/// The filters.
#[derive(Default, Deserialize)]
pub(super) struct MailboxesQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    after: String,
}

impl MailboxesQuery {
    fn is_in(&self, status: &str) -> bool {
        self.status == status
    }
}

/// A mailbox in the table.
struct Row {
    id: String,
    email: String,
    app: String,
    user: String,
    state: Standing,
    last_sent: Option<Moment>,
    /// What the last failure that concerns the mailbox itself means; empty: none.
    last_error: String,
    /// Whether the provider refuses to let it be read.
    is_unread: bool,
}

impl Row {
    fn new(state: &PortalState, mailbox: OwnedMailbox) -> Self {
        Self {
            is_unread: Replies::of(state, &mailbox) == Replies::Refused,
            id: mailbox.id.to_string(),
            state: Standing::new(&mailbox),
            last_sent: mailbox.last_sent_at.map(Moment::new),
            last_error: own_failure(&mailbox)
                .map(|failure| failure.explanation.meaning)
                .unwrap_or_default(),
            email: mailbox.email,
            app: mailbox.app_name,
            user: mailbox.user_id.unwrap_or_default(),
        }
    }

    fn path(&self) -> String {
        format!("/portal/mailboxes/{}", self.id)
    }

    /// The reason of its status, or what else is wrong with it.
    fn problem(&self) -> &str {
        if !self.state.why.is_empty() {
            self.state.why
        } else if self.is_unread {
            "Refused: the provider doesn't let the gateway read it, so replies and bounces aren't detected."
        } else {
            &self.last_error
        }
    }
}

/// A status to choose.
struct Choice {
    path: String,
    word: &'static str,
    count: String,
    is_chosen: bool,
}

impl MailboxesPage {
    fn is_filtered(&self) -> bool {
        !(self.asked.status.is_empty() && self.asked.q.trim().is_empty())
    }
}

/// The page.
#[derive(Template)]
#[template(path = "mailboxes.html")]
struct MailboxesPage {
    frame: Frame,
    said: Said,
    asked: MailboxesQuery,
    app: String,
    choices: Vec<Choice>,
    rows: Vec<Row>,
    /// All mailboxes of the chosen app.
    clear: String,
    /// The query of the first page, with the same filters.
    first: Option<String>,
    next: Option<String>,
}

/// Shows the list.
pub(super) async fn list(
    session: Session,
    State(state): State<PortalState>,
    Asked(common): Asked<Common>,
    Asked(asked): Asked<MailboxesQuery>,
) -> Result<Response, PortalProblem> {
    let app = common.app().unwrap_or_default().to_owned();
    let filter = OwnedFilter {
        slug: common.app().map(ToOwned::to_owned),
        connected: match asked.status.as_str() {
            "connected" => Some(true),
            "disconnected" => Some(false),
            _ => None,
        },
        // Text in Postgres has no NUL.
        words: Some(asked.q.trim().replace('\0', "\u{fffd}")).filter(|words| !words.is_empty()),
        after: asked.after.parse().ok(),
    };
    let limit = i64::try_from(ROWS + 1).unwrap_or(i64::MAX);
    let mut listed = state.mailboxes.owned(session.id(), &filter, limit).await?;
    let has_more = listed.len() > ROWS;
    listed.truncate(ROWS);
    let last = listed.last().filter(|_| has_more);
    let (connected, disconnected) = (state.mailboxes)
        .owned_counts(session.id(), &filter, COUNTED)
        .await?;
    let of_status = |status: &str| query(&[("app", &app), ("q", &asked.q), ("status", status)]);
    let choices = STATES.map(|(value, word)| Choice {
        path: format!("{}?{}", Section::Mailboxes.path(), of_status(value)),
        word,
        count: counted(match value {
            "connected" => connected,
            "disconnected" => disconnected,
            _ => connected + disconnected,
        }),
        is_chosen: asked.is_in(value),
    });
    let at = |after: &str| of_status(&asked.status) + "&" + &query(&[("after", after)]);
    let (section, title) = (Section::Mailboxes, "Mailboxes");
    let frame = Frame::load(&state, &session.subscriber, section, title, common.app()).await;
    let body = MailboxesPage {
        clear: frame.scoped(Section::Mailboxes.path()),
        frame,
        said: common.said(),
        next: last.map(|mailbox| at(&mailbox.id.to_string())),
        first: filter.after.map(|_| of_status(&asked.status)),
        choices: choices.into(),
        rows: (listed.into_iter())
            .map(|mailbox| Row::new(&state, mailbox))
            .collect(),
        app,
        asked,
    };
    Ok(page(StatusCode::OK, &body))
}

fn counted(count: i64) -> String {
    if count < COUNTED {
        number(count)
    } else {
        format!("{}+", number(COUNTED))
    }
}

/// Whether the gateway detects replies to a mailbox's messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Replies {
    On,
    Off,
    /// The provider refuses to let it be read.
    Refused,
}

impl Replies {
    pub(super) fn of(state: &PortalState, mailbox: &OwnedMailbox) -> Self {
        let tracks = state
            .mailboxes
            .tracks_replies(mailbox.plugin, &mailbox.scopes);
        match (&mailbox.disconnected, &mailbox.reading_refused) {
            (None, None) if tracks => Self::On,
            (None, Some(_)) if tracks => Self::Refused,
            _ => Self::Off,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::On => "On",
            Self::Off => "Off",
            Self::Refused => "Refused",
        }
    }
}
