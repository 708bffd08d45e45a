//! The session: an extractor that is the permission check, and its cookie.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::header::{SET_COOKIE, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use url::form_urlencoded::Serializer;

use super::problem::PortalProblem;
use crate::PortalState;
use crate::page::see;
use mailgate_domain::accounts::{
    CalledBy, FoundSession, PortalSession, RequestPlace, Subscriber, Visitor,
};
use mailgate_server::client::client_address;
use mailgate_server::cookie::{cookies, set_cookie};
use mailgate_server::stranger;
use mailgate_types::audit::{Author, Credential};
use mailgate_types::ids::SubscriberId;
use mailgate_types::secrets::SessionToken;
use mailgate_types::sign_in::SignedInBy;

/// The cookie; over https with the prefix `__Host-`.
const NAME: &str = "mailgate";

/// Seconds that a browser keeps it: a session's maximum lifetime.
const LIFE: u32 = 7 * 24 * 3_600;

/// `Retry-After` if too many of a subscriber's requests are in progress.
const AGAIN: Duration = Duration::from_secs(1);

/// How long after signing in with a link the API secret isn't required again.
const FRESH: TimeDelta = TimeDelta::minutes(10);

/// A signed-in subscriber. Handlers that take it only access data of `subscriber.id`.
pub(crate) struct Session {
    pub(crate) subscriber: Subscriber,
    pub(crate) open: PortalSession,
    address: IpAddr,
    _place: RequestPlace,
}

impl Session {
    /// The signed-in subscriber.
    pub(crate) fn id(&self) -> SubscriberId {
        self.subscriber.id
    }

    /// The actor, for the audit trail.
    pub(crate) fn author(&self) -> Author {
        author(&self.open, &self.subscriber, self.address)
    }

    /// Whether sign-in with a link was so recent that it replaces the API secret.
    pub(crate) fn is_fresh(&self, now: DateTime<Utc>) -> bool {
        is_fresh(&self.open, now)
    }
}

fn author(open: &PortalSession, subscriber: &Subscriber, address: IpAddr) -> Author {
    let shown = Credential::PortalSession(open.id);
    Author::subscriber(address, subscriber.id, shown)
}

fn is_fresh(session: &PortalSession, now: DateTime<Utc>) -> bool {
    session.by != SignedInBy::ApiSecret && !session.needs_secret && now - session.created_at < FRESH
}

impl FromRequestParts<PortalState> for Session {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &PortalState) -> Result<Self, Response> {
        let token = token(&parts.headers, state).ok_or_else(|| signed_out(parts))?;
        let found = state.accounts.portal_session(&token).await;
        let found = found.map_err(|error| PortalProblem::database(&error).into_response())?;
        let Some(FoundSession {
            session,
            subscriber,
        }) = found
        else {
            return Err(signed_out(parts));
        };
        stranger::authenticated(parts);
        let by = CalledBy::Owner(subscriber.id);
        let counted = (state.accounts).count_call(by, subscriber.requests_per_second);
        if let Some(wait) = counted.retry_after {
            return Err(PortalProblem::too_many(wait).into_response());
        }
        let address = client_address(&parts.extensions);
        let author = author(&session, &subscriber, address);
        let place = state.accounts.request_place(&author).await;
        let too_many = |_| PortalProblem::too_many(AGAIN).into_response();
        Ok(Self {
            _place: place.map_err(too_many)?,
            subscriber,
            open: session,
            address,
        })
    }
}

/// Redirects to the sign-in form, and back here from it. Submitted data would be lost, so form posts aren't redirected.
fn signed_out(parts: &Parts) -> Response {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return PortalProblem::signed_out().into_response();
    }
    let here = parts
        .uri
        .path_and_query()
        .map_or("/portal", |it| it.as_str());
    let query = Serializer::new(String::new())
        .append_pair("next", here)
        .finish();
    let form = format!("/portal/sign-in?{query}");
    if parts.headers.contains_key("hx-request") {
        // htmx can't redirect a part of a page to another one, so it loads the whole page.
        return (StatusCode::UNAUTHORIZED, [("hx-redirect", form)]).into_response();
    }
    see(&form)
}

/// The token in a browser's cookie.
pub(crate) fn token(headers: &HeaderMap, state: &PortalState) -> Option<SessionToken> {
    cookies(headers, NAME, &state.address).find_map(SessionToken::parse)
}

/// The response that signs a browser in.
pub(crate) fn signed_in(state: &PortalState, token: &SessionToken, answer: Response) -> Response {
    with_cookie(
        answer,
        set_cookie(NAME, token.expose(), LIFE, &state.address),
    )
}

/// Redirects to `path`, without a session.
pub(crate) fn without_session(state: &PortalState, path: &str) -> Response {
    with_cookie(see(path), set_cookie(NAME, "", 0, &state.address))
}

fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// The client of a request, authenticated or not.
pub(crate) struct Guest(pub(crate) Visitor);

impl FromRequestParts<PortalState> for Guest {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &PortalState,
    ) -> Result<Self, Self::Rejection> {
        let name = parts.headers.get(USER_AGENT);
        let name = name.map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned());
        Ok(Self(Visitor {
            address: client_address(&parts.extensions),
            user_agent: name.unwrap_or_default(),
            session: token(&parts.headers, state),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailgate_types::ids::PortalSessionId;

    #[test]
    fn a_link_counts_as_the_secret_for_ten_minutes() {
        let now = Utc::now();
        for (by, needs_secret, minutes, fresh) in [
            (SignedInBy::Minted, false, 9, true),
            (SignedInBy::Link, false, 9, true),
            (SignedInBy::Link, true, 0, false),
            (SignedInBy::Minted, false, 10, false),
            (SignedInBy::ApiSecret, false, 0, false),
        ] {
            let created_at = now - TimeDelta::minutes(minutes);
            let session = PortalSession {
                id: PortalSessionId::at(now),
                by,
                needs_secret,
                created_at,
                last_used_at: now,
                user_agent: String::new(),
                address: String::new(),
            };
            assert_eq!(is_fresh(&session, now), fresh, "{by:?} {minutes}");
        }
    }
}
