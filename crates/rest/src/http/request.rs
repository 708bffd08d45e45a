//! Common to every request: its ID, its body's bounds, its problem responses.

use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde_json::error::Category;
use tracing::Instrument as _;

use super::authority::RateSlot;
use super::body::{BodyLimits, BoundedBody};
use super::failures::{Answered, Failures};
use super::host;
use super::metrics::RequestMetrics;
use super::problem::{Problem, whole_seconds};
use mailgate_domain::accounts::RateDecision;
use mailgate_server::client::client_address;
use mailgate_server::content::SharedBody;
use mailgate_server::failure::{Failure, RequestId};
use mailgate_server::own_hosts::OwnHosts;
use mailgate_server::stranger::{Crowded, Stranger, Strangers, header_bytes};
use mailgate_types::ids::uuid_at;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Bodies of at least this size are parsed off the threads that serve connections.
pub(crate) const LARGE: usize = 256 * 1024;

/// The shared settings of every request.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// The only names that the gateway answers to; `None`: any.
    pub(crate) own_hosts: Option<OwnHosts>,
    /// The memory for callers that have not authenticated.
    pub(crate) strangers: Strangers,
    /// The bounds on its body.
    pub(crate) bodies: BodyLimits,
    /// Where failed requests are logged.
    pub(crate) failures: Failures,
    /// Counts all of them.
    pub(crate) metrics: RequestMetrics,
}

/// Gives a request its ID and its bounds, and renders its problem.
pub(crate) async fn frame(State(frame): State<Frame>, request: Request, next: Next) -> Response {
    let request_id = uuid_at(chrono::Utc::now()).to_string();
    // At the highest level, so that no log filter drops it.
    let span = tracing::error_span!("request", request_id);
    frame
        .follow(request, next, &request_id)
        .instrument(span)
        .await
}

impl Frame {
    async fn follow(&self, mut request: Request, next: Next, request_id: &str) -> Response {
        let method = request.method().clone();
        // The pattern, not the path: callers put secrets where a pushable key belongs.
        let route = request.extensions().get::<MatchedPath>().cloned();
        let started = std::time::Instant::now();
        let rate = RateSlot::default();
        request.extensions_mut().insert(RateSlot::clone(&rate));
        let id = RequestId(request_id.to_owned());
        request.extensions_mut().insert(id);
        let admitted = self.admit(&request, route.as_ref());
        let was_admitted = admitted.is_ok();
        let (mut response, stranger) = match admitted {
            Ok(stranger) => (
                self.answer(request, stranger.as_ref(), next).await,
                stranger,
            ),
            Err(problem) => (problem.into_response(), None),
        };
        let mut failure = response.extensions_mut().remove::<Failure>();
        if let Some(problem) = response.extensions_mut().remove::<Problem>() {
            failure = Some(problem.failure());
            response = problem.render(request_id);
        }
        let mut authenticated = false;
        if let Some(stranger) = stranger {
            authenticated = !stranger.is_one();
            if !has_room(&response, &stranger) {
                let problem = overloaded();
                failure = Some(problem.failure());
                response = problem.render(request_id);
            }
            // The listener drops it once the response is sent.
            response.extensions_mut().insert(stranger);
        }
        if let Some(decision) = rate.get() {
            rate_headers(response.headers_mut(), decision);
        }
        let answered = Answered {
            method: &method,
            route: route.as_ref().map(MatchedPath::as_str),
            status: response.status(),
            authenticated,
            took: started.elapsed(),
        };
        self.failures.log(&answered, failure.as_ref());
        self.metrics.count(&answered, was_admitted);
        if let Ok(value) = HeaderValue::from_str(request_id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        response
    }

    /// A slot for a request that is well-formed and comes from no crowded address. Balancers' liveness
    /// probes are always admitted.
    fn admit(
        &self,
        request: &Request,
        route: Option<&MatchedPath>,
    ) -> Result<Option<Stranger>, Problem> {
        host::check(request, self.own_hosts.as_ref())?;
        if request.extensions().get::<Crowded>().is_some() {
            return Err(Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_connections",
                "Too many requests from this address are in progress.",
            ));
        }
        if route.is_some_and(|route| matches!(route.as_str(), "/healthz" | "/readyz")) {
            return Ok(None);
        }
        let header = header_bytes(request.uri(), request.headers());
        Stranger::begin(
            &self.strangers,
            client_address(request.extensions()),
            header,
        )
        .map(Some)
        .map_err(|_| overloaded())
    }

    /// Runs a request's handler.
    async fn answer(
        &self,
        mut request: Request,
        stranger: Option<&Stranger>,
        next: Next,
    ) -> Response {
        if let Some(stranger) = stranger {
            request.extensions_mut().insert(stranger.clone());
            if !request.body().is_end_stream() {
                request = request
                    .map(|body| Body::new(BoundedBody::new(body, &self.bodies, stranger.clone())));
            }
        }
        next.run(request).await
    }
}

/// Whether a response may wait in memory for its client. A shared body takes no extra memory.
fn has_room(response: &Response, stranger: &Stranger) -> bool {
    let bytes = response.body().size_hint().lower();
    response.extensions().get::<SharedBody>().is_some()
        || stranger
            .grow(usize::try_from(bytes).unwrap_or(usize::MAX))
            .is_ok()
}

/// No room for an unauthenticated caller.
pub(crate) fn overloaded() -> Problem {
    metrics::counter!("mailgate_http_overloaded_total").increment(1);
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "overloaded",
        "The gateway is overloaded. Nothing was changed; try again shortly.",
    )
}

/// The rate limiter's verdict, in the headers of the HTTPAPI working group's draft
/// (draft-ietf-httpapi-ratelimit-headers), and `Retry-After` for a limited call.
fn rate_headers(headers: &mut HeaderMap, decision: &RateDecision) {
    let (burst, per_second) = (decision.burst, decision.per_second);
    let window = burst.div_ceil(per_second);
    let until_full = (burst - decision.remaining.min(burst)).div_ceil(per_second);
    let mut insert = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    insert("ratelimit-policy", format!("\"key\";q={burst};w={window}"));
    insert(
        "ratelimit",
        format!("\"key\";r={};t={until_full}", decision.remaining),
    );
    if let Some(wait) = decision.retry_after {
        insert("retry-after", whole_seconds(wait).to_string());
    }
}

/// Reads a JSON object.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // A struct would also be read from an array, field by field.
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    let read = if is_object {
        serde_json::from_slice::<T>(body)
    } else {
        // `IgnoredAny` decodes no escapes; reading a `String` finds one that stands for no character.
        serde_json::from_slice::<IgnoredAny>(body)
            .and_then(|_| serde_json::from_slice::<String>(body))
            .and_then(|_| Err(serde_json::Error::custom("not an object")))
    };
    match read {
        Ok(value) => Ok(value),
        Err(error)
            if matches!(
                error.classify(),
                Category::Syntax | Category::Eof | Category::Io
            ) =>
        {
            Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "malformed_json",
                format!(
                    "The body isn't valid JSON: error at line {}, column {}.",
                    error.line(),
                    error.column()
                ),
            ))
        }
        Err(error) if is_object => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_request",
            format!("The body can't be read: {error}."),
        )),
        Err(_) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_request",
            "The body must be a JSON object.",
        )),
    }
}
