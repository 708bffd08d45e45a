//! `POST /send`.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::SecondsFormat;
use serde::{Deserialize, Serialize};

use super::Doors;
use super::field::Field;
use super::problem::{FieldError, Problem};
use super::request::{LARGE, json_body, parse};
use crate::accounts::{AuthenticateError, SendingApp};
use crate::sending::compose::{ComposeError, Fields, compose};
use crate::sending::prepared::Prepared;
use crate::sending::{Blocked, Outcome, SendError, admit};
use crate::types::email_address::EmailAddress;
use crate::types::plugin::Plugin;

/// Longest subject in characters: a header line's own limit (RFC 5322 §2.1.1).
const SUBJECT_LENGTH: usize = 998;

/// Longest `user_id` in characters.
const USER_ID_LENGTH: usize = 255;

/// JSON may write a message's byte in several of its own, and base64 takes four for three.
const JSON_OVERHEAD: usize = 2;

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct SendRequest {
    pk: Field<String>,
    to: Field<String>,
    subject: Field<String>,
    body: Field<String>,
    html: Field<String>,
    user_id: Field<String>,
    plugin: Field<String>,
}

/// The request, once every field is known to be right.
struct ValidRequest {
    fields: Fields,
    user_id: Option<String>,
    plugin: Option<Plugin>,
}

#[derive(Serialize)]
struct SendResponse {
    status: &'static str,
    from: String,
    to: String,
    plugin: &'static str,
    message_id: Option<String>,
    log_id: String,
    #[serde(flatten)]
    queued: Option<QueuedResponse>,
}

#[derive(Serialize)]
struct QueuedResponse {
    error: String,
    retry_count: i32,
    next_retry_at: String,
}

pub(super) async fn send(
    State(doors): State<Doors>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let app = authenticate(&doors, &headers).await?;
    let limit = doors.limits.message_bytes * JSON_OVERHEAD;
    let body = json_body(&headers, body, limit).await?;
    let request: SendRequest = off_thread(body.len(), move || parse(&body)).await?;
    let request = validate(request, &app)?;
    admit(app.subscription_status).map_err(blocked)?;
    let mailbox = doors
        .mailboxes
        .for_user(app.id, request.user_id.as_deref(), request.plugin)
        .await
        .map_err(|error| database(&error))?
        .ok_or_else(no_mailbox)?;
    let from = EmailAddress::parse(&mailbox.email).map_err(|_| no_mailbox())?;
    let to = request.fields.to.as_str().to_owned();
    let prepared = prepare(&doors, request.fields, from).await?;
    let outcome = doors
        .sending
        .send(app.id, mailbox, prepared)
        .await
        .map_err(|error| match error {
            SendError::NotTaken => Problem::unavailable(),
            SendError::Unknown => Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "outcome_unknown",
                format!("{error}."),
            ),
        })?;
    answer(outcome, to)
}

/// The app of the key in `X-Send-Key`, or in `X-Api-Key` as older clients have it.
async fn authenticate(doors: &Doors, headers: &HeaderMap) -> Result<SendingApp, Problem> {
    let wrong = |detail| Problem::new(StatusCode::UNAUTHORIZED, "invalid_send_key", detail);
    let key = headers
        .get("x-send-key")
        .or_else(|| headers.get("x-api-key"))
        .ok_or_else(|| wrong("Put the app's send key into the header X-Send-Key."))?;
    let key = key
        .to_str()
        .ok()
        .and_then(|key| doors.accounts.present(key));
    let unknown = || wrong("The send key is not in use.");
    match doors
        .accounts
        .app_by_send_key(&key.ok_or_else(unknown)?)
        .await
    {
        Ok(app) => Ok(app),
        Err(AuthenticateError::Wrong) => Err(unknown()),
        Err(AuthenticateError::Database(error)) => Err(database(&error)),
    }
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

fn answer(outcome: Outcome, to: String) -> Result<Response, Problem> {
    let (status, word, receipt, queued) = match outcome {
        Outcome::Sent(receipt) => (StatusCode::OK, "sent", receipt, None),
        Outcome::Queued {
            receipt,
            failure,
            retry_count,
            next_retry_at,
        } => {
            let queued = QueuedResponse {
                error: failure.to_string(),
                retry_count,
                next_retry_at: next_retry_at.to_rfc3339_opts(SecondsFormat::Millis, true),
            };
            (StatusCode::ACCEPTED, "failed_temp", receipt, Some(queued))
        }
        Outcome::Rejected { receipt, failure } => {
            return Err(Problem::new(
                StatusCode::BAD_GATEWAY,
                "provider_rejected",
                failure.to_string(),
            )
            .with_log_id(receipt.id));
        }
    };
    let response = SendResponse {
        status: word,
        from: receipt.from,
        to,
        plugin: receipt.plugin.as_str(),
        message_id: receipt.message_id,
        log_id: receipt.id.to_string(),
        queued,
    };
    Ok((status, Json(response)).into_response())
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

fn database(error: &sqlx::Error) -> Problem {
    tracing::error!(%error, "the database can't be asked");
    Problem::unavailable()
}
