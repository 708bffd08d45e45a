//! The subscriber itself.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AppState;
use super::access::{MainSecret, MeRead};
use super::app_fields::{checked_email, checked_text};
use super::authority::AuthenticatedSubscriber;
use super::field::Field;
use super::json_body::JsonBody;
use super::minted_since::{MintedSince, RenewalQuery};
use super::problem::Problem;
use super::query::Described;
use crate::accounts::{RenewError, Subscriber, SubscriberChange};
use mailgate_types::moment::iso8601;
use mailgate_types::subscription::SubscriptionStatus;

/// A subscriber: the tenant account.
#[derive(Serialize, ToSchema)]
pub(super) struct Me {
    /// `sub_…`
    #[schema(example = "sub_01h2xcejqtf2nbrexx3vqjhp41")]
    subscriber_id: String,
    /// Display name.
    label: String,
    /// Contact address.
    #[schema(example = "owner@example.com")]
    email: String,
    /// `sk_…`: the credential of all operations but `POST /send`. Empty for a caller with an additional API secret.
    api_secret: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// The payment provider's customer; null where there is none.
    #[schema(required)]
    payprov_customer_id: Option<String>,
    /// The subscription's status; null without a subscription.
    #[schema(value_type = Option<SubscriptionStatus>, required)]
    subscription_status: Option<&'static str>,
}

/// What changes of a subscriber; a field that is missing or null stays as it is.
#[derive(Deserialize, Default, ToSchema)]
pub(super) struct ChangeMeRequest {
    /// Display name.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    #[serde(default)]
    label: Field<String>,
    /// Contact address: where notices go.
    #[schema(value_type = Option<String>, max_length = 254, format = "idn-email", example = "owner@example.com")]
    #[serde(default)]
    email: Field<String>,
}

impl ChangeMeRequest {
    fn validate(self) -> Result<SubscriberChange, Problem> {
        let mut errors = Vec::new();
        let label = self.label.optional("label", &mut errors);
        let label = checked_text("label", label, &mut errors);
        let email = self.email.optional("email", &mut errors);
        let email = checked_email("email", email, &mut errors);
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        let email = email.map(|email| email.to_string());
        Ok(SubscriberChange { label, email })
    }
}

/// A renewed API secret.
#[derive(Serialize, ToSchema)]
pub(super) struct RenewedApiSecret {
    /// `sk_…`: the new one. The old one no longer works.
    api_secret: String,
    /// What was created with the old one and those before it. If one was stolen, this is what the thief may have left.
    minted_since: MintedSince,
}

/// The subscriber that is calling.
#[utoipa::path(
    get,
    path = "/me",
    tag = "Subscriber",
    security(("api_secret" = ["me:read"])),
    responses(
        (status = 200, body = Me),
    )
)]
pub(super) async fn me(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<MeRead>,
) -> Result<Json<Me>, Problem> {
    let is_main = caller.is_main();
    let mut me = view(&state, caller.subscriber)?;
    if !is_main {
        me.api_secret.clear();
    }
    Ok(Json(me))
}

/// Changes the label or the contact address; the payment provider's customer gets them too. Notices go to the new
/// address from then on.
#[utoipa::path(
    patch,
    path = "/me",
    operation_id = "change_me",
    tag = "Subscriber",
    security(("api_secret" = ["main"])),
    request_body = ChangeMeRequest,
    responses(
        (status = 200, body = Me),
    )
)]
pub(super) async fn change(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<MainSecret>,
    JsonBody(request): JsonBody<ChangeMeRequest>,
) -> Result<Json<Me>, Problem> {
    let change = request.validate()?;
    let mut subscriber = caller.subscriber;
    let author = caller.author;
    let is_there = state
        .accounts
        .change_subscriber(subscriber.id, &change, author)
        .await
        .map_err(|error| Problem::database(&error))?;
    if !is_there {
        return Err(secret_renewed());
    }
    state.billing.wake();
    subscriber.label = change.label.unwrap_or(subscriber.label);
    subscriber.email = change.email.unwrap_or(subscriber.email);
    view(&state, subscriber).map(Json)
}

fn view(state: &AppState, subscriber: Subscriber) -> Result<Me, Problem> {
    let api_secret = state
        .accounts
        .api_secret(&subscriber)
        .map_err(|error| Problem::internal(&error))?;
    Ok(Me {
        subscriber_id: subscriber.id.to_string(),
        label: subscriber.label,
        email: subscriber.email,
        api_secret: api_secret.expose_secret().to_owned(),
        created_at: iso8601(subscriber.created_at),
        payprov_customer_id: subscriber.payprov_customer_id,
        subscription_status: subscriber
            .subscription_status
            .map(SubscriptionStatus::as_str),
    })
}

pub(super) fn secret_renewed() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "invalid_api_secret",
        "The API secret was renewed in the meantime.",
    )
}

/// Renews the API secret. The old one stops working immediately, and so does every portal session and sign-in link. If
/// two callers renew it at the same time, only one succeeds.
///
/// Additional API secrets, additional send keys and connect sessions go on working, unless `revoke=all` ends all of
/// them, whenever they were created. Main send keys that may have been read are renewed by `reset-send-key`. The
/// account's address gets a mail about it, where the gateway sends mail of its own.
#[utoipa::path(
    post,
    path = "/me/reset-api-secret",
    tag = "Subscriber",
    security(("api_secret" = ["main"])),
    params(RenewalQuery),
    responses(
        (status = 200, body = RenewedApiSecret),
        (status = 422, description = "`invalid_request`"),
    )
)]
pub(super) async fn reset_api_secret(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<MainSecret>,
    Described(query): Described<RenewalQuery>,
) -> Result<Json<RenewedApiSecret>, Problem> {
    let renewal = query.validate()?;
    let renewed = state
        .accounts
        .renew_api_secret(caller.subscriber.id, renewal, caller.author)
        .await;
    match renewed {
        Ok((secret, minted)) => Ok(Json(RenewedApiSecret {
            api_secret: secret.expose().to_owned(),
            minted_since: MintedSince::new(minted, renewal.revokes),
        })),
        Err(RenewError::Gone) => Err(secret_renewed()),
        Err(RenewError::Database(error)) => Err(Problem::database(&error)),
        Err(error) => Err(Problem::internal(&error)),
    }
}
