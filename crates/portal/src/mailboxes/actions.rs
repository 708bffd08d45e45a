//! Actions on a mailbox: get a reconnect link, and disconnect it.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::mailbox::find;
use crate::PortalState;
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::words::Moment;
use crate::page::{page, see};
use mailgate_types::ids::CredentialId;

/// The reconnect link, for its user.
#[derive(Template)]
#[template(path = "reconnect_link.html")]
struct LinkPage {
    frame: Frame,
    id: CredentialId,
    email: String,
    url: String,
    expires_at: Moment,
}

/// The confirmation page for disconnecting it.
#[derive(Template)]
#[template(path = "disconnect_mailbox.html")]
struct DisconnectPage {
    frame: Frame,
    id: CredentialId,
    email: String,
}

/// Creates a link with which the mailbox's user reconnects this address.
pub(crate) async fn reconnect(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    let mailbox = find(&state, session.id(), &id).await?;
    let minted = state
        .mailboxes
        .reconnect_session(&mailbox, session.author());
    let minted = minted.await?;
    let (section, title) = (Section::Mailboxes, "Reconnect link");
    let slug = Some(mailbox.slug.as_str());
    let body = LinkPage {
        frame: Frame::load(&state, &session.subscriber, section, title, slug).await,
        id: mailbox.id,
        url: format!("{}{}", state.base_url, minted.link),
        expires_at: Moment::new(minted.expires_at),
        email: mailbox.email,
    };
    Ok(page(StatusCode::OK, &body))
}

/// Shows the confirmation page for disconnecting.
pub(crate) async fn confirm_disconnect(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    let mailbox = find(&state, session.id(), &id).await?;
    let (section, title) = (Section::Mailboxes, "Disconnect this mailbox?");
    let slug = Some(mailbox.slug.as_str());
    let body = DisconnectPage {
        frame: Frame::load(&state, &session.subscriber, section, title, slug).await,
        id: mailbox.id,
        email: mailbox.email,
    };
    Ok(page(StatusCode::OK, &body))
}

/// Disconnects it.
pub(crate) async fn disconnect(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    let mailbox = find(&state, session.id(), &id).await?;
    let ended = state
        .mailboxes
        .disconnect(mailbox.app, mailbox.id, session.author());
    if !ended.await? {
        return Err(PortalProblem::new(
            StatusCode::CONFLICT,
            "mailbox_disconnected",
            "The mailbox is unchanged",
            "This mailbox was already disconnected.",
        )
        .leading(
            "Back to the mailbox",
            format!("/portal/mailboxes/{}", mailbox.id),
        ));
    }
    let path = format!("/portal/mailboxes/{}?done=disconnected", mailbox.id);
    Ok(see(&path))
}
