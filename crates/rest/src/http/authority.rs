//! Extractors that are the permission check: a handler that takes an [`OwnedApp`] can't access
//! another subscriber's app.

use std::marker::PhantomData;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

use axum::extract::{FromRequestParts, Path};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;

use super::access::Access;
use super::problem::Problem;
use crate::AppState;
use mailgate_domain::accounts::{
    App, AuthenticateError, CalledBy, Caller, Limited, Opened, RateDecision, RequestPlace,
    Subscriber,
};
use mailgate_server::client::{client_address, known_address};
use mailgate_server::stranger;
use mailgate_types::audit::{Author, Credential};
use mailgate_types::scope::Scope;

/// Where the middleware finds the rate limiter's verdict on a request.
pub(crate) type RateSlot = Arc<OnceLock<RateDecision>>;

/// The subscriber of the API secret in `X-Api-Secret`: the main one, or an additional one with the scope that `A`
/// requires.
pub(crate) struct AuthenticatedSubscriber<A> {
    pub(crate) subscriber: Subscriber,
    /// The actor for the audit trail.
    pub(crate) author: Author,
    secret: Option<Limited>,
    allowed: PhantomData<A>,
    _place: RequestPlace,
}

/// An app of that subscriber: the one in the path.
pub(crate) struct OwnedApp<A> {
    pub(crate) app: App,
    /// The caller.
    pub(crate) caller: AuthenticatedSubscriber<A>,
}

impl<A> AuthenticatedSubscriber<A> {
    /// Whether the API secret is the main one.
    pub(crate) fn is_main(&self) -> bool {
        self.secret.is_none()
    }

    /// Requires a further scope, for operations where only some requests need it.
    pub(crate) fn require(&self, scope: Scope) -> Result<(), Problem> {
        let has_scope = |secret: &Limited| secret.scopes.contains(&scope);
        if self.secret.as_ref().is_none_or(has_scope) {
            Ok(())
        } else {
            Err(insufficient_scope(Some(scope)))
        }
    }
}

/// The first path parameter of every operation on an app.
#[derive(Deserialize)]
struct OfApp {
    pushable_key: String,
}

/// The app of the send key in `X-Send-Key`, or in `X-Api-Key` for older clients; as last known, still to be
/// proven.
pub(crate) struct KeyedApp {
    pub(crate) caller: Caller,
    pub(crate) peer: IpAddr,
}

impl<A: Access> FromRequestParts<AppState> for AuthenticatedSubscriber<A> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let presented = credential(&parts.headers, &["x-api-secret"])?
            .ok_or_else(|| invalid_api_secret("Send the API secret in the X-Api-Secret header."))?;
        let peer = peer(parts);
        let address = known_address(&parts.extensions);
        let presented = state.accounts.present_api_secret(presented, address);
        let found = match &presented {
            Some(key) => {
                let _place = state.accounts.hold_back(peer, key).await;
                state.accounts.open_by_api_secret(key).await
            }
            None => Err(AuthenticateError::Wrong),
        };
        match (found, presented) {
            (Ok(Opened { subscriber, secret }), Some(presented)) => {
                state.accounts.remember(&presented);
                stranger::authenticated(parts);
                // Each secret has its own limit, so that none can use up the main secret's, which can delete it.
                let by = match &secret {
                    Some(secret) => CalledBy::Key(secret.id.0, subscriber.id),
                    None => CalledBy::Owner(subscriber.id),
                };
                count_call(parts, state, by, subscriber.requests_per_second)?;
                let shown = match &secret {
                    Some(secret) => Credential::AdditionalSecret(secret.id),
                    None => Credential::ApiSecret {
                        since: subscriber.credentials_since,
                    },
                };
                let author = Author::subscriber(peer, subscriber.id, shown);
                let place = state.accounts.request_place(&author).await;
                let caller = Self {
                    author,
                    subscriber,
                    secret,
                    allowed: PhantomData,
                    _place: place.map_err(|_| too_many_requests())?,
                };
                match A::SCOPE {
                    Some(scope) => caller.require(scope)?,
                    None if caller.is_main() => {}
                    None => return Err(insufficient_scope(None)),
                }
                Ok(caller)
            }
            (Err(AuthenticateError::Database(error)), _) => Err(Problem::database(&error)),
            _ => {
                state.accounts.slow_down(peer, "rest").await;
                Err(invalid_api_secret("The API secret is invalid."))
            }
        }
    }
}

impl<A: Access + Send> FromRequestParts<AppState> for OwnedApp<A> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let caller = AuthenticatedSubscriber::from_request_parts(parts, state).await?;
        // By name: a path may hold further parameters.
        let Path(OfApp { pushable_key }) = Path::from_request_parts(parts, state)
            .await
            .map_err(|_| no_such_app())?;
        let app = state
            .accounts
            .own_app(caller.subscriber.id, &pushable_key)
            .await?
            .ok_or_else(no_such_app)?;
        Ok(Self { app, caller })
    }
}

