//! `POST /send`.

mod answer;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod recipients;
mod request;
mod validate;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::AppState;
use crate::http::authority::{KeyedApp, unknown_send_key};
use crate::http::problem::{FieldError, Problem};
use crate::http::request::{LARGE, parse};
use crate::http::whole_body::json_body_within;
use answer::{QueuedResponse, SentResponse, answer};
use mailgate_domain::accounts::SendingApp;
use mailgate_domain::compose::Fields;
use mailgate_domain::mailboxes::{FormerMailbox, Wanted};
use mailgate_domain::sending::accept::budget::{Holder, Share};
use mailgate_domain::sending::accept::draft::{Draft, PrepareError};
use mailgate_domain::sending::accept::idempotency::{IdempotencyKey, read_key};
use mailgate_domain::sending::{Blocked, Refusal, Request, SendError};
use mailgate_types::budget::NoRoom;
use mailgate_types::door::Door;
use mailgate_types::ids::AppId;
use mailgate_types::metadata::Metadata;
use mailgate_types::moment::iso8601;
use mailgate_types::refusal::RefusalReason;
use mailgate_types::send_at::{SendAt, SendAtError};
use recipients::Recipients;
use request::SendRequest;
use validate::{ValidRequest, pk_mismatch, validate};

/// JSON can escape a message's byte as several, and base64 turns three bytes into four.
const JSON_OVERHEAD: usize = 2;

/// Maximum number of addresses that an error lists.
const NAMED: i64 = 10;

/// The request, and the message built from it.
const COPIES: usize = 2;

/// Sends a message from a connected mailbox of the app.
///
/// 200 means that the provider accepted the message; 202 means that the gateway stored it, because of `send_at` or to
/// retry it, so you must not. If you get no response, or 409 `idempotency_key_in_flight`, 429, 500, 503 or 504, repeat
/// the request with the same `Idempotency-Key` and the same body, after `Retry-After` if it is given: the message is
/// sent only once. Repeating it after any other response would return the same response.
#[utoipa::path(
    post,
    path = "/send",
    tag = "Send",
    security(("send_key" = []), ("send_key_as_api_key" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Your own ID for this request, kept for a day. Repeating the request with the same body returns the first response again, with `Idempotent-Replayed: true`, and sends no second message", min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$")),
    request_body = SendRequest,
    responses(
        (status = 200, body = SentResponse, description = "The provider accepted the message"),
        (status = 202, body = QueuedResponse, description = "The gateway stored the message: until `send_at` (`scheduled`), or after a temporary failure, to retry it (`failed_temp`)"),
        (status = 401, description = "`invalid_send_key`: the send key is missing, wrong or expired, or may not be used from this address"),
        (status = 402, description = "`subscription_blocked`: the subscription doesn't allow sending; `subscriber_suspended`: the operator has suspended the account"),
        (status = 403, description = "`pk_mismatch`: the pushable key belongs to another app than the send key; `mailbox_not_allowed`: the send key may not send from any mailbox that matches"),
        (status = 409, description = "`idempotency_key_in_flight`: the first request with this key is still in progress"),
        (status = 413, description = "`message_too_large`: the message with its attachments is larger than allowed; `payload_too_large`: the request body is larger than allowed"),
        (status = 422, description = "`invalid_request`: fields are missing or wrong; `no_mailbox`: no connected mailbox matches; `recipient_suppressed`: recipients have bounced in the last 30 days, and the app refuses messages to them; `idempotency_key_reused`: the key was used for another request, so take a new key for this one"),
        (status = 429, description = "`rate_limited`: too many requests with this key; `waiting_quota_full`: the app's queue quota is full, and this message can't be sent now"),
        (status = 500, description = "`outcome_unknown`: the message may have been sent; `internal_error`: it was not"),
        (status = 502, description = "`provider_rejected`: the provider refused the message permanently; `outcome_unknown`: the connection closed after sending, and the message may have arrived"),
        (status = 503, description = "`unavailable` or `overloaded`: nothing was sent"),
        (status = 504, description = "`timeout`: the message may still be sent"),
    )
)]
pub(super) async fn send(
    State(state): State<AppState>,
    mut app: KeyedApp,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let mut named = Named::default();
    let read = read(&state, &mut app, &headers, body, &mut named).await;
    let read = match read {
        Ok(read) => read,
        Err(problem) => {
            // Hides validation errors from revoked keys.
            app.prove(&state).await?;
            note(&state, app.caller.app().id, &problem, &named);
            return Err(problem);
        }
    };
    let to = read.fields.to.as_str().to_owned();
    let recipients = Recipients::of(&read.fields);
    let wanted = read.wanted;
    let pushable_key = app.caller.app().pushable_key.clone();
    let request = Request {
        caller: app.caller,
        still_means: |before, now| {
            before.pushable_key == now.pushable_key && before.multiuser == now.multiuser
        },
        wanted: wanted.clone(),
        draft: Draft::of_fields(read.fields, read.metadata, state.limits.message_bytes),
        key: read.key,
        send_at: read.send_at,
        share: read.share,
    };
    let problem = match state.sending.submit(request).await {
        Ok(answered) => return answer(answered, to),
        Err(Refusal::Key) => unknown_send_key(&state, app.peer).await,
        Err(Refusal::Changed(now)) if now.pushable_key != pushable_key => pk_mismatch(),
        Err(Refusal::NoMailbox | Refusal::Unpreparable(PrepareError::Address)) => {
            no_mailbox(&state, &wanted).await
        }
        Err(Refusal::Suppressed(suppressed)) => recipients.suppressed(&suppressed),
        Err(refusal) => refused(refusal),
    };
    note(&state, wanted.app, &problem, &named);
    Err(problem)
}

