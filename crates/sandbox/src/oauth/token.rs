//! The endpoints that the client calls: token (RFC 6749 §3.2), revocation (RFC 7009), userinfo.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{
    AUTHORIZATION, AsHeaderName, CACHE_CONTROL, CONTENT_TYPE, PRAGMA, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::grants::{Refused, Tokens};
use super::parameters::{Parameters, Repeated, is_pkce, is_scope};
use super::{Authorization, AuthorizationError, Settings};

/// An error of RFC 6749 §5.2.
#[derive(Debug)]
struct TokenError {
    status: StatusCode,
    error: &'static str,
    description: String,
}

impl TokenError {
    fn new(error: &'static str, description: impl Into<String>) -> Self {
        let status = match error {
            "invalid_client" => StatusCode::UNAUTHORIZED,
            "server_error" => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        Self {
            status,
            error,
            description: description.into(),
        }
    }
}

impl From<Repeated> for TokenError {
    fn from(_: Repeated) -> Self {
        Self::new("invalid_request", "a parameter is repeated")
    }
}

impl From<AuthorizationError> for TokenError {
    fn from(error: AuthorizationError) -> Self {
        tracing::error!(%error, "the sandbox's authorization server failed");
        Self::new("server_error", "see mailgate's log for the reason")
    }
}

impl From<Refused> for TokenError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Grant(reason) => Self::new("invalid_grant", reason),
            Refused::Scope => Self::new("invalid_scope", refused.to_string()),
            Refused::Failed(error) => error.into(),
        }
    }
}

impl IntoResponse for TokenError {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.error, "error_description": self.description });
        let mut response = uncached(self.status, &body);
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(
                WWW_AUTHENTICATE,
                HeaderValue::from_static("Basic realm=\"sandbox\""),
            );
        }
        response
    }
}

/// RFC 6749 §5.1: the response must not be cached.
fn uncached(status: StatusCode, body: &impl Serialize) -> Response {
    let headers = [(CACHE_CONTROL, "no-store"), (PRAGMA, "no-cache")];
    (status, headers, Json(body)).into_response()
}

/// `POST /oauth/token`.
pub(super) async fn token(
    State(authorization): State<Authorization>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match give(&authorization, &headers, &body).await {
        Ok(tokens) => uncached(
            StatusCode::OK,
            &json!({
                "access_token": tokens.access,
                "token_type": "Bearer",
                "expires_in": authorization.shared.settings.access_token_seconds,
                "refresh_token": tokens.refresh,
                "scope": tokens.scope,
            }),
        ),
        Err(error) => error.into_response(),
    }
}

