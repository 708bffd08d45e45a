//! `/oauth/authorize`: checks the request (RFC 6749 §4.1.1, RFC 7636 §4.3), asks the user, and redirects with a code or
//! an error (§4.1.2).
//!
//! In tests a `login_hint` replaces the user: the response comes immediately, without a page. A hint that begins with
//! `deny` declines; one that begins with `partial` grants only the first scope.

use askama::Template;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY};
use axum::response::{IntoResponse, Response};
use url::Url;

use super::grants::Code;
use super::parameters::{Parameters, Repeated, is_address, is_pkce, is_scope};
use super::{Authorization, Settings};
use crate::card::Card;
use mailgate_server::page::Page;

/// The suggested mailbox.
const PROPOSED: &str = "ada@sandbox.example";

/// The scope of a request without one.
const DEFAULT_SCOPE: &str = "openid email mail.send";

/// A request that passed every check.
struct Request<'a> {
    redirect: Redirect<'a>,
    client_id: &'a str,
    challenge: &'a str,
    scope: &'a str,
    login_hint: Option<&'a str>,
}

/// The target of the redirect.
struct Redirect<'a> {
    /// The URI as sent, for comparison at the token endpoint.
    text: &'a str,
    url: Url,
    state: Option<&'a str>,
}

/// Why a request is refused.
enum Refusal<'a> {
    /// RFC 6749 §4.1.2.1: the client or its address can't be trusted, so the error is shown on a page.
    Shown(&'static str),
    /// The error is returned to the client.
    Redirected(Box<Redirect<'a>>, &'static str, &'static str),
}

/// `GET /oauth/authorize`.
pub(super) async fn show(
    State(authorization): State<Authorization>,
    RawQuery(query): RawQuery,
) -> Response {
    let parameters = Parameters::parse(query.unwrap_or_default().as_bytes());
    let request = match check(&authorization.shared.settings, &parameters) {
        Ok(request) => request,
        Err(refusal) => return refusal.into_response(StatusCode::FOUND),
    };
    match request.login_hint {
        Some(hint) if hint.starts_with("deny") => denied(request.redirect, StatusCode::FOUND),
        Some(hint) if is_address(hint) => grant(&authorization, &request, hint, StatusCode::FOUND),
        hint => page(&request, hint.unwrap_or(PROPOSED), None),
    }
}

/// `POST /oauth/authorize`: the page's form, with the request's own parameters, `decision` and `address`.
pub(super) async fn decide(State(authorization): State<Authorization>, body: Bytes) -> Response {
    let parameters = Parameters::parse(&body);
    let request = match check(&authorization.shared.settings, &parameters) {
        Ok(request) => request,
        Err(refusal) => return refusal.into_response(StatusCode::SEE_OTHER),
    };
    if parameters.get("decision") == Ok(Some("deny")) {
        return denied(request.redirect, StatusCode::SEE_OTHER);
    }
    match parameters
        .get("address")
        .map(|address| address.map(str::trim))
    {
        Ok(Some(address)) if is_address(address) => {
            grant(&authorization, &request, address, StatusCode::SEE_OTHER)
        }
        Ok(Some(address)) => page(
            &request,
            address,
            Some("That isn't an address. Enter one like ada@sandbox.example."),
        ),
        _ => page(&request, PROPOSED, Some("Enter the address of a mailbox.")),
    }
}

fn check<'a>(settings: &Settings, parameters: &'a Parameters) -> Result<Request<'a>, Refusal<'a>> {
    let client_id = match parameters.get("client_id") {
        Ok(Some(id)) if id == settings.client_id => id,
        _ => {
            return Err(Refusal::Shown(
                "The client_id is missing or unknown. Check the client id in the app's settings.",
            ));
        }
    };
    let untrusted = Refusal::Shown(
        "The redirect_uri is missing or not allowed. Use http on a loopback address, or the one in the settings.",
    );
    let Ok(Some(text)) = parameters.get("redirect_uri") else {
        return Err(untrusted);
    };
    let (true, Ok(url)) = (settings.allows_redirect(text), Url::parse(text)) else {
        return Err(untrusted);
    };
    // A repeated state can't be returned; the other checks report the error.
    let state = parameters.get("state").unwrap_or_default();
    let redirect = Redirect { text, url, state };
    match check_rest(parameters) {
        Ok((challenge, scope, login_hint)) => Ok(Request {
            redirect,
            client_id,
            challenge,
            scope,
            login_hint,
        }),
        Err((error, description)) => {
            Err(Refusal::Redirected(Box::new(redirect), error, description))
        }
    }
}