/// The sender and recipient of a request, valid or not.
#[derive(Default)]
struct Named {
    from: Option<String>,
    to: Option<String>,
}

/// Records a refusal that came before a mailbox was chosen.
fn note(state: &AppState, app: AppId, problem: &Problem, named: &Named) {
    let reason = match problem.code() {
        "payload_too_large" => Some(RefusalReason::MessageTooLarge),
        code => code.parse().ok(),
    };
    if let Some(reason) = reason {
        let (from, to) = (named.from.as_deref(), named.to.as_deref());
        state.refusals.note(app, Door::Rest, reason, from, to);
    }
}

/// A validated request.
struct Read {
    fields: Fields,
    wanted: Wanted,
    metadata: Metadata,
    key: Option<IdempotencyKey>,
    send_at: Option<SendAt>,
    share: Share,
}

async fn read(
    state: &AppState,
    app: &mut KeyedApp,
    headers: &HeaderMap,
    body: Body,
    named: &mut Named,
) -> Result<Read, Problem> {
    let limit = state.limits.message_bytes * JSON_OVERHEAD;
    let mut share = room_for(state, app.caller.app(), headers, limit)?;
    let body = json_body_within(headers, body, limit, |more| {
        share.grow(more * COPIES).map_err(overloaded)
    })
    .await?;
    let key = idempotency_key(headers, &body)?;
    let mut request = parse_and_validate(state, app.caller.app(), &body, named).await;
    if request.is_err() && !app.caller.is_proven() {
        // It may be valid for the app's current state.
        app.prove(state).await?;
        request = parse_and_validate(state, app.caller.app(), &body, named).await;
    }
    let request = request?;
    Ok(Read {
        fields: request.fields,
        send_at: request.send_at,
        metadata: request.metadata,
        wanted: Wanted {
            app: app.caller.app().id,
            user: request.user_id,
            plugin: request.plugin,
            address_lookup: request.from.map(|from| from.lookup_key()),
            only: None,
        },
        key,
        share,
    })
}

async fn parse_and_validate(
    state: &AppState,
    app: &SendingApp,
    body: &Bytes,
    named: &mut Named,
) -> Result<ValidRequest, Problem> {
    let read = body.clone();
    let request: SendRequest = off_thread(body.len(), move || parse(&read)).await?;
    *named = Named {
        from: request.from.given().cloned(),
        to: request.to.given().cloned(),
    };
    validate(request, app, state.limits.recipients, state.clock.now())
}

/// Runs work on `size` bytes, if they are many, off the threads that serve connections.
async fn off_thread<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if size < LARGE {
        return work();
    }
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err(internal_error()))
}

fn internal_error() -> Problem {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal_error",
        "Something went wrong on our side. If it persists, quote the request_id.",
    )
}

/// Memory that is reserved as the request arrives. A request that states its length is refused up front if there is no
/// room.
fn room_for(
    state: &AppState,
    app: &SendingApp,
    headers: &HeaderMap,
    limit: usize,
) -> Result<Share, Problem> {
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok())
        .map_or(0, |length: usize| length.min(limit));
    let (budget, holder) = (state.sending.budget(), Holder::Subscriber(app.subscriber));
    budget
        .has_room(holder, length * COPIES)
        .map_err(overloaded)?;
    Ok(budget.share(holder))
}

