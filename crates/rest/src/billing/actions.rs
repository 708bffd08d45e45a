//! Actions on a subscription.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::AppState;
use crate::billing::problem;
use crate::http::access::BillingWrite;
use crate::http::authority::AuthenticatedSubscriber;
use crate::http::field::Field;
use crate::http::json_body::JsonBody;
use crate::http::problem::{Problem, take};
use mailgate_types::moment::iso8601;
use mailgate_types::subscription::SubscriptionStatus;
use mailgate_types::web_address::check_web_address;

/// The address to return to from the payment method page.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct CheckoutSetupRequest {
    /// An https address. After a payment method was entered, `payment=updated` is added to its query.
    #[schema(value_type = String, required, max_length = 2048, pattern = r"^[Hh][Tt][Tt][Pp][Ss]?://\S+$", example = "https://portal.example/billing")]
    portal_url: Field<String>,
}

/// The address to return to from the customer portal.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct PortalRequest {
    /// An https address.
    #[schema(value_type = String, required, max_length = 2048, pattern = r"^[Hh][Tt][Tt][Pp][Ss]?://\S+$", example = "https://portal.example/billing")]
    return_url: Field<String>,
}

/// A page of the payment provider.
#[derive(Serialize, ToSchema)]
pub(crate) struct HostedPage {
    /// The address to send the user to.
    #[schema(example = "https://checkout.stripe.com/c/pay/cs_test_a1b2c3")]
    url: String,
}

/// The result of a reactivation.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReactivatedAnswer {
    /// Whether this call made the subscription active: it is now, and wasn't before.
    reactivated: bool,
    /// The subscription's current status.
    #[schema(value_type = Option<SubscriptionStatus>, required)]
    status: Option<&'static str>,
}

/// A scheduled cancellation.
#[derive(Serialize, ToSchema)]
pub(crate) struct CancelledAnswer {
    /// Whether the subscription ends at period end.
    cancelled: bool,
    /// The same, under the payment provider's name.
    #[schema(example = true)]
    cancel_at_period_end: bool,
    /// When the subscription ends, ISO 8601, UTC. Nothing changes until then.
    #[schema(required, format = DateTime)]
    current_period_end: Option<String>,
}

/// Creates a page on which the user adds or updates the payment method. Send the user to the returned address.
#[utoipa::path(
    post,
    path = "/payprov/checkout-setup",
    operation_id = "billing_checkout_setup",
    tag = "Billing",
    security(("api_secret" = ["billing:write"])),
    request_body = CheckoutSetupRequest,
    responses(
        (status = 200, body = HostedPage),
        (status = 409, description = "`billing_not_configured`"),
        (status = 502, description = "`payprov_refused`"),
        (status = 503, description = "`payprov_unavailable` or `unavailable`"),
    )
)]
pub(crate) async fn checkout_setup(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<BillingWrite>,
    JsonBody(request): JsonBody<CheckoutSetupRequest>,
) -> Result<Json<HostedPage>, Problem> {
    let address = checked("portal_url", request.portal_url, state.allow_private)?;
    let author = caller.author;
    let page = (state.billing).checkout_setup(caller.subscriber.id, &address, author);
    let url = page.await.map_err(problem)?;
    Ok(Json(HostedPage { url }))
}

/// Reactivates the subscription. `past_due` or `unpaid`: pays all open invoices. `canceled`: creates a new subscription
/// and pays it immediately. The most recent payment method is charged; during a trial it lets the subscription continue
/// after the trial. If there is nothing to reactivate, nothing happens.
#[utoipa::path(
    post,
    path = "/payprov/reactivate",
    operation_id = "billing_reactivate",
    tag = "Billing",
    security(("api_secret" = ["billing:write"])),
    responses(
        (status = 200, body = ReactivatedAnswer),
        (status = 402, description = "`payment_declined`"),
        (status = 409, description = "`payment_method_missing`, `reactivation_in_flight`, `no_subscription` or `billing_not_configured`"),
        (status = 502, description = "`payprov_refused`"),
        (status = 503, description = "`payprov_unavailable` or `unavailable`"),
    )
)]
pub(crate) async fn reactivate(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<BillingWrite>,
) -> Result<Json<ReactivatedAnswer>, Problem> {
    let reactivated = (state.billing)
        .reactivate(caller.subscriber.id, caller.author)
        .await;
    let reactivated = reactivated.map_err(problem)?;
    Ok(Json(ReactivatedAnswer {
        reactivated: reactivated.reactivated,
        status: reactivated.status.map(SubscriptionStatus::as_str),
    }))
}

/// Cancels an active or trialing subscription at period end; sending continues until then.
#[utoipa::path(
    post,
    path = "/payprov/cancel-subscription",
    operation_id = "billing_cancel_subscription",
    tag = "Billing",
    security(("api_secret" = ["billing:write"])),
    responses(
        (status = 200, body = CancelledAnswer),
        (status = 409, description = "`subscription_not_active`, `no_subscription` or `billing_not_configured`"),
        (status = 502, description = "`payprov_refused`"),
        (status = 503, description = "`payprov_unavailable` or `unavailable`"),
    )
)]
pub(crate) async fn cancel_subscription(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<BillingWrite>,
) -> Result<Json<CancelledAnswer>, Problem> {
    let cancelled = (state.billing)
        .cancel(caller.subscriber.id, caller.author)
        .await;
    let cancelled = cancelled.map_err(problem)?;
    Ok(Json(CancelledAnswer {
        cancelled: true,
        cancel_at_period_end: true,
        current_period_end: cancelled.current_period_end.map(iso8601),
    }))
}

/// Creates a session of the payment provider's customer portal. Only for active or trialing subscriptions.
#[utoipa::path(
    post,
    path = "/payprov/portal",
    operation_id = "billing_portal",
    tag = "Billing",
    security(("api_secret" = ["billing:write"])),
    request_body = PortalRequest,
    responses(
        (status = 200, body = HostedPage),
        (status = 409, description = "`subscription_not_active`, `no_subscription` or `billing_not_configured`"),
        (status = 502, description = "`payprov_refused`"),
        (status = 503, description = "`payprov_unavailable` or `unavailable`"),
    )
)]
pub(crate) async fn portal(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<BillingWrite>,
    JsonBody(request): JsonBody<PortalRequest>,
) -> Result<Json<HostedPage>, Problem> {
    let address = checked("return_url", request.return_url, state.allow_private)?;
    let author = caller.author;
    let page = (state.billing).portal(caller.subscriber.id, &address, author);
    let url = page.await.map_err(problem)?;
    Ok(Json(HostedPage { url }))
}

/// An address to return to.
fn checked(
    field: &'static str,
    given: Field<String>,
    allow_loopback: bool,
) -> Result<String, Problem> {
    let mut errors = Vec::new();
    let address = given.required(field, &mut errors);
    let address = take(&mut errors, field, address, |text| {
        check_web_address(text, allow_loopback).map(|()| text.to_owned())
    });
    address.ok_or_else(|| Problem::fields(errors))
}
