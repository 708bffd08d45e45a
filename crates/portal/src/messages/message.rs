//! One message: its details and its timeline.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::timeline::{Happening, scheduled, timeline};
use crate::PortalState;
use crate::page::fields::{Asked, Common};
use crate::page::frame::{Frame, Section, query};
use crate::page::page;
use crate::page::problem::PortalProblem;
use crate::page::said::Said;
use crate::page::session::Session;
use crate::page::words::{self, Status, logged, size};
use mailgate_domain::explanation::Explanation;
use mailgate_domain::reports::{FoundMessage, LogDetail, Scheduled};
use mailgate_domain::sending::queue::QueuedMessage;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::LogId;

/// A value with its name, which may lead somewhere.
struct Fact {
    name: &'static str,
    value: String,
    /// Empty: nowhere.
    path: String,
}

/// The message's details and timeline.
struct Shown {
    id: LogId,
    status: Status,
    /// Why it didn't arrive, and what to do.
    explanation: Option<Explanation>,
    subject: String,
    to: String,
    /// Cc, the size and the like.
    facts: Vec<Fact>,
    message_id: String,
    /// The app's own, by its names.
    metadata: Vec<(String, String)>,
    timeline: Vec<Happening>,
    can_retry: bool,
    can_cancel: bool,
    /// Whether its delivery is unconfirmed.
    is_unknown: bool,
}

/// The page.
#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage {
    frame: Frame,
    said: Said,
    message: Shown,
}

/// Shows the page.
pub(crate) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Path(log_id): Path<String>,
    Asked(common): Asked<Common>,
) -> Result<Response, PortalProblem> {
    let id = read_id(&log_id)?;
    let found = state.reports.log(session.id(), id).await?;
    let found = found.ok_or_else(PortalProblem::not_found)?;
    // The log row decides ownership; the queue only adds details.
    let waiting = state.queue.show(id).await?.map(|(waiting, _)| waiting);
    let message = match found {
        FoundMessage::Logged(detail) => Shown::logged(&detail, waiting.as_ref()),
        FoundMessage::Scheduled(message) => Shown::scheduled(*message),
    };
    let title = format!("Message to {}", message.to);
    let tab = format!("{}: {}", message.status.word, message.to);
    let section = Section::Messages;
    let frame = Frame::load(&state, &session.subscriber, section, title, common.app()).await;
    let frame = frame.in_tab(tab);
    let body = MessagePage {
        frame,
        said: common.said(),
        message,
    };
    Ok(page(StatusCode::OK, &body))
}

/// The ID in a path; an invalid ID matches no message.
pub(crate) fn read_id(text: &str) -> Result<LogId, PortalProblem> {
    text.parse().map_err(|_| PortalProblem::not_found())
}

impl Shown {
    fn logged(detail: &LogDetail, waiting: Option<&QueuedMessage>) -> Self {
        let (details, log) = (&detail.details, &detail.details.log);
        let is_idle = waiting.is_some_and(|waiting| !waiting.in_progress);
        let is_unknown = waiting.is_some_and(|waiting| waiting.outcome_unknown);
        let mailbox = format!("/portal/mailboxes/{}", log.credential);
        let mut facts = vec![
            Fact::leading("From", &log.from_address, mailbox),
            Fact::leading("To", &log.to_address, recipient(&log.to_address)),
            Fact::new("Cc", details.cc_addresses.join(", ")),
            Fact::new("Bcc", details.bcc_addresses.join(", ")),
            Fact::leading("App", &log.app_name, format!("/portal/apps/{}", log.app)),
            Fact::new("Size", size(log.size_bytes)),
        ];
        if details.has_attachments {
            facts.push(Fact::new("Attachments", "Yes"));
        }
        Self {
            id: log.id,
            status: logged(log),
            explanation: detail.explanation(),
            subject: log.subject.clone(),
            to: log.to_address.clone(),
            facts: given(facts),
            message_id: log.message_id.clone().unwrap_or_default(),
            metadata: owned(details.metadata.iter()),
            timeline: timeline(detail, waiting),
            can_retry: is_idle,
            can_cancel: is_idle && !is_unknown,
            is_unknown,
        }
    }

    fn scheduled(message: Scheduled) -> Self {
        let facts = vec![
            Fact::new("From", message.from_address),
            Fact::leading("To", &message.to_address, recipient(&message.to_address)),
            Fact::new("Cc", message.cc_addresses.join(", ")),
            Fact::new("Bcc", message.bcc_addresses.join(", ")),
            Fact::new("App", message.app_name),
            Fact::new("Size", size(message.size_bytes)),
        ];
        Self {
            id: message.id,
            status: words::scheduled(),
            explanation: None,
            timeline: scheduled(message.send_at, message.door),
            subject: message.subject,
            to: message.to_address,
            facts: given(facts),
            message_id: message.message_id.unwrap_or_default(),
            metadata: owned(message.metadata.iter()),
            can_retry: false,
            can_cancel: true,
            is_unknown: false,
        }
    }
}

impl Fact {
    fn new(name: &'static str, value: impl Into<String>) -> Self {
        Self::leading(name, value, String::new())
    }

    fn leading(name: &'static str, value: impl Into<String>, path: String) -> Self {
        Self {
            name,
            value: value.into(),
            path,
        }
    }
}

/// All messages to this recipient; empty if it is no address that can be searched for.
fn recipient(address: &str) -> String {
    if EmailAddress::parse(address).is_err() {
        return String::new();
    }
    format!("/portal/messages?{}", query(&[("to_address", address)]))
}

fn given(mut facts: Vec<Fact>) -> Vec<Fact> {
    facts.retain(|fact| !fact.value.is_empty());
    facts
}

fn owned<'a>(metadata: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    metadata
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
