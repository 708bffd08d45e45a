//! `POST /send`.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Doors;
use super::authority::KeyedApp;
use super::field::Field;
use super::problem::{FieldError, Problem, ProblemBody};
use super::request::{LARGE, json_body, parse};
use super::time::iso8601;
use crate::accounts::SendingApp;
use crate::sending::budget::Share;
use crate::sending::compose::{ComposeError, Fields, compose};
use crate::sending::idempotency::{IdempotencyKey, read_key};
use crate::sending::prepared::Prepared;
use crate::sending::{Answer, Blocked, Outcome, Receipt, SendError, admit};
use crate::types::email_address::EmailAddress;
use crate::types::plugin::Plugin;

/// Longest subject in characters: a header line's own limit (RFC 5322 §2.1.1).
const SUBJECT_LENGTH: usize = 998;

/// Longest `user_id` in characters.
const USER_ID_LENGTH: usize = 255;

/// JSON may write a message's byte in several of its own, and base64 takes four for three.
const JSON_OVERHEAD: usize = 2;

/// A message to send.
#[derive(Deserialize, Default, ToSchema)]
pub(super) struct SendRequest {
    /// The app's pushable key, `pk_…`.
    #[schema(value_type = String, required)]
    #[serde(default)]
    pk: Field<String>,
    /// One recipient's address, without a name.
    #[schema(value_type = String, required, max_length = 254, format = "idn-email", example = "bob@example.com")]
    #[serde(default)]
    to: Field<String>,
    /// The subject.
    #[schema(value_type = String, required, max_length = 998, pattern = r"^[^\r\n\x00]*$")]
    #[serde(default)]
    subject: Field<String>,
    /// The text; required unless `html` is given.
    #[schema(value_type = Option<String>, pattern = r"^[^\x00]*$")]
    #[serde(default)]
    body: Field<String>,
    /// The HTML; required unless `body` is given.
    #[schema(value_type = Option<String>, pattern = r"^[^\x00]*$")]
    #[serde(default)]
    html: Field<String>,
    /// The end user whose mailbox sends: your own name for the user, or the `user_key`. Required when
    /// the app is multiuser.
    #[schema(value_type = Option<String>, max_length = 255, pattern = r"^[^\x00]*$")]
    #[serde(default)]
    user_id: Field<String>,
    /// Forces one kind of mailbox: `plugin_a` or `plugin_b`.
    #[schema(value_type = Option<String>, pattern = "^plugin_[ab]$")]
    #[serde(default)]
    plugin: Field<String>,
}

/// The request, once every field is known to be right.
struct ValidRequest {
    fields: Fields,
    user_id: Option<String>,
    plugin: Option<Plugin>,
}

/// A message that the gateway took.
#[derive(Serialize, ToSchema)]
pub(super) struct SentResponse {
    /// `sent`, or `failed_temp` for a message that the gateway tries again.
    #[schema(value_type = String)]
    status: &'static str,
    /// The mailbox's address.
    from: String,
    /// The recipient.
    to: String,
    /// `plugin_a` or `plugin_b`.
    #[schema(value_type = String)]
    plugin: &'static str,
    /// The Message-ID header.
    #[schema(required)]
    message_id: Option<String>,
    /// `log_…`: the message in the log.
    log_id: String,
}

/// A message that is stored and tried again by the gateway, so that the caller must not.
#[derive(Serialize, ToSchema)]
pub(super) struct QueuedResponse {
    #[serde(flatten)]
    message: SentResponse,
    /// Why it could not be sent now.
    error: String,
    /// Attempts that have failed so far.
    retry_count: i32,
    /// ISO 8601, UTC: when it is tried again.
    #[schema(format = DateTime)]
    next_retry_at: String,
}