fn overloaded(no_room: NoRoom) -> Problem {
    metrics::counter!("mailgate_overloaded_total").increment(1);
    let detail = match no_room {
        NoRoom::InAll => {
            "The gateway is sending too many messages already. This one was not sent; try again shortly."
        }
        NoRoom::OfHolder => {
            "Your apps are sending too many messages already. This one was not sent; try again shortly."
        }
    };
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail)
}

/// The caller's idempotency key, over the exact bytes of the body.
fn idempotency_key(headers: &HeaderMap, body: &[u8]) -> Result<Option<IdempotencyKey>, Problem> {
    let mut named = headers.get_all("idempotency-key").iter();
    let Some(only) = named.next() else {
        return Ok(None);
    };
    let key = only.to_str().ok().and_then(read_key);
    match (key, named.next()) {
        (Some(key), None) => Ok(Some(IdempotencyKey::over(key, std::iter::once(body)))),
        _ => Err(Problem::fields(vec![FieldError::new(
            "Idempotency-Key",
            "must be given once, with 1 to 255 printable ASCII characters",
        )])),
    }
}

fn refused(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::Send(error) => not_sent(error),
        Refusal::Blocked(blocked @ Blocked::ByOperator(_)) => {
            Problem::suspended(format!("{blocked}."))
        }
        Refusal::Blocked(blocked) => Problem::new(
            StatusCode::PAYMENT_REQUIRED,
            "subscription_blocked",
            format!("{blocked}."),
        ),
        Refusal::Unpreparable(PrepareError::TooLarge(limit)) => Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "message_too_large",
            format!("The message must not exceed {limit} bytes."),
        ),
        Refusal::SendAtPast => Problem::fields(vec![FieldError::new(
            "send_at",
            SendAtError::Past.to_string(),
        )]),
        Refusal::Changed(_) | Refusal::Unpreparable(PrepareError::Changed) => {
            Problem::unavailable()
        }
        Refusal::Database(error) => Problem::database(&error),
        Refusal::MailboxNotAllowed => Problem::new(
            StatusCode::FORBIDDEN,
            "mailbox_not_allowed",
            "This send key may not send from any mailbox that matches user_id, plugin and from.",
        ),
        // These are reported where more is known of the request.
        Refusal::Key
        | Refusal::NoMailbox
        | Refusal::OtherSender(_)
        | Refusal::Suppressed(_)
        | Refusal::Unpreparable(PrepareError::Address | PrepareError::CutOff) => internal_error(),
    }
}

fn not_sent(error: SendError) -> Problem {
    let text = format!("{error}.");
    match error {
        SendError::NotTaken => Problem::unavailable(),
        SendError::QuotaFull => {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "waiting_quota_full", text)
        }
        SendError::Unknown => {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "outcome_unknown", text)
        }
        SendError::InFlight => {
            Problem::new(StatusCode::CONFLICT, "idempotency_key_in_flight", text)
        }
        SendError::KeyOfAnother => Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "idempotency_key_reused",
            text,
        ),
    }
}

/// Why no mailbox matches: it was disconnected, or `from` names none of the app's addresses.
async fn no_mailbox(state: &AppState, wanted: &Wanted) -> Problem {
    let mailboxes = &state.mailboxes;
    let found = async {
        if let Some(former) = mailboxes.former(wanted).await? {
            return Ok(disconnected(&former));
        }
        let others = match wanted.address_lookup {
            Some(_) => mailboxes.addresses(wanted, NAMED + 1).await?,
            None => Vec::new(),
        };
        Ok(none_matches(&others))
    };
    found
        .await
        .unwrap_or_else(|error: sqlx::Error| Problem::database(&error))
}

fn disconnected(former: &FormerMailbox) -> Problem {
    let since = iso8601(former.disconnected_at);
    let (email, reason) = (&former.email, &former.reason);
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "no_mailbox",
        format!(
            "The mailbox {email} was disconnected on {since} ({reason}), and no other mailbox matches user_id, plugin and from. Its user has to connect it again."
        ),
    )
}

/// `addresses` are the possible senders, if `from` is the reason.
fn none_matches(addresses: &[String]) -> Problem {
    let reason = "No connected mailbox of the app matches user_id, plugin and from.";
    let detail = if addresses.is_empty() {
        reason.to_owned()
    } else {
        let named = usize::try_from(NAMED).unwrap_or_default();
        let shown = addresses.get(..named).unwrap_or(addresses).join(", ");
        let more = if addresses.len() > named {
            " and others"
        } else {
            ""
        };
        format!(
            "{reason} The from address may be {shown}{more}. A new one at the provider is recognised within a day, \
            or once the mailbox is connected again."
        )
    };
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no_mailbox", detail)
}
