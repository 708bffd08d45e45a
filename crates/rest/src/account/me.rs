//! The subscriber.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::TimeDelta;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::minted_since::{MintedSince, RenewalQuery};
use crate::AppState;
use crate::http::access::{MainSecret, MeRead};
use crate::http::authority::AuthenticatedSubscriber;
use crate::http::field::Field;
use crate::http::json_body::JsonBody;
use crate::http::problem::Problem;
use crate::http::query::Described;
use crate::http::values::{checked_email, checked_name};
use crate::openapi::enums::{AccountStatus, inlined};
use mailgate_domain::accounts::{EmailChangeError, RenewError, Subscriber, SubscriberChange};
use mailgate_types::moment::iso8601;
use mailgate_types::subscription::SubscriptionStatus;

/// A subscriber: the tenant account.
#[derive(Serialize, ToSchema)]
pub(crate) struct Me {
    /// `sub_…`
    #[schema(example = "sub_01h2xcejqtf2nbrexx3vqjhp41")]
    subscriber_id: String,
    /// Display name.
    label: String,
    /// Contact address.
    #[schema(example = "owner@example.com")]
    email: String,
    /// The new contact address that waits for confirmation by a mailed link; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "owner@example.com")]
    pending_email: Option<String>,
    /// `sk_…`: the credential of all operations except `POST /send`. Empty for a caller with an additional API secret.
    api_secret: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// The payment provider's customer; null if there is none.
    #[schema(required)]
    payprov_customer_id: Option<String>,
    /// The subscription's status; null if there is no subscription.
    #[schema(value_type = Option<SubscriptionStatus>, required)]
    subscription_status: Option<&'static str>,
    /// Whether the operator has suspended the account.
    #[schema(schema_with = inlined::<AccountStatus>)]
    status: &'static str,
    /// Why the operator has suspended the account; null if it isn't suspended.
    #[schema(required)]
    suspension_reason: Option<String>,
    /// When the account was suspended, ISO 8601, UTC; null if it isn't.
    #[schema(required, format = DateTime)]
    suspended_at: Option<String>,
}

/// Changes to a subscriber; a field that is missing or null stays as it is.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct ChangeMeRequest {
    /// Display name.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    label: Field<String>,
    /// Contact address: where notices and sign-in links go. The current address cancels a change that waits for
    /// confirmation.
    #[schema(value_type = Option<String>, max_length = 254, format = "idn-email", example = "owner@example.com")]
    email: Field<String>,
}

impl ChangeMeRequest {
    fn validate(self) -> Result<SubscriberChange, Problem> {
        let mut errors = Vec::new();
        let label = self.label.optional("label", &mut errors);
        let label = checked_name("label", label, &mut errors);
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
pub(crate) struct RenewedApiSecret {
    /// `sk_…`: the new secret. The old one no longer works.
    api_secret: String,
    /// Everything that was created with the old secret and earlier ones. If one was stolen, the thief may have created
    /// these.
    minted_since: MintedSince,
}

/// Gets the calling subscriber.
#[utoipa::path(
    get,
    path = "/me",
    tag = "Subscriber",
    security(("api_secret" = ["me:read"])),
    responses(
        (status = 200, body = Me),
    )
)]
pub(crate) async fn me(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<MeRead>,
) -> Result<Json<Me>, Problem> {
    let is_main = caller.is_main();
    let mut me = view(&state, caller.subscriber).await?;
    if !is_main {
        me.api_secret.clear();
    }
    Ok(Json(me))
}

/// Changes the label or the contact address; the payment provider's customer gets them too.
///
/// A new address must be confirmed within 24 hours through a link that is mailed to it. Until then the response has it
/// as `pending_email`, and all mail goes to the current address, which is notified and can stop the change, or undo it
/// within 72 hours of the confirmation. During this time the former address can be restored without confirmation. If
/// the gateway sends no mail of its own, or has no portal, a new address takes effect immediately. Renewing the API
/// secret stops an unconfirmed change.
#[utoipa::path(
    patch,
    path = "/me",
    operation_id = "change_me",
    tag = "Subscriber",
    security(("api_secret" = ["main"])),
    request_body = ChangeMeRequest,
    responses(
        (status = 200, body = Me),
        (status = 429, description = "`too_many_email_changes`: within 24 hours, five changes since the API secret was last renewed, or 50 in all"),
    )
)]
pub(crate) async fn change(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<MainSecret>,
    JsonBody(request): JsonBody<ChangeMeRequest>,
) -> Result<Json<Me>, Problem> {
    let change = request.validate()?;
    let mut subscriber = caller.subscriber;
    let author = caller.author;
    let changed = state
        .accounts
        .change_subscriber(subscriber.id, &change, author)
        .await
        .map_err(|error| match error {
            EmailChangeError::Database(error) => Problem::database(&error),
            EmailChangeError::TooMany { wait } => too_many_email_changes(wait),
        })?;
    let changed = changed.ok_or_else(secret_renewed)?;
    state.billing.wake();
    subscriber.label = changed.label.unwrap_or(subscriber.label);
    subscriber.email = changed.email.unwrap_or(subscriber.email);
    view(&state, subscriber).await.map(Json)
}

