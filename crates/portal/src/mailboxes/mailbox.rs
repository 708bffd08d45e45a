//! One mailbox: its status, the reason, and the actions.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::words::{State as Standing, parked};
use crate::PortalState;
use crate::mailboxes::Replies;
use crate::messages::Row;
use crate::page::fields::{Asked, Common};
use crate::page::frame::{Frame, Section};
use crate::page::page;
use crate::page::problem::PortalProblem;
use crate::page::said::Said;
use crate::page::session::Session;
use crate::page::words::Moment;
use mailgate_domain::explanation::Explanation;
use mailgate_domain::mailboxes::{OwnedMailbox, own_failure};
use mailgate_domain::reports::{Filter, Search, Start};
use mailgate_types::ids::{CredentialId, LogId, SubscriberId};
use mailgate_types::plugin::Plugin;

/// How many of its messages are shown.
const LATEST: usize = 10;

/// The last failure that concerns the mailbox itself.
struct LastError {
    explanation: Explanation,
    text: String,
    log: LogId,
}

/// The page.
#[derive(Template)]
#[template(path = "mailbox.html")]
struct MailboxPage {
    frame: Frame,
    said: Said,
    id: CredentialId,
    state: Standing,
    is_connected: bool,
    parked: Option<Moment>,
    aliases: Vec<String>,
    app: String,
    slug: String,
    user: String,
    provider: String,
    connected: Moment,
    last_sent: Option<Moment>,
    last_error: Option<LastError>,
    /// How many messages it may still send in these 24 hours, and in all of them; `None`: as many as it likes.
    left: Option<(i64, i64)>,
    replies: &'static str,
    refused: Option<String>,
    /// Its newest messages.
    latest: Vec<Row>,
}

/// Shows the page.
pub(crate) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
    Asked(common): Asked<Common>,
) -> Result<Response, PortalProblem> {
    let mailbox = find(&state, session.id(), &id).await?;
    let (section, title) = (Section::Mailboxes, mailbox.email.clone());
    let frame = Frame::load(&state, &session.subscriber, section, title, common.app()).await;
    let of_mailbox = Filter {
        search: Search {
            credential: Some(mailbox.id),
            ..Search::default()
        },
        ..Filter::default()
    };
    let reports = &state.reports;
    let latest = reports.logs(session.id(), &of_mailbox, LATEST, Start::Offset(0));
    let latest = latest.await?.logs.into_iter().map(Row::logged);
    let body = MailboxPage {
        frame,
        latest: latest.collect(),
        said: common.said(),
        id: mailbox.id,
        state: Standing::new(&mailbox),
        is_connected: mailbox.disconnected.is_none(),
        parked: parked(mailbox.parked_until),
        provider: provider(&state, mailbox.plugin),
        left: state.mailboxes.left_today(&mailbox),
        replies: Replies::of(&state, &mailbox).word(),
        connected: Moment::new(mailbox.connected_at),
        last_sent: mailbox.last_sent_at.map(Moment::new),
        last_error: own_failure(&mailbox).map(|failure| LastError {
            explanation: failure.explanation,
            text: failure.message.text.clone(),
            log: failure.message.log,
        }),
        refused: mailbox
            .reading_refused
            .filter(|_| mailbox.disconnected.is_none()),
        aliases: mailbox.aliases,
        app: mailbox.app_name,
        slug: mailbox.slug,
        user: mailbox.user_id.unwrap_or_default(),
    };
    Ok(page(StatusCode::OK, &body))
}

/// The subscriber's mailbox in a path; another subscriber's is not found.
pub(crate) async fn find(
    state: &PortalState,
    subscriber: SubscriberId,
    id: &str,
) -> Result<OwnedMailbox, PortalProblem> {
    let id = id.parse().map_err(|_| PortalProblem::not_found())?;
    let found = state.mailboxes.owned_mailbox(subscriber, id).await?;
    found.ok_or_else(PortalProblem::not_found)
}

/// A provider's name.
fn provider(state: &PortalState, plugin: Plugin) -> String {
    let settings = state.mailboxes.provider_settings(plugin);
    settings.map_or_else(|| plugin.to_string(), |settings| settings.label.clone())
}
