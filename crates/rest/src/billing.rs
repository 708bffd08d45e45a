//! The subscription's status.

pub(super) mod actions;
pub(super) mod webhook;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::AppState;
use crate::http::access::BillingRead;
use crate::http::authority::AuthenticatedSubscriber;
use crate::http::problem::Problem;
use mailgate_domain::billing::PayprovError;
use mailgate_domain::billing::{BillingError, LiveSubscription};
use mailgate_types::moment::iso8601;
use mailgate_types::subscription::SubscriptionStatus;

/// The subscription's status as the gateway knows it.
#[derive(Serialize, ToSchema)]
pub(super) struct StatusAnswer {
    /// Whether sending is allowed: the status is `trialing` or `active`.
    allowed: bool,
    /// The subscription's status; null if there is no subscription.
    #[schema(value_type = Option<SubscriptionStatus>, required)]
    status: Option<&'static str>,
    /// Whether something needs attention: sending is blocked, the trial ends within 3 days, or the subscription is
    /// cancelled at period end.
    show_banner: bool,
}

/// The subscription, as the payment provider reports it.
#[derive(Serialize, ToSchema)]
pub(super) struct SubscriptionAnswer {
    /// Whether this gateway bills you.
    has_payprov: bool,
    /// Null if there is no subscription.
    #[schema(required)]
    subscription: Option<SubscriptionView>,
}

/// A subscription.
#[derive(Serialize, ToSchema)]
pub(super) struct SubscriptionView {
    /// Its status; null if the gateway doesn't know the provider's status.
    #[schema(value_type = Option<SubscriptionStatus>, required)]
    status: Option<&'static str>,
    /// Its ID at the payment provider.
    #[schema(example = "sub_1MowQVLkdIwHu7ixeRlqHVzs")]
    payprov_subscription_id: String,
    /// The end of the paid period, ISO 8601, UTC.
    #[schema(required, format = DateTime)]
    current_period_end: Option<String>,
    /// Whether it ends at period end.
    cancel_at_period_end: bool,
    /// When the trial ends or ended, ISO 8601, UTC; null if there is no trial.
    #[schema(required, format = DateTime)]
    trial_end: Option<String>,
}

impl From<LiveSubscription> for SubscriptionView {
    fn from(live: LiveSubscription) -> Self {
        Self {
            status: live.status.map(SubscriptionStatus::as_str),
            payprov_subscription_id: live.id,
            current_period_end: live.current_period_end.map(iso8601),
            cancel_at_period_end: live.cancel_at_period_end,
            trial_end: live.trial_end.map(iso8601),
        }
    }
}

/// Gets the subscription's status as the gateway knows it, without calling the payment provider.
#[utoipa::path(
    get,
    path = "/payprov/status",
    operation_id = "billing_status",
    tag = "Billing",
    security(("api_secret" = ["billing:read"])),
    responses(
        (status = 200, body = StatusAnswer),
    )
)]
pub(super) async fn status(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<BillingRead>,
) -> Result<Json<StatusAnswer>, Problem> {
    let standing = state.billing.standing(caller.subscriber.id).await;
    let standing = standing.map_err(problem)?;
    Ok(Json(StatusAnswer {
        allowed: standing.allowed,
        status: standing.status.map(SubscriptionStatus::as_str),
        show_banner: standing.show_banner,
    }))
}

/// Gets the subscription as the payment provider reports it now.
#[utoipa::path(
    get,
    path = "/payprov/subscription",
    operation_id = "billing_subscription",
    tag = "Billing",
    security(("api_secret" = ["billing:read"])),
    responses(
        (status = 200, body = SubscriptionAnswer),
        (status = 502, description = "`payprov_refused`"),
        (status = 503, description = "`payprov_unavailable` or `unavailable`"),
    )
)]
pub(super) async fn subscription(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<BillingRead>,
) -> Result<Json<SubscriptionAnswer>, Problem> {
    let live = state.billing.live(caller.subscriber.id).await;
    let (has_payprov, subscription) = live.map_err(problem)?;
    Ok(Json(SubscriptionAnswer {
        has_payprov,
        subscription: subscription.map(SubscriptionView::from),
    }))
}

/// The response to a billing failure.
pub(super) fn problem(error: BillingError) -> Problem {
    match error {
        BillingError::NotConfigured => Problem::new(
            StatusCode::CONFLICT,
            "billing_not_configured",
            "Billing is off: this gateway has no payment provider.",
        ),
        BillingError::NoSubscription => Problem::new(
            StatusCode::CONFLICT,
            "no_subscription",
            "There is no subscription yet. Creating one takes a moment; try again shortly.",
        ),
        BillingError::NotAllowed(_) | BillingError::NotInGoodStanding(_) => Problem::new(
            StatusCode::CONFLICT,
            "subscription_not_active",
            "This requires a subscription that is active or trialing.",
        ),
        BillingError::InFlight => Problem::new(
            StatusCode::CONFLICT,
            "reactivation_in_flight",
            "The subscription is being reactivated by another request.",
        ),
        BillingError::NoPaymentMethod => Problem::new(
            StatusCode::CONFLICT,
            "payment_method_missing",
            "There is no payment method: enter one by POST /payprov/checkout-setup first.",
        ),
        BillingError::Declined(code) => {
            // The provider's own decline code, if it gave one.
            let is_word = !code.is_empty()
                && code
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
            let why = if is_word {
                format!(" ({code})")
            } else {
                String::new()
            };
            Problem::new(
                StatusCode::PAYMENT_REQUIRED,
                "payment_declined",
                format!(
                    "The payment was declined{why}. Enter another payment method and try again."
                ),
            )
        }
        BillingError::Gone => Problem::new(
            StatusCode::UNAUTHORIZED,
            "invalid_api_secret",
            "The API secret is not valid.",
        ),
        BillingError::Provider(PayprovError::Refused {
            ref code,
            ref message,
            status,
        }) => Problem::new(
            StatusCode::BAD_GATEWAY,
            "payprov_refused",
            "The payment provider refused the request. The reason is in the gateway's log; ask its operator.",
        )
        .because(format!(
            "the payment provider refuses: {status} {code}: {message}"
        )),
        BillingError::Provider(error) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "payprov_unavailable",
            "The payment provider can't be reached at the moment. Try again shortly.",
        )
        .because(format!("the payment provider can't be reached: {error}")),
        BillingError::Database(error) => Problem::database(&error),
        error @ BillingError::CutOff => Problem::internal(&error),
    }
}