/// Sends a message from a connected mailbox of the app.
#[utoipa::path(
    post,
    path = "/send",
    tag = "Send",
    security(("send_key" = []), ("send_key_as_api_key" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Your own name for this request, kept for a day: asked again with the same body, the first answer comes again, with `Idempotent-Replayed: true`, and no second message is sent", min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$")),
    request_body = SendRequest,
    responses(
        (status = 200, body = SentResponse, description = "The provider has the message"),
        (status = 202, body = QueuedResponse, description = "A passing failure: the gateway tries again"),
        (status = 401, body = ProblemBody, content_type = "application/problem+json", description = "`invalid_send_key`"),
        (status = 402, body = ProblemBody, content_type = "application/problem+json", description = "`subscription_blocked`"),
        (status = 403, body = ProblemBody, content_type = "application/problem+json", description = "`pk_mismatch`"),
        (status = 409, body = ProblemBody, content_type = "application/problem+json", description = "`idempotency_key_in_flight`: the first request with this key is still being worked on"),
        (status = 413, body = ProblemBody, content_type = "application/problem+json", description = "`payload_too_large` or `message_too_large`"),
        (status = 422, body = ProblemBody, content_type = "application/problem+json", description = "`invalid_request`, `no_mailbox` or `idempotency_key_reused`"),
        (status = 429, body = ProblemBody, content_type = "application/problem+json", description = "`rate_limited`"),
        (status = 500, body = ProblemBody, content_type = "application/problem+json", description = "`outcome_unknown`: the message may have been sent; `internal_error`: it was not"),
        (status = 502, body = ProblemBody, content_type = "application/problem+json", description = "`provider_rejected`: refused for good; `outcome_unknown`: the connection broke after the message was out, and it may have arrived"),
        (status = 503, body = ProblemBody, content_type = "application/problem+json", description = "`unavailable` or `overloaded`: nothing was sent"),
        (status = 504, body = ProblemBody, content_type = "application/problem+json", description = "`timeout`: it may still go through"),
    )
)]
pub(super) async fn send(
    State(doors): State<Doors>,
    KeyedApp(app): KeyedApp,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let limit = doors.limits.message_bytes * JSON_OVERHEAD;
    let _share = room_for(&doors, &headers, limit)?;
    let body = json_body(&headers, body, limit).await?;
    let key = idempotency_key(&headers, &body)?;
    let request: SendRequest = off_thread(body.len(), move || parse(&body)).await?;
    let request = validate(request, &app)?;
    if let Some(key) = &key
        && let Some(answered) = (doors.sending.answer_to(app.id, key).await).map_err(not_sent)?
    {
        return answer(answered, request.fields.to.as_str().to_owned());
    }
    admit(app.subscription_status).map_err(blocked)?;
    let mailbox = doors
        .mailboxes
        .for_user(app.id, request.user_id.as_deref(), request.plugin)
        .await
        .map_err(|error| Problem::database(&error))?
        .ok_or_else(no_mailbox)?;
    let from = EmailAddress::parse(&mailbox.email).map_err(|_| no_mailbox())?;
    let to = request.fields.to.as_str().to_owned();
    let prepared = prepare(&doors, request.fields, from).await?;
    let answered = doors
        .sending
        .send(app.id, mailbox, prepared, key)
        .await
        .map_err(not_sent)?;
    answer(answered, to)
}

fn validate(request: SendRequest, app: &SendingApp) -> Result<ValidRequest, Problem> {
    let mut errors = Vec::new();
    let pk = request.pk.required("pk", &mut errors);
    if pk.is_some_and(|pk| pk != app.pushable_key) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "pk_mismatch",
            "pk and the send key belong to different apps.",
        ));
    }
    let to = request.to.required("to", &mut errors);
    let subject = request.subject.required("subject", &mut errors);
    let text = request.body.optional("body", &mut errors);
    let html = request.html.optional("html", &mut errors);
    let user_id = request.user_id.optional("user_id", &mut errors);
    let plugin = request.plugin.optional("plugin", &mut errors);
    let mut wrong = |field, detail: &str| {
        errors.push(FieldError {
            field,
            detail: detail.to_owned(),
        });
    };
    let to = to.and_then(|to| {
        let address = EmailAddress::parse(&to).ok();
        if address.is_none() {
            wrong("to", "must be one email address, without a name");
        }
        address
    });
    if let Some(subject) = &subject {
        if subject.contains(['\r', '\n', '\0']) {
            wrong("subject", "must not contain a line end or NUL");
        } else if subject.chars().count() > SUBJECT_LENGTH {
            wrong("subject", "may have 998 characters at most");
        }
    }
    let text = text.filter(|text| !text.is_empty());
    let html = html.filter(|html| !html.is_empty());
    for (field, body) in [("body", &text), ("html", &html)] {
        if body.as_ref().is_some_and(|body| body.contains('\0')) {
            wrong(field, "must not contain NUL");
        }
    }
    let user_id = user_id.filter(|user_id| !user_id.is_empty());
    if let Some(user_id) = &user_id {
        if user_id.contains('\0') || user_id.chars().count() > USER_ID_LENGTH {
            wrong(
                "user_id",
                "may have 255 characters at most, NUL not among them",
            );
        }
    } else if app.multiuser {
        wrong("user_id", "is required: the app has several users");
    }
    let plugin = plugin.and_then(|plugin| {
        let parsed = plugin.parse().ok();
        if parsed.is_none() {
            wrong("plugin", "must be plugin_a or plugin_b");
        }
        parsed
    });
    if text.is_none()
        && html.is_none()
        && !errors
            .iter()
            .any(|error| matches!(error.field, "body" | "html"))
    {
        errors.push(FieldError {
            field: "body",
            detail: "is required, unless html is given".to_owned(),
        });
    }
    match (to, subject) {
        (Some(to), Some(subject)) if errors.is_empty() => Ok(ValidRequest {
            fields: Fields {
                to,
                subject,
                text,
                html,
            },
            // An app without multiuser has one user, whatever it calls it.
            user_id: user_id.filter(|_| app.multiuser),
            plugin,
        }),
        _ => Err(Problem::fields(errors)),
    }
}

