//! The provider's OAuth endpoints: any code and any refresh token is good. And what it has counted.

use std::sync::Arc;

use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;

use super::Counters;

/// Where the counts are.
pub const COUNTS: &str = "/counts";

pub(super) fn router(mailbox: &str, counters: Arc<Counters>) -> Router {
    let account = json!({ "email": mailbox });
    let token = json!({
        "access_token": "access-token-of-the-bench",
        "refresh_token": "refresh-token-of-the-bench",
        "token_type": "Bearer",
        "expires_in": 36_000,
    });
    Router::new()
        .route("/token", post(async move || Json(token)))
        .route("/userinfo", get(async move || Json(account)))
        .route(COUNTS, get(async move || Json(counters.now())))
}
