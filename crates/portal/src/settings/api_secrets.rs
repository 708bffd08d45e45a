//! Additional API secrets: listed in the settings, created with their value shown once, deleted.

use std::borrow::Cow;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::secret::{Proof, check};
use crate::PortalState;
use crate::page::fields::{Fields, Sent, value, values};
use crate::page::frame::{Frame, Section};
use crate::page::key_form::{DeleteKeyPage, NewKeyPage, checked_end, checked_name, status};
use crate::page::problem::PortalProblem;
use crate::page::session::{Guest, Session};
use crate::page::words::Moment;
use crate::page::wrong::Wrong;
use crate::page::{page, see};
use mailgate_domain::accounts::{ApiSecretError, ApiSecretRow, MOST_API_SECRETS, NewApiSecret};
use mailgate_types::ids::ApiSecretId;
use mailgate_types::scope::Scope;

/// The path of the settings.
const SETTINGS: &str = "/portal/settings";

/// A secret in the table.
pub(crate) struct SecretRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) scopes: String,
    pub(crate) created_at: Moment,
    pub(crate) last_used_at: Option<Moment>,
    pub(crate) expires_at: Option<Moment>,
}

impl SecretRow {
    fn new(secret: ApiSecretRow) -> Self {
        let scopes: Vec<&str> = secret.scopes.iter().map(|scope| scope.as_str()).collect();
        Self {
            id: secret.id.to_string(),
            name: secret.name,
            scopes: scopes.join(", "),
            created_at: Moment::new(secret.created_at),
            last_used_at: secret.last_used_at.map(Moment::new),
            expires_at: secret.expires_at.map(Moment::new),
        }
    }
}

/// The subscriber's additional secrets.
pub(crate) async fn rows(
    state: &PortalState,
    session: &Session,
) -> Result<Vec<SecretRow>, sqlx::Error> {
    let secrets = state.accounts.api_secrets(session.id()).await?;
    Ok(secrets.into_iter().map(SecretRow::new).collect())
}

/// A scope in the form.
struct Choice {
    name: &'static str,
    checked: bool,
}

/// The form of a new secret.
#[derive(Template)]
#[template(path = "api_secret_form.html")]
struct FormPage {
    frame: Frame,
    name: String,
    last_day: String,
    choices: Vec<Choice>,
    is_fresh: bool,
    wrong: Wrong,
}

async fn form(state: &PortalState, session: &Session, fields: &Fields, wrong: Wrong) -> Response {
    let chosen: Vec<&str> = values(fields, "scopes").collect();
    let choices = Scope::ALL.map(|scope| Choice {
        name: scope.as_str(),
        checked: chosen.contains(&scope.as_str()),
    });
    let (section, title) = (Section::Settings, "Add API secret");
    let body = FormPage {
        frame: Frame::load(state, &session.subscriber, section, title, None).await,
        name: value(fields, "name").to_owned(),
        last_day: value(fields, "last_day").to_owned(),
        choices: choices.into(),
        is_fresh: session.is_fresh(state.clock.now()),
        wrong,
    };
    page(status(&body.wrong), &body)
}

/// Shows the form.
pub(crate) async fn show_new(session: Session, State(state): State<PortalState>) -> Response {
    form(&state, &session, &Vec::new(), Wrong::default()).await
}

fn read(state: &PortalState, fields: &Fields) -> Result<NewApiSecret, Wrong> {
    let mut wrong = Wrong::default();
    let name = checked_name(fields, &mut wrong);
    let expires_at = checked_end(fields, state.clock.now(), &mut wrong);
    let is_chosen = |scope: &Scope| values(fields, "scopes").any(|it| it == scope.as_str());
    let scopes: Vec<Scope> = Scope::ALL.into_iter().filter(is_chosen).collect();
    if scopes.is_empty() {
        wrong.add("scopes", "Choose at least one scope.");
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(NewApiSecret {
        name,
        scopes,
        expires_at,
    })
}

/// Creates a secret, and shows its value once.
pub(crate) async fn create(
    session: Session,
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Sent(fields): Sent<Fields>,
) -> Result<Response, PortalProblem> {
    let new = match read(&state, &fields) {
        Ok(new) => new,
        Err(wrong) => return Ok(form(&state, &session, &fields, wrong).await),
    };
    let proof = Proof::of(value(&fields, "api_secret"));
    check(&state, &session, &visitor, &proof).await?;
    let accounts = &state.accounts;
    let created = accounts.create_api_secret(session.id(), new, session.author());
    let value = match created.await {
        Ok((_, value)) => value,
        Err(ApiSecretError::TooMany) => {
            let text = format!(
                "You already have {MOST_API_SECRETS} additional API secrets. Delete one first."
            );
            let wrong = Wrong::one("name", text);
            return Ok(form(&state, &session, &fields, wrong).await);
        }
        Err(ApiSecretError::Gone) => return Err(PortalProblem::signed_out()),
        Err(ApiSecretError::Database(error)) => return Err(error.into()),
        Err(error) => return Err(PortalProblem::internal(&error)),
    };
    let (section, title) = (Section::Settings, "New API secret");
    let body = NewKeyPage {
        frame: Frame::load(&state, &session.subscriber, section, title, None).await,
        noun: "secret",
        hint: "Programs send it as X-Api-Secret, and can do what its scopes allow.",
        value: value.expose(),
        former: None,
        back: Cow::Borrowed(SETTINGS),
    };
    Ok(page(StatusCode::CREATED, &body))
}

fn id_of(text: &str) -> Result<ApiSecretId, PortalProblem> {
    text.parse().map_err(|_| PortalProblem::not_found())
}

/// Shows the confirmation page for deleting a secret.
pub(crate) async fn confirm_delete(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    let id = id_of(&id)?;
    let secrets = state.accounts.api_secrets(session.id()).await?;
    let secret = secrets.into_iter().find(|secret| secret.id == id);
    let secret = secret.ok_or_else(PortalProblem::not_found)?;
    let (section, title) = (Section::Settings, "Delete this API secret?");
    let body = DeleteKeyPage {
        frame: Frame::load(&state, &session.subscriber, section, title, None).await,
        name: secret.name,
        action: format!("{SETTINGS}/api-secrets/{id}/delete"),
        back: Cow::Borrowed(SETTINGS),
    };
    Ok(page(StatusCode::OK, &body))
}

/// Deletes a secret.
pub(crate) async fn delete(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    let (id, author) = (id_of(&id)?, session.author());
    let deleted = state.accounts.delete_api_secret(session.id(), id, author);
    if !deleted.await? {
        return Err(PortalProblem::not_found());
    }
    Ok(see(&format!("{SETTINGS}?done=secret-deleted")))
}
