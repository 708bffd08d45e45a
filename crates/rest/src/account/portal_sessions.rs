//! Addresses that sign in to the portal, for integrators who link to it from their own pages.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::AppState;
use crate::http::access::MainSecret;
use crate::http::authority::AuthenticatedSubscriber;
use crate::http::problem::Problem;
use mailgate_domain::accounts::{MINTED_LINK, MintError};
use mailgate_types::moment::iso8601;

/// An address that signs in to the portal.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "url": "https://gateway.example/portal/sign-in/mgl_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg",
    "expires_at": "2026-11-02T09:35:00.000Z"
}))]
pub(crate) struct MintedPortalSession {
    /// The address to open in the browser. It signs in once.
    #[schema(format = "uri")]
    url: String,
    /// When the address expires, ISO 8601, UTC: five minutes from now.
    #[schema(format = DateTime)]
    expires_at: String,
}

/// Creates an address that signs in to the portal once, as this subscriber.
///
/// Open it in a browser within five minutes. The page has one button to press, so a program that follows links doesn't
/// use the address up. Up to 20 unused addresses may exist at a time.
#[utoipa::path(
    post,
    path = "/portal/sessions",
    operation_id = "create_portal_session",
    tag = "Subscriber",
    security(("api_secret" = ["main"])),
    responses(
        (status = 201, body = MintedPortalSession),
        (status = 404, description = "`portal_disabled`: this gateway serves no portal"),
        (status = 429, description = "`rate_limited`: too many requests with this key; `too_many_portal_sessions`: 20 addresses are open; use one, or wait five minutes"),
    )
)]
pub(crate) async fn create(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<MainSecret>,
) -> Result<(StatusCode, Json<MintedPortalSession>), Problem> {
    let portal = state
        .portal
        .enabled
        .then(|| state.portal.address(&state.base_url));
    let portal = portal.flatten().ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "portal_disabled",
            "This gateway serves no portal.",
        )
    })?;
    let minted = state
        .accounts
        .mint_portal_link(caller.subscriber.id, MINTED_LINK, caller.author)
        .await;
    let (token, expires_at) = minted.map_err(|error| match error {
        MintError::TooMany => Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_portal_sessions",
            "20 sign-in addresses are open. Use one, or wait until they expire.",
        ),
        MintError::Database(error) => Problem::database(&error),
        error @ (MintError::NoRandomness(_) | MintError::Moved) => Problem::internal(&error),
    })?;
    let answer = MintedPortalSession {
        url: format!("{portal}/sign-in/{}", token.expose()),
        expires_at: iso8601(expires_at),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}