async fn give(
    authorization: &Authorization,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Tokens, TokenError> {
    let settings = &authorization.shared.settings;
    let parameters = authenticated(settings, headers, body)?;
    let lifetime = TimeDelta::seconds(settings.access_token_seconds.into());
    let now = settings.clock.now();
    let given = match parameters.get("grant_type")? {
        Some("authorization_code") => {
            let code = required(&parameters, "code")?;
            let redirect_uri = required(&parameters, "redirect_uri")?;
            let verifier = required(&parameters, "code_verifier")?;
            if !is_pkce(&verifier, 128) {
                return Err(TokenError::new(
                    "invalid_request",
                    "code_verifier is malformed",
                ));
            }
            authorization
                .off_thread(move |shared| {
                    Ok(shared
                        .grants
                        .exchange(&code, &redirect_uri, &verifier, lifetime, now))
                })
                .await?
        }
        Some("refresh_token") => {
            let refresh_token = required(&parameters, "refresh_token")?;
            let scope = parameters.get("scope")?.map(str::to_owned);
            if scope.as_deref().is_some_and(|scope| !is_scope(scope)) {
                return Err(TokenError::new("invalid_scope", "the scope is malformed"));
            }
            authorization
                .off_thread(move |shared| {
                    Ok(shared
                        .grants
                        .refresh(&refresh_token, scope.as_deref(), lifetime, now))
                })
                .await?
        }
        Some(_) => {
            return Err(TokenError::new(
                "unsupported_grant_type",
                "only authorization_code and refresh_token are supported",
            ));
        }
        None => {
            return Err(TokenError::new("invalid_request", "grant_type is missing"));
        }
    };
    Ok(given?)
}

/// `POST /oauth/revoke`.
pub(super) async fn revoke(
    State(authorization): State<Authorization>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let settings = &authorization.shared.settings;
    let token = authenticated(settings, &headers, &body)
        .and_then(|parameters| required(&parameters, "token"));
    let token = match token {
        Ok(token) => token,
        Err(error) => return error.into_response(),
    };
    match authorization
        .off_thread(move |shared| Ok(shared.grants.revoke(&token)?))
        .await
    {
        Ok(()) => (StatusCode::OK, [(CACHE_CONTROL, "no-store")]).into_response(),
        Err(error) => TokenError::from(error).into_response(),
    }
}

/// `GET /oauth/userinfo`: the address that an access token belongs to (RFC 6750 for the errors).
pub(super) async fn userinfo(
    State(authorization): State<Authorization>,
    headers: HeaderMap,
) -> Response {
    let Some(token) = credentials(&headers, "Bearer") else {
        return unauthorized("Bearer realm=\"sandbox\"");
    };
    let shared = &authorization.shared;
    let Some(mailbox) = shared.grants.mailbox_of(token, shared.settings.clock.now()) else {
        return unauthorized(
            "Bearer realm=\"sandbox\", error=\"invalid_token\", error_description=\"the access token is unknown, expired or revoked\"",
        );
    };
    let subject = Sha256::digest(mailbox.to_ascii_lowercase());
    let body = json!({
        "sub": URL_SAFE_NO_PAD.encode(subject),
        "email": mailbox,
        "email_verified": true,
    });
    uncached(StatusCode::OK, &body)
}

fn unauthorized(challenge: &'static str) -> Response {
    let body = json!({ "error": "invalid_token" });
    let mut response = uncached(StatusCode::UNAUTHORIZED, &body);
    response
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

/// The form of a request whose client has authenticated, by header or form (RFC 6749 §2.3.1).
fn authenticated(
    settings: &Settings,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Parameters, TokenError> {
    let form = header(headers, CONTENT_TYPE)
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| {
            kind.trim()
                .eq_ignore_ascii_case("application/x-www-form-urlencoded")
        });
    if !form {
        return Err(TokenError::new(
            "invalid_request",
            "the body must be application/x-www-form-urlencoded",
        ));
    }
    let parameters = Parameters::parse(body);
    let in_form = (
        parameters.get("client_id")?,
        parameters.get("client_secret")?,
    );
    let known = if headers.contains_key(AUTHORIZATION) {
        let (id, secret) = credentials(headers, "Basic")
            .and_then(basic)
            .ok_or_else(|| TokenError::new("invalid_client", "the Basic header is malformed"))?;
        if in_form.1.is_some() || in_form.0.is_some_and(|form_id| form_id != id) {
            return Err(TokenError::new(
                "invalid_request",
                "the client authenticates in two ways at once",
            ));
        }
        settings.is_client(&id, &secret)
    } else {
        matches!(in_form, (Some(id), Some(secret)) if settings.is_client(id, secret))
    };
    if known {
        Ok(parameters)
    } else {
        Err(TokenError::new(
            "invalid_client",
            "the client id or secret is missing or wrong",
        ))
    }
}

fn required(parameters: &Parameters, name: &str) -> Result<String, TokenError> {
    parameters
        .get(name)?
        .map(str::to_owned)
        .ok_or_else(|| TokenError::new("invalid_request", format!("{name} is missing")))
}

/// Id and secret are form-encoded before they are joined and base64-encoded.
fn basic(encoded: &str) -> Option<(String, String)> {
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (id, secret) = decoded.split_once(':')?;
    Some((form_decoded(id), form_decoded(secret)))
}

fn form_decoded(text: &str) -> String {
    // A form-encoded value never contains a bare `&`; take it literally if it does.
    let encoded = format!("v={}", text.replace('&', "%26"));
    url::form_urlencoded::parse(encoded.as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

/// The credentials after the scheme name in the Authorization header (RFC 9110 §11.4).
fn credentials<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    let (found, credentials) = header(headers, AUTHORIZATION)?.split_once(' ')?;
    found
        .eq_ignore_ascii_case(scheme)
        .then(|| credentials.trim())
}

fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
