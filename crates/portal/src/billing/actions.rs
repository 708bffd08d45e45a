//! Actions on a subscription.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::PortalState;
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::{page, see};
use mailgate_domain::billing::BillingError;
use mailgate_domain::billing::PayprovError;

/// The confirmation page for cancelling the subscription.
#[derive(Template)]
#[template(path = "cancel_subscription.html")]
struct CancelPage {
    frame: Frame,
}

/// Where the payment provider's pages return to.
fn back(state: &PortalState) -> String {
    format!("{}/billing", state.address)
}

/// Redirects to the payment provider's page for adding a card.
pub(crate) async fn add_card(
    session: Session,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    let (back, author) = (back(&state), session.author());
    let url = state.billing.checkout_setup(session.id(), &back, author);
    Ok(see(&url.await.map_err(unchanged)?))
}

/// Redirects to the payment provider's customer portal.
pub(crate) async fn visit(
    session: Session,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    let (back, author) = (back(&state), session.author());
    let url = state.billing.portal(session.id(), &back, author);
    Ok(see(&url.await.map_err(unchanged)?))
}

/// Pays open invoices, or restarts the subscription.
pub(crate) async fn pay(
    session: Session,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    let paid = state.billing.reactivate(session.id(), session.author());
    let done = if paid.await.map_err(unchanged)?.reactivated {
        "paid"
    } else {
        "reactivated"
    };
    Ok(see(&format!("/portal/billing?done={done}")))
}

/// Shows the confirmation page for cancelling.
pub(crate) async fn confirm_cancel(session: Session, State(state): State<PortalState>) -> Response {
    let title = "Cancel the subscription?";
    let frame = Frame::load(&state, &session.subscriber, Section::Billing, title, None).await;
    page(StatusCode::OK, &CancelPage { frame })
}

/// Cancels it at period end.
pub(crate) async fn cancel(
    session: Session,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    let cancelled = state.billing.cancel(session.id(), session.author()).await;
    cancelled.map_err(unchanged)?;
    Ok(see("/portal/billing?done=subscription-cancelled"))
}

fn unchanged(error: BillingError) -> PortalProblem {
    let (status, code, title, text) = match error {
        BillingError::Database(error) => return PortalProblem::database(&error),
        BillingError::Gone => return PortalProblem::signed_out(),
        error @ (BillingError::CutOff | BillingError::Provider(PayprovError::Refused { .. })) => {
            return PortalProblem::internal(&error).leading(BACK.0, BACK.1);
        }
        BillingError::NotConfigured => (
            StatusCode::CONFLICT,
            "billing_not_configured",
            "Nothing is billed here",
            "This gateway has no payment provider.",
        ),
        BillingError::NoSubscription => (
            StatusCode::CONFLICT,
            "no_subscription",
            "There is no subscription yet",
            "Creating one takes a moment. Try again shortly.",
        ),
        BillingError::NotAllowed(_) | BillingError::NotInGoodStanding(_) => (
            StatusCode::CONFLICT,
            "subscription_not_active",
            "This needs an active subscription",
            "Add a card and pay the open invoices first.",
        ),
        BillingError::InFlight => (
            StatusCode::CONFLICT,
            "reactivation_in_flight",
            "A payment is in progress",
            "Another request is making the payment. Reload the billing page in a minute.",
        ),
        BillingError::NoPaymentMethod => (
            StatusCode::CONFLICT,
            "payment_method_missing",
            "Add a card first",
            "There is no card to pay with. Add one, then pay.",
        ),
        BillingError::Declined(_) => (
            StatusCode::PAYMENT_REQUIRED,
            "payment_declined",
            "The payment was declined",
            "Nothing was paid. Add another card and try again, or ask your bank.",
        ),
        BillingError::Provider(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "payprov_unavailable",
            "The payment provider can't be reached",
            "Nothing was changed. Try again in a few minutes.",
        ),
    };
    PortalProblem::new(status, code, title, text).leading(BACK.0, BACK.1)
}

/// The way on from a failure.
const BACK: (&str, &str) = ("Back to billing", "/portal/billing");
