//! Requesting a sign-in link. The response is the same whether or not the address has an account.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use crate::PortalState;
use crate::page::fields::Sent;
use crate::page::problem::PortalProblem;
use crate::page::see;
use crate::page::session::Guest;
use crate::sign_in::{Said, form};
use mailgate_types::email_address::EmailAddress;

/// The form.
#[derive(Deserialize)]
pub(crate) struct LinkForm {
    #[serde(default)]
    email: String,
}

/// Mails a link. Frequent requests from one address are delayed, like invalid secrets.
pub(crate) async fn request_link(
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Sent(sent): Sent<LinkForm>,
) -> Result<Response, PortalProblem> {
    let mail = state.sign_in_mail.as_ref();
    let mail = mail.ok_or_else(PortalProblem::not_found)?;
    let Ok(address) = EmailAddress::parse(sent.email.trim()) else {
        return Ok(form(&state, "", Said::WrongEmail(&sent.email)));
    };
    state.accounts.pace(visitor.address).await;
    mail.ask(address).map_err(|_| {
        PortalProblem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "overloaded",
            "Please try again shortly",
            "Too many people are requesting a link at the moment. Wait a minute and try again.",
        )
        .leading("Back to sign-in", "/portal/sign-in")
    })?;
    Ok(see("/portal/sign-in?mailed=1"))
}
