//! Sign-up, for the operator's own sign-up page.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use utoipa::ToSchema;

use crate::AppState;
use crate::http::authority::{ClientAddress, header, peer};
use crate::http::field::Field;
use crate::http::json_body::JsonBody;
use crate::http::problem::Problem;
use crate::http::values::{checked_email, checked_name};
use mailgate_domain::accounts::CreateError;
use mailgate_server::stranger;
use mailgate_types::audit::Author;

/// A caller with the operator token.
pub(crate) struct Operator;

impl FromRequestParts<AppState> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let Some(token) = &state.operator_token else {
            return Err(Problem::new(
                StatusCode::NOT_FOUND,
                "not_found",
                "Sign-up by REST is off: http.operator_token is not set.",
            ));
        };
        let presented = header(&parts.headers, &["x-operator-token"])?;
        let presented = presented.map(HeaderValue::as_bytes).unwrap_or_default();
        if bool::from(presented.ct_eq(token.expose_secret().as_bytes())) {
            stranger::authenticated(parts);
            return Ok(Self);
        }
        state.accounts.slow_down(peer(parts), "rest").await;
        Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "invalid_operator_token",
            "Put the operator token into the header X-Operator-Token.",
        ))
    }
}

/// A new subscriber.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct CreateSubscriberRequest {
    /// Display name.
    #[schema(value_type = String, required, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    label: Field<String>,
    /// Contact address.
    #[schema(value_type = String, required, max_length = 254, format = "idn-email", example = "owner@example.com")]
    email: Field<String>,
}

/// A new subscriber, with its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct CreatedSubscriber {
    /// `sub_…`
    subscriber_id: String,
    /// Display name.
    label: String,
    /// Contact address.
    email: String,
    /// `sk_…`: the credential of all operations except `POST /send`.
    api_secret: String,
}

/// Creates a subscriber. Needs the operator token.
#[utoipa::path(
    post,
    path = "/subscribers",
    operation_id = "create_subscriber",
    tag = "Operator",
    security(("operator_token" = [])),
    request_body = CreateSubscriberRequest,
    responses(
        (status = 201, body = CreatedSubscriber),
        (status = 401, description = "`invalid_operator_token`"),
        (status = 404, description = "`not_found`: sign-up by REST is off"),
        (status = 503, description = "`unavailable`"),
    )
)]
pub(crate) async fn create(
    State(state): State<AppState>,
    _: Operator,
    ClientAddress(address): ClientAddress,
    JsonBody(request): JsonBody<CreateSubscriberRequest>,
) -> Result<(StatusCode, Json<CreatedSubscriber>), Problem> {
    let mut errors = Vec::new();
    let label = request.label.required("label", &mut errors);
    let label = checked_name("label", label, &mut errors);
    let email = request.email.required("email", &mut errors);
    let email = checked_email("email", email, &mut errors);
    let (Some(label), Some(email)) = (label, email) else {
        return Err(Problem::fields(errors));
    };
    let created = state
        .accounts
        .sign_up(&label, &email, Author::operator(Some(address)))
        .await
        .map_err(|error| match error {
            CreateError::Database(error) => Problem::database(&error),
            error => Problem::internal(&error),
        })?;
    state.billing.provision_now(created.id).await;
    let answer = CreatedSubscriber {
        subscriber_id: created.id.to_string(),
        label,
        email: email.to_string(),
        api_secret: created.api_secret.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}