fn too_many_email_changes(wait: TimeDelta) -> Problem {
    let hours = wait.num_hours() + 1;
    Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_email_changes",
        format!(
            "Too many changes of the address were requested within 24 hours. Try again in {hours} hours."
        ),
    )
}

async fn view(state: &AppState, subscriber: Subscriber) -> Result<Me, Problem> {
    let api_secret = state
        .accounts
        .api_secret(&subscriber)
        .map_err(|error| Problem::internal(&error))?;
    let pending_email = (state.accounts).pending_email(subscriber.id).await;
    Ok(Me {
        subscriber_id: subscriber.id.to_string(),
        label: subscriber.label,
        email: subscriber.email,
        pending_email: pending_email?,
        api_secret: api_secret.expose_secret().to_owned(),
        created_at: iso8601(subscriber.created_at),
        payprov_customer_id: subscriber.payprov_customer_id,
        subscription_status: subscriber
            .subscription_status
            .map(SubscriptionStatus::as_str),
        status: match subscriber.suspension {
            Some(_) => "suspended",
            None => "active",
        },
        suspended_at: (subscriber.suspension.as_ref()).map(|suspension| iso8601(suspension.since)),
        suspension_reason: subscriber.suspension.map(|suspension| suspension.reason),
    })
}

pub(crate) fn secret_renewed() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "invalid_api_secret",
        "The API secret was renewed in the meantime.",
    )
}

/// Renews the API secret. The old secret, every portal session and every sign-in link stop working immediately. If two
/// callers renew it at the same time, only one succeeds.
///
/// Additional API secrets, additional send keys and connect sessions keep working, unless `revoke=all` ends them all,
/// whenever they were created. `revoke=all` also restores an address that was changed within 72 hours, unless
/// `keep_email=true`. Apps and webhooks stay; those created or changed since the last renewal are listed. Renew main
/// send keys that may have been read with `reset-send-key`. If the gateway sends mail of its own, the account's address
/// is notified, and so is an address that was replaced within 72 hours.
#[utoipa::path(
    post,
    path = "/me/reset-api-secret",
    tag = "Subscriber",
    security(("api_secret" = ["main"])),
    params(RenewalQuery),
    responses(
        (status = 200, body = RenewedApiSecret),
        (status = 422, description = "`invalid_request`"),
        (status = 429, description = "`too_many_renewals`: 60 within 24 hours; `too_many_requests`: another renewal with `revoke=all` is in progress"),
    )
)]
pub(crate) async fn reset_api_secret(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<MainSecret>,
    Described(query): Described<RenewalQuery>,
) -> Result<Json<RenewedApiSecret>, Problem> {
    let renewal = query.validate()?;
    let renewed = state
        .accounts
        .renew_api_secret(caller.subscriber.id, renewal.clone(), caller.author)
        .await;
    match renewed {
        Ok((secret, minted)) => Ok(Json(RenewedApiSecret {
            api_secret: secret.expose().to_owned(),
            minted_since: MintedSince::new(minted, &renewal),
        })),
        Err(RenewError::Gone) => Err(secret_renewed()),
        Err(RenewError::UnderWay) => Err(Problem::too_many_requests(
            "Another renewal with revoke=all is in progress. Wait for its response.",
        )),
        Err(RenewError::TooOften) => Err(Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_renewals",
            "The API secret was renewed 60 times within 24 hours. Wait, or renew it in the portal, after signing in with a mailed link.",
        )),
        Err(RenewError::Database(error)) => Err(Problem::database(&error)),
        Err(error) => Err(Problem::internal(&error)),
    }
}
