//! The app in a path: an extractor that is the permission check.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::problem::PortalProblem;
use super::session::Session;
use crate::PortalState;
use mailgate_domain::accounts::App;

/// An app of the signed-in subscriber. Its pages are at its slug, which never changes; its UUID and its pushable key
/// work too.
pub(crate) struct OwnedApp {
    pub(crate) session: Session,
    pub(crate) app: App,
}

/// The first path parameter of every page of an app.
#[derive(Deserialize)]
struct OfApp {
    pk: String,
}

impl OwnedApp {
    /// The path of its page.
    pub(crate) fn path(&self) -> String {
        path(&self.app)
    }
}

/// The path of an app's page.
pub(crate) fn path(app: &App) -> String {
    format!("/portal/apps/{}", app.slug)
}

impl FromRequestParts<PortalState> for OwnedApp {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &PortalState) -> Result<Self, Response> {
        let session = Session::from_request_parts(parts, state).await?;
        let none = || PortalProblem::not_found().into_response();
        let Path(OfApp { pk }) = Path::from_request_parts(parts, state)
            .await
            .map_err(|_| none())?;
        let found = state.accounts.own_app_by_name(session.id(), &pk).await;
        let found = found.map_err(|error| PortalProblem::database(&error).into_response())?;
        let app = found.ok_or_else(none)?;
        Ok(Self { session, app })
    }
}
