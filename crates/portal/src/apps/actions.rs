//! Actions on an app: create a connect link, change options, delete a suppression, delete the app.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::app::AppPage;
use super::connect::LinkForm;
use super::deletion;
use super::form::AppForm;
use crate::PortalState;
use crate::page::fields::Sent;
use crate::page::frame::{Frame, Section};
use crate::page::owned_app::OwnedApp;
use crate::page::problem::PortalProblem;
use crate::page::wrong::Wrong;
use crate::page::{page, see};
use mailgate_domain::accounts::{Change, ChangeError};
use mailgate_types::email_address::EmailAddress;

/// A recipient.
#[derive(Deserialize)]
pub(crate) struct RecipientForm {
    to_address: String,
}

/// The text to type before an app is deleted.
#[derive(Deserialize)]
pub(crate) struct NameForm {
    #[serde(default)]
    name: String,
}

/// The confirmation page for deleting an app.
#[derive(Template)]
#[template(path = "delete_app.html")]
struct DeletePage {
    frame: Frame,
    path: String,
    app: String,
    wrong: Wrong,
}

/// Creates a connect link.
pub(crate) async fn link(
    owned: OwnedApp,
    State(state): State<PortalState>,
    Sent(form): Sent<LinkForm>,
) -> Result<Response, PortalProblem> {
    let mut body = AppPage::load(&state, &owned).await;
    let mut status = StatusCode::OK;
    match form.validate(&owned.app) {
        Ok(wanted) => {
            let (mailboxes, author) = (&state.mailboxes, owned.session.author());
            let link = wanted.link(&owned.app, mailboxes, &state.base_url, author);
            body.link = Some(link.await?);
        }
        Err(wrong) => {
            body.link_wrong = wrong;
            status = StatusCode::UNPROCESSABLE_ENTITY;
        }
    }
    body.tab = "connect";
    body.link_form = form;
    Ok(page(status, &body))
}

/// Changes the options.
pub(crate) async fn change(
    owned: OwnedApp,
    State(state): State<PortalState>,
    Sent(form): Sent<AppForm>,
) -> Result<Response, PortalProblem> {
    let changed = match form.change(&owned.app, state.allow_private) {
        Ok(change) => apply(&state, &owned, &change).await?,
        Err(wrong) => Err(wrong),
    };
    match changed {
        Ok(()) => Ok(see(&format!("{}?done=saved", owned.path()))),
        Err(wrong) => {
            let mut body = AppPage::load(&state, &owned).await;
            body.tab = "options";
            (body.options, body.wrong) = (form, wrong);
            Ok(page(StatusCode::UNPROCESSABLE_ENTITY, &body))
        }
    }
}

async fn apply(
    state: &PortalState,
    owned: &OwnedApp,
    change: &Change,
) -> Result<Result<(), Wrong>, PortalProblem> {
    let (accounts, author) = (&state.accounts, owned.session.author());
    match accounts.change_app(owned.app.id, change, author).await {
        Ok(()) => Ok(Ok(())),
        Err(ChangeError::WouldOrphan(field)) => Ok(Err(Wrong::one(
            field,
            "This can't be turned off while mailboxes need it. Disconnect them first.",
        ))),
        Err(ChangeError::Gone) => Err(PortalProblem::not_found()),
        Err(ChangeError::Database(error)) => Err(PortalProblem::database(&error)),
    }
}

/// Deletes a recipient's suppression.
pub(crate) async fn unsuppress(
    owned: OwnedApp,
    State(state): State<PortalState>,
    Sent(form): Sent<RecipientForm>,
) -> Result<Response, PortalProblem> {
    let address = EmailAddress::parse(&form.to_address).map_err(|_| PortalProblem::unreadable())?;
    let (accounts, author) = (&state.accounts, owned.session.author());
    accounts
        .delete_suppressions(owned.app.id, Some(&address), author)
        .await?;
    Ok(see(&format!("{}?done=unsuppressed", owned.path())))
}

/// Shows the confirmation page for deleting the app.
pub(crate) async fn confirm_delete(owned: OwnedApp, State(state): State<PortalState>) -> Response {
    confirm_deletion(&state, owned, StatusCode::OK, Wrong::default()).await
}

async fn confirm_deletion(
    state: &PortalState,
    owned: OwnedApp,
    status: StatusCode,
    wrong: Wrong,
) -> Response {
    let (subscriber, slug) = (&owned.session.subscriber, &owned.app.slug);
    let title = "Delete this app?";
    let body = DeletePage {
        frame: Frame::load(state, subscriber, Section::Apps, title, Some(slug)).await,
        path: owned.path(),
        app: owned.app.name,
        wrong,
    };
    page(status, &body)
}

/// Deletes it, if its name was typed; browsers collapse white space.
pub(crate) async fn delete(
    owned: OwnedApp,
    State(state): State<PortalState>,
    Sent(form): Sent<NameForm>,
) -> Result<Response, PortalProblem> {
    let (given, name) = (
        form.name.split_whitespace(),
        owned.app.name.split_whitespace(),
    );
    if !given.eq(name) {
        let wrong = Wrong::one("name", "That isn't the app's name. Nothing was deleted.");
        return Ok(confirm_deletion(&state, owned, StatusCode::UNPROCESSABLE_ENTITY, wrong).await);
    }
    let author = owned.session.author();
    if !state.mailboxes.delete_app(owned.app.id, author).await? {
        return Err(PortalProblem::not_found());
    }
    let left = state
        .mailboxes
        .deletion(owned.session.id(), owned.app.id)
        .await;
    // It is deleted, whatever is known of its log.
    let left = left.ok().flatten().map_or(0, |deletion| deletion.left);
    if left > 0 {
        return Ok(see(&deletion::path(owned.app.id, &left.to_string())));
    }
    Ok(see("/portal/apps?done=app-deleted"))
}
