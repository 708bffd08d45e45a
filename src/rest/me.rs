//! The subscriber itself.

use axum::Json;
use axum::extract::State;
use secrecy::ExposeSecret;
use serde::Serialize;
use utoipa::ToSchema;

use super::Doors;
use super::authority::{AuthenticatedSubscriber, ClientAddress};
use super::problem::Problem;
use crate::accounts::RenewError;
use crate::types::audit::Author;
use crate::types::moment::iso8601;
use crate::types::subscription::SubscriptionStatus;

/// A subscriber: the tenant account.
#[derive(Serialize, ToSchema)]
pub(super) struct Me {
    /// `sub_…`
    #[schema(example = "sub_01h2xcejqtf2nbrexx3vqjhp41")]
    subscriber_id: String,
    /// Display name.
    label: String,
    /// Contact address.
    email: String,
    /// `sk_…`: the credential of all operations but `POST /send`.
    api_secret: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// The payment provider's customer; null where there is none.
    #[schema(required)]
    payprov_customer_id: Option<String>,
    /// `trialing`, `active`, `past_due`, `unpaid`, `canceled`, or null without a subscription.
    #[schema(required)]
    subscription_status: Option<&'static str>,
}

/// A renewed API secret.
#[derive(Serialize, ToSchema)]
pub(super) struct RenewedApiSecret {
    /// `sk_…`: the new one. The old one is worthless from now on.
    api_secret: String,
}

/// The subscriber that is calling.
#[utoipa::path(
    get,
    path = "/me",
    tag = "Subscriber",
    security(("api_secret" = [])),
    responses(
        (status = 200, body = Me),
    )
)]
pub(super) async fn me(
    State(doors): State<Doors>,
    caller: AuthenticatedSubscriber,
) -> Result<Json<Me>, Problem> {
    let subscriber = caller.subscriber;
    let api_secret = doors
        .accounts
        .api_secret(&subscriber)
        .map_err(|error| Problem::internal(&error))?;
    Ok(Json(Me {
        subscriber_id: subscriber.id.to_string(),
        label: subscriber.label,
        email: subscriber.email,
        api_secret: api_secret.expose_secret().to_owned(),
        created_at: iso8601(subscriber.created_at),
        payprov_customer_id: subscriber.payprov_customer_id,
        subscription_status: subscriber
            .subscription_status
            .map(SubscriptionStatus::as_str),
    }))
}

/// Renews the API secret. Of two callers who renew the same one at once, one succeeds.
#[utoipa::path(
    post,
    path = "/me/reset-api-secret",
    tag = "Subscriber",
    security(("api_secret" = [])),
    responses(
        (status = 200, body = RenewedApiSecret),
    )
)]
pub(super) async fn reset_api_secret(
    State(doors): State<Doors>,
    caller: AuthenticatedSubscriber,
    ClientAddress(address): ClientAddress,
) -> Result<Json<RenewedApiSecret>, Problem> {
    let renewed = doors
        .accounts
        .renew_api_secret(
            caller.subscriber.id,
            Some(&caller.presented),
            Author::subscriber(address),
        )
        .await;
    match renewed {
        Ok(secret) => Ok(Json(RenewedApiSecret {
            api_secret: secret.expose().to_owned(),
        })),
        Err(RenewError::Gone) => Err(Problem::new(
            axum::http::StatusCode::UNAUTHORIZED,
            "invalid_api_secret",
            "The API secret was renewed in the meantime.",
        )),
        Err(RenewError::Database(error)) => Err(Problem::database(&error)),
        Err(error) => Err(Problem::internal(&error)),
    }
}
