//! The settings: name and address, the API secret behind its forms, the sessions, and the audit log.

pub(super) mod api_secrets;
pub(super) mod email_change;
pub(super) mod secret;
pub(super) mod sessions;
mod trail;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::PortalState;
use super::page::{page, see};
use crate::page::browser::browser;
use crate::page::fields::{Asked, Common, Sent, label};
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::said::Said;
use crate::page::session::{Guest, Session};
use crate::page::words::Moment;
use api_secrets::SecretRow;
use mailgate_domain::accounts::{EmailChangeError, PortalSession, SubscriberChange};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::sign_in::SignedInBy;
use secret::{Proof, check};
use trail::{Trail, TrailQuery};

/// The form.
#[derive(Deserialize)]
pub(super) struct Change {
    label: String,
    email: String,
    #[serde(flatten)]
    proof: Proof,
}

/// A session in the table.
struct OpenSession {
    id: String,
    is_this: bool,
    browser: String,
    user_agent: String,
    address: String,
    by: &'static str,
    created_at: Moment,
    last_used_at: Moment,
}

impl OpenSession {
    fn new(session: PortalSession, this: &PortalSession) -> Self {
        Self {
            is_this: session.id == this.id,
            id: session.id.to_string(),
            browser: browser(&session.user_agent),
            user_agent: session.user_agent,
            address: session.address,
            by: match session.by {
                SignedInBy::ApiSecret => "API secret",
                SignedInBy::Link => "Emailed link",
                SignedInBy::Minted => "Link",
            },
            created_at: Moment::new(session.created_at),
            last_used_at: Moment::new(session.last_used_at),
        }
    }
}

/// The page.
#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    said: Said,
    /// The tab that is shown.
    tab: &'static str,
    wrong: Vec<&'static str>,
    label: String,
    email: String,
    /// The new address that waits for confirmation.
    pending_email: Option<String>,
    subscriber_id: String,
    /// Whether a new address requires the API secret.
    guards_email: bool,
    /// Whether the API secret is shown without asking for it again.
    is_fresh: bool,
    secrets: Vec<SecretRow>,
    sessions: Vec<OpenSession>,
    trail: Trail,
}

/// Shows the page.
pub(super) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Asked(common): Asked<Common>,
    Asked(trail): Asked<TrailQuery>,
) -> Result<Response, PortalProblem> {
    let mut body = read(&state, &session, &trail).await?;
    body.said = common.said();
    body.tab = common.tab().unwrap_or(body.tab);
    Ok(page(StatusCode::OK, &body))
}

async fn read(
    state: &PortalState,
    session: &Session,
    asked: &TrailQuery,
) -> Result<SettingsPage, PortalProblem> {
    let sessions = state.accounts.portal_sessions(session.id()).await?;
    let secrets = api_secrets::rows(state, session).await?;
    let trail = Trail::load(state, session, asked, &secrets).await?;
    Ok(SettingsPage {
        frame: Frame::load(
            state,
            &session.subscriber,
            Section::Settings,
            "Settings",
            None,
        )
        .await,
        said: Said::default(),
        tab: if asked.is_given() { "audit" } else { "account" },
        wrong: Vec::new(),
        label: session.subscriber.label.clone(),
        email: session.subscriber.email.clone(),
        pending_email: state.accounts.pending_email(session.id()).await?,
        subscriber_id: session.id().to_string(),
        guards_email: state.sign_in_mail.is_some() && !session.is_fresh(state.clock.now()),
        is_fresh: session.is_fresh(state.clock.now()),
        secrets,
        sessions: (sessions.into_iter())
            .map(|open| OpenSession::new(open, &session.open))
            .collect(),
        trail,
    })
}

/// Changes name and address.
pub(super) async fn change(
    session: Session,
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Sent(sent): Sent<Change>,
) -> Result<Response, PortalProblem> {
    let label = label(&sent.label);
    let email = EmailAddress::parse(sent.email.trim()).ok();
    let email = email.filter(EmailAddress::is_plain);
    let email = email.ok_or("Enter one email address.");
    let (label, email) = match (label, email) {
        (Ok(label), Ok(email)) => (label, email),
        (label, email) => {
            let mut body = read(&state, &session, &TrailQuery::default()).await?;
            body.wrong = label.err().into_iter().chain(email.err()).collect();
            (body.label, body.email) = (sent.label, sent.email);
            return Ok(page(StatusCode::UNPROCESSABLE_ENTITY, &body));
        }
    };
    if state.sign_in_mail.is_some() && email.as_str() != session.subscriber.email {
        // Sign-in links are mailed there.
        check(&state, &session, &visitor, &sent.proof).await?;
    }
    // The current address would stop a change that waits for confirmation; the form sends it with every other change.
    let is_moved = email.as_str() != session.subscriber.email;
    let change = SubscriberChange {
        label: Some(label),
        email: is_moved.then(|| email.to_string()),
    };
    let accounts = &state.accounts;
    let changed = accounts.change_subscriber(session.id(), &change, session.author());
    let changed = changed.await.map_err(|error| match error {
        EmailChangeError::Database(error) => PortalProblem::database(&error),
        EmailChangeError::TooMany { .. } => too_many_email_changes(),
    })?;
    let changed = changed.ok_or_else(PortalProblem::signed_out)?;
    state.billing.wake();
    let waits = change.email.is_some() && changed.email != change.email;
    let done = if waits { "email-asked" } else { "saved" };
    Ok(see(&format!("/portal/settings?done={done}")))
}

fn too_many_email_changes() -> PortalProblem {
    PortalProblem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_email_changes",
        "The address was changed too often",
        "Nothing was changed. Too many changes of the address were requested within 24 hours; try again tomorrow.",
    )
    .leading("Back to the settings", "/portal/settings")
}