/// The client's address, authenticated or not.
pub(crate) struct ClientAddress(pub(crate) IpAddr);

impl FromRequestParts<AppState> for ClientAddress {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Self::Rejection> {
        Ok(Self(peer(parts)))
    }
}

impl FromRequestParts<AppState> for KeyedApp {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let presented = credential(&parts.headers, &["x-send-key", "x-api-key"])?
            .ok_or_else(|| invalid_send_key("Send the app's send key in the X-Send-Key header."))?;
        let peer = peer(parts);
        let address = known_address(&parts.extensions);
        let Some(key) = state.accounts.present(presented, address) else {
            return Err(unknown_send_key(state, peer).await);
        };
        let caller = if let Some(caller) = state.accounts.remembered(&key) {
            caller
        } else {
            let _place = state.accounts.hold_back(peer, &key).await;
            match state.accounts.caller(&key).await {
                Ok(caller) => caller,
                Err(error) => return Err(authentication_problem(state, peer, error).await),
            }
        };
        state.accounts.remember(&key);
        stranger::authenticated(parts);
        let counted = count_call(parts, state, caller.called_by(), caller.own_rate());
        let mut app = Self { caller, peer };
        if let Err(limited) = counted {
            // An invalid key is reported first.
            app.prove(state).await?;
            return Err(limited);
        }
        Ok(app)
    }
}

impl KeyedApp {
    /// Proves that the key is still valid.
    pub(crate) async fn prove(&mut self, state: &AppState) -> Result<(), Problem> {
        match state.accounts.prove(&mut self.caller).await {
            Ok(()) => Ok(()),
            Err(error) => Err(authentication_problem(state, self.peer, error).await),
        }
    }
}

async fn authentication_problem(
    state: &AppState,
    peer: IpAddr,
    error: AuthenticateError,
) -> Problem {
    match error {
        AuthenticateError::Database(error) => Problem::database(&error),
        AuthenticateError::Wrong => unknown_send_key(state, peer).await,
    }
}

/// The response to an invalid key, delayed longer the more of them come from its address.
pub(crate) async fn unknown_send_key(state: &AppState, peer: IpAddr) -> Problem {
    state.accounts.slow_down(peer, "rest").await;
    invalid_send_key("The send key is invalid.")
}

fn too_many_requests() -> Problem {
    Problem::too_many_requests(
        "Too many requests with your API secret are in progress. Wait for their responses.",
    )
}

fn invalid_send_key(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "invalid_send_key", detail)
}

/// The value of these headers, which must all be the same.
pub(crate) fn header<'a>(
    headers: &'a HeaderMap,
    names: &[&str],
) -> Result<Option<&'a HeaderValue>, Problem> {
    let values = names.iter().flat_map(|name| headers.get_all(*name));
    only_one(values)
}

/// The key in these headers or as a bearer token (RFC 6750 §2.1); if given more than once, it must be the same. A value
/// that isn't ASCII can't be a key.
fn credential<'a>(headers: &'a HeaderMap, names: &[&str]) -> Result<Option<&'a str>, Problem> {
    let keys = names.iter().flat_map(|name| headers.get_all(*name));
    let keys = keys.map(|value| value.to_str().unwrap_or_default());
    let borne = headers.get_all(AUTHORIZATION).into_iter();
    let borne = borne.filter_map(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        (scheme.eq_ignore_ascii_case("bearer")).then(|| token.trim())
    });
    only_one(keys.chain(borne))
}

fn only_one<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Result<Option<T>, Problem> {
    let first = values.next();
    if values.any(|other| Some(&other) != first.as_ref()) {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "ambiguous_credentials",
            "The request has two different keys. Send only one.",
        ));
    }
    Ok(first)
}

fn count_call(
    parts: &Parts,
    state: &AppState,
    by: CalledBy,
    own: Option<NonZeroU32>,
) -> Result<(), Problem> {
    let decision = state.accounts.count_call(by, own);
    if let Some(slot) = parts.extensions.get::<RateSlot>() {
        // A request is counted once.
        let _ = slot.set(decision);
    }
    if decision.retry_after.is_none() {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "rate_limited",
        if decision.is_of_all {
            "Too many requests with all of your keys together; slow down."
        } else {
            "Too many requests with this key; slow down."
        },
    ))
}

/// Who is calling.
pub(crate) fn peer(parts: &Parts) -> IpAddr {
    client_address(&parts.extensions)
}

fn invalid_api_secret(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "invalid_api_secret", detail)
}

/// The missing scope; `None`: only the main API secret is accepted.
fn insufficient_scope(scope: Option<Scope>) -> Problem {
    let detail = match scope {
        Some(scope) => format!("This API secret doesn't have the scope {scope}."),
        None => "This requires the main API secret.".to_owned(),
    };
    Problem::new(StatusCode::FORBIDDEN, "insufficient_scope", detail)
}

/// The same response for a missing app and for another subscriber's.
pub(crate) fn no_such_app() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "app_not_found",
        "You have no app with this pushable key.",
    )
}
