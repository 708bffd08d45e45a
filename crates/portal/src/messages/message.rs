//! One message: its details and its timeline.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::timeline::{Happening, scheduled, timeline};
use crate::PortalState;
use crate::page::fields::{Asked, Common};
use crate::page::frame::{Frame, Section};
use crate::page::page;
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::words::{self, Status, logged, number};
use mailgate_domain::explanation::Explanation;
use mailgate_domain::reports::{FoundMessage, LogDetail, Scheduled};
use mailgate_domain::sending::queue::QueuedMessage;
use mailgate_types::ids::LogId;

/// The message's details and timeline.
struct Shown {
    id: LogId,
    status: Status,
    /// Why it didn't arrive, and what to do.
    explanation: Option<Explanation>,
    subject: String,
    from: String,
    to: String,
    /// Labels and values: Cc, metadata and the like.
    facts: Vec<(String, String)>,
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
    said: &'static str,
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
    let frame = Frame::load(
        &state,
        &session.subscriber,
        Section::Messages,
        title(&message.subject),
        common.app(),
    )
    .await;
    let body = MessagePage {
        frame,
        said: common.said(),
        message,
    };
    Ok(page(StatusCode::OK, &body))
}

fn title(subject: &str) -> String {
    let title = if subject.trim().is_empty() {
        "(no subject)"
    } else {
        subject
    };
    title.to_owned()
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
        let mut facts = facts(
            &log.app_name,
            &details.cc_addresses,
            &details.bcc_addresses,
            log.message_id.as_deref(),
            log.size_bytes,
        );
        if details.has_attachments {
            facts.push(("Attachments".to_owned(), "Yes".to_owned()));
        }
        if let Some(why) = &log.error_message
            && !log.is_cancelled()
        {
            facts.push(("Last error".to_owned(), why.clone()));
        }
        let metadata = details.metadata.iter();
        facts.extend(metadata.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self {
            id: log.id,
            status: logged(log),
            explanation: detail.explanation(),
            subject: log.subject.clone(),
            from: log.from_address.clone(),
            to: log.to_address.clone(),
            facts,
            timeline: timeline(detail, waiting),
            can_retry: is_idle,
            can_cancel: is_idle && !is_unknown,
            is_unknown,
        }
    }

    fn scheduled(message: Scheduled) -> Self {
        let mut facts = facts(
            &message.app_name,
            &message.cc_addresses,
            &message.bcc_addresses,
            message.message_id.as_deref(),
            message.size_bytes,
        );
        let metadata = message.metadata.iter();
        facts.extend(metadata.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self {
            id: message.id,
            status: words::scheduled(),
            explanation: None,
            timeline: scheduled(message.send_at, message.door),
            subject: message.subject,
            from: message.from_address,
            to: message.to_address,
            facts,
            can_retry: false,
            can_cancel: true,
            is_unknown: false,
        }
    }
}

fn facts(
    app: &str,
    cc: &[String],
    bcc: &[String],
    message_id: Option<&str>,
    bytes: i64,
) -> Vec<(String, String)> {
    let size = format!("{} bytes", number(bytes));
    let (cc, bcc) = (cc.join(", "), bcc.join(", "));
    let all = [
        ("App", app),
        ("Cc", &cc),
        ("Bcc", &bcc),
        ("Message-ID", message_id.unwrap_or_default()),
        ("Size", &size),
    ];
    let given = all.into_iter().filter(|(_, value)| !value.is_empty());
    given
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