async fn prepare(doors: &Doors, fields: Fields, from: EmailAddress) -> Result<Prepared, Problem> {
    let size =
        fields.text.as_ref().map_or(0, String::len) + fields.html.as_ref().map_or(0, String::len);
    let now = doors.clock.now();
    let prepared = off_thread(size, move || {
        compose(fields, &from, now).map_err(|error| match error {
            ComposeError::Address(_) => Problem::fields(vec![FieldError {
                field: "to",
                detail: "has a form that no header can show".to_owned(),
            }]),
            ComposeError::Builder(error) => {
                tracing::error!(%error, "a message can't be composed");
                Problem::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "invalid_request",
                    "No message can be made of these fields.",
                )
            }
        })
    })
    .await?;
    let limit = doors.limits.message_bytes;
    if prepared.message.size() > limit {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "message_too_large",
            format!("The message may have {limit} bytes at most."),
        ));
    }
    Ok(prepared)
}

/// Runs what takes long for `size` bytes off the threads that serve connections.
async fn off_thread<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if size < LARGE {
        return work();
    }
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "Something went wrong in the gateway.",
        ))
    })
}

/// Room for a request and the message that is made of it. What tells no length may have any.
fn room_for(doors: &Doors, headers: &HeaderMap, limit: usize) -> Result<Share, Problem> {
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok())
        .map_or(limit, |length: usize| length.min(limit));
    doors.sending.budget().try_take(length * 2).ok_or_else(|| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "overloaded",
            "The gateway has too many messages in hand. Nothing was sent; try again shortly.",
        )
    })
}

/// The caller's own name for the request, over the body to the byte.
fn idempotency_key(headers: &HeaderMap, body: &[u8]) -> Result<Option<IdempotencyKey>, Problem> {
    let mut named = headers.get_all("idempotency-key").iter();
    let Some(only) = named.next() else {
        return Ok(None);
    };
    let key = only.to_str().ok().and_then(read_key);
    match (key, named.next()) {
        (Some(key), None) => Ok(Some(IdempotencyKey::over(key, std::iter::once(body)))),
        _ => Err(Problem::fields(vec![FieldError {
            field: "Idempotency-Key",
            detail: "must be given once, with 1 to 255 printable ASCII characters".to_owned(),
        }])),
    }
}

fn not_sent(error: SendError) -> Problem {
    let text = format!("{error}.");
    match error {
        SendError::NotTaken => Problem::unavailable(),
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

/// An answer that was given before says so.
fn answer(answered: Answer, to: String) -> Result<Response, Problem> {
    let mut response = outcome_response(answered.outcome, to);
    if answered.replayed {
        let headers = match &mut response {
            Ok(response) => response.headers_mut(),
            Err(problem) => return Err(problem.clone().replayed()),
        };
        headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    response
}

fn outcome_response(outcome: Outcome, to: String) -> Result<Response, Problem> {
    let shown = |status, receipt: Receipt| SentResponse {
        status,
        from: receipt.from,
        to,
        plugin: receipt.plugin.as_str(),
        message_id: receipt.message_id,
        log_id: receipt.id.to_string(),
    };
    match outcome {
        Outcome::Sent(receipt) => Ok(Json(shown("sent", receipt)).into_response()),
        Outcome::Queued {
            receipt,
            failure,
            retry_count,
            next_retry_at,
        } => {
            let queued = QueuedResponse {
                message: shown("failed_temp", receipt),
                error: failure.to_string(),
                retry_count,
                next_retry_at: iso8601(next_retry_at),
            };
            Ok((StatusCode::ACCEPTED, Json(queued)).into_response())
        }
        Outcome::Rejected {
            receipt,
            failure,
            may_have_arrived: true,
        } => Err(Problem::new(
            StatusCode::BAD_GATEWAY,
            "outcome_unknown",
            failure.to_string(),
        )
        .with_log_id(receipt.id)),
        Outcome::Rejected {
            receipt, failure, ..
        } => Err(Problem::new(
            StatusCode::BAD_GATEWAY,
            "provider_rejected",
            failure.to_string(),
        )
        .with_log_id(receipt.id)),
    }
}

fn blocked(blocked: Blocked) -> Problem {
    Problem::new(
        StatusCode::PAYMENT_REQUIRED,
        "subscription_blocked",
        format!("{blocked}."),
    )
}

fn no_mailbox() -> Problem {
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "no_mailbox",
        "No connected mailbox of the app matches user_id and plugin.",
    )
}