type Rest<'a> = (&'a str, &'a str, Option<&'a str>);

fn check_rest(parameters: &Parameters) -> Result<Rest<'_>, (&'static str, &'static str)> {
    let get = |name| {
        parameters
            .get(name)
            .map_err(|Repeated| ("invalid_request", "a parameter is repeated"))
    };
    get("state")?;
    match get("response_type")? {
        Some("code") => {}
        Some(_) => {
            return Err((
                "unsupported_response_type",
                "only response_type=code is supported",
            ));
        }
        None => return Err(("invalid_request", "response_type is missing")),
    }
    let Some(challenge) = get("code_challenge")? else {
        return Err(("invalid_request", "code challenge required"));
    };
    // RFC 7636 §4.3: the default method is `plain`.
    if get("code_challenge_method")? != Some("S256") {
        return Err(("invalid_request", "code_challenge_method must be S256"));
    }
    // SHA-256 in base64url without padding is 43 characters.
    if !is_pkce(challenge, 43) {
        return Err(("invalid_request", "code_challenge is malformed"));
    }
    let scope = get("scope")?.unwrap_or(DEFAULT_SCOPE);
    if !is_scope(scope) {
        return Err(("invalid_scope", "the scope is malformed"));
    }
    Ok((challenge, scope, get("login_hint")?))
}

fn grant(
    authorization: &Authorization,
    request: &Request<'_>,
    mailbox: &str,
    status: StatusCode,
) -> Response {
    let partial = request
        .login_hint
        .is_some_and(|hint| hint.starts_with("partial"));
    let scope = match request.scope.split_once(' ') {
        Some((first, _)) if partial => first,
        _ => request.scope,
    };
    let code = Code {
        redirect_uri: request.redirect.text.to_owned(),
        challenge: request.challenge.to_owned(),
        mailbox: mailbox.to_owned(),
        scope: scope.to_owned(),
    };
    let shared = &authorization.shared;
    match shared.grants.issue_code(code, shared.settings.clock.now()) {
        Ok(code) => request.redirect.answer(&[("code", &code)], status),
        Err(error) => {
            tracing::error!(%error, "the sandbox could not issue a code");
            request
                .redirect
                .answer(&[("error", "server_error")], status)
        }
    }
}

fn denied(redirect: Redirect<'_>, status: StatusCode) -> Response {
    Refusal::Redirected(
        Box::new(redirect),
        "access_denied",
        "the mailbox's owner declined",
    )
    .into_response(status)
}

impl Refusal<'_> {
    fn into_response(self, status: StatusCode) -> Response {
        match self {
            Self::Shown(reason) => Page::new(
                StatusCode::BAD_REQUEST,
                "This request can't be trusted",
                Card::new(reason),
            )
            .into_response(),
            Self::Redirected(redirect, error, description) => redirect.answer(
                &[("error", error), ("error_description", description)],
                status,
            ),
        }
    }
}

impl Redirect<'_> {
    fn answer(&self, parameters: &[(&str, &str)], status: StatusCode) -> Response {
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .extend_pairs(parameters)
            .extend_pairs(self.state.map(|state| ("state", state)));
        (
            status,
            [
                (LOCATION, url.as_str()),
                (CACHE_CONTROL, "no-store"),
                (REFERRER_POLICY, "no-referrer"),
            ],
        )
            .into_response()
    }
}

/// The consent page.
#[derive(Template)]
#[template(path = "authorize.html")]
struct Asking<'a> {
    client: &'a str,
    origin: String,
    scope: &'a str,
    /// The hidden fields of each form: the request's own parameters, if present.
    hidden: [(&'static str, Option<&'a str>); 7],
    /// The suggested or entered address; it may be invalid.
    address: &'a str,
    fault: Option<&'static str>,
}

fn page(request: &Request<'_>, address: &str, fault: Option<&'static str>) -> Response {
    let redirect = &request.redirect;
    let content = Asking {
        client: request.client_id,
        origin: redirect.url.origin().ascii_serialization(),
        scope: request.scope,
        hidden: [
            ("response_type", Some("code")),
            ("client_id", Some(request.client_id)),
            ("redirect_uri", Some(redirect.text)),
            ("state", redirect.state),
            ("scope", Some(request.scope)),
            ("code_challenge", Some(request.challenge)),
            ("code_challenge_method", Some("S256")),
        ],
        address,
        fault,
    };
    Page::new(StatusCode::OK, "Connect a sandbox mailbox", content)
        .with_redirecting_forms()
        .into_response()
}
