//! The list of apps, and the form to create one.

pub(super) mod actions;
pub(super) mod app;
mod code;
mod connect;
pub(super) mod deletion;
mod form;
pub(super) mod keys;
mod parts;
pub(super) mod send_keys;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::PortalState;
use super::page::{page, see};
use crate::page::fields::{Asked, Common, Sent};
use crate::page::frame::{Frame, Section};
use crate::page::owned_app::path;
use crate::page::problem::PortalProblem;
use crate::page::said::Said;
use crate::page::session::Session;
use crate::page::words::{Moment, number};
use crate::page::wrong::Wrong;
use form::AppForm;
use mailgate_domain::accounts::{App, CreateError};

/// Apps per page.
const ROWS: i64 = 50;

/// The page's query.
#[derive(Default, Deserialize)]
pub(super) struct Part {
    /// Number of apps to skip.
    #[serde(default)]
    skip: u32,
}

/// An app in the table.
struct Row {
    path: String,
    name: String,
    slug: String,
    mailboxes: String,
    created_at: Moment,
}

impl Row {
    fn new(app: App) -> Self {
        Self {
            path: path(&app),
            name: app.name,
            slug: app.slug,
            mailboxes: number(app.users_count),
            created_at: Moment::new(app.created_at),
        }
    }
}

/// The page.
#[derive(Template)]
#[template(path = "apps.html")]
struct AppsPage {
    frame: Frame,
    said: Said,
    rows: Vec<Row>,
    is_first: bool,
    /// Number of apps to skip for the next page.
    next: Option<i64>,
    form: AppForm,
    wrong: Wrong,
}

/// Shows the list.
pub(super) async fn list(
    session: Session,
    State(state): State<PortalState>,
    Asked(common): Asked<Common>,
    Asked(part): Asked<Part>,
) -> Result<Response, PortalProblem> {
    let mut body = read(&state, &session, part.skip.into()).await?;
    body.said = common.said();
    Ok(page(StatusCode::OK, &body))
}

async fn read(
    state: &PortalState,
    session: &Session,
    skip: i64,
) -> Result<AppsPage, PortalProblem> {
    let apps = state.accounts.apps(session.id(), Some(ROWS + 1), skip);
    let mut rows: Vec<Row> = apps.await?.into_iter().map(Row::new).collect();
    let fits = usize::try_from(ROWS).unwrap_or(usize::MAX);
    let has_more = rows.len() > fits;
    rows.truncate(fits);
    let frame = Frame::load(state, &session.subscriber, Section::Apps, "Apps", None);
    Ok(AppsPage {
        frame: frame.await,
        said: Said::default(),
        rows,
        is_first: skip == 0,
        next: has_more.then_some(skip + ROWS),
        form: AppForm::default(),
        wrong: Wrong::default(),
    })
}

/// Creates an app, and redirects to it.
pub(super) async fn create(
    session: Session,
    State(state): State<PortalState>,
    Sent(form): Sent<AppForm>,
) -> Result<Response, PortalProblem> {
    let fields = match form.creation(state.allow_private) {
        Ok(fields) => fields,
        Err(wrong) => {
            let mut body = read(&state, &session, 0).await?;
            (body.form, body.wrong) = (form, wrong);
            return Ok(page(StatusCode::UNPROCESSABLE_ENTITY, &body));
        }
    };
    let accounts = &state.accounts;
    let created = accounts.create_own_app(session.id(), &fields, session.author());
    let created = created.await.map_err(|error| match error {
        CreateError::Database(error) => PortalProblem::database(&error),
        error @ CreateError::Suspended(_) => PortalProblem::suspended(&error)
            .leading("Back to your apps", "/portal/apps"),
        CreateError::TooMany(most) => PortalProblem::new(
            StatusCode::CONFLICT,
            "too_many_apps",
            "App limit reached",
            format!("You can have at most {most} apps. Delete one that you no longer need, and try again."),
        )
        .leading("Back to your apps", "/portal/apps"),
        error => PortalProblem::internal(&error),
    })?;
    Ok(see(&format!("/portal/apps/{}?done=created", created.slug)))
}
