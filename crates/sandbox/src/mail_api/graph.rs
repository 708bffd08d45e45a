//! Microsoft Graph, as far as sending needs it: creating a draft from a whole message, sending it, and its state;
//! `sendMail`; the account. Like the real front end, it refuses a POST without a length. It doesn't support messages
//! above 3 MB, which are uploaded in pieces.

use std::collections::HashMap;
use std::sync::PoisonError;

use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mail_parser::MessageParser;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{DRAFTS, Draft, MailApi, Wish, alias, fault, may_send, recipients};

/// Graph's limit for one request.
const REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// The properties that `/me` returns by default.
const USUAL: &str = "displayName,mail,userPrincipalName,id";

pub(super) fn router() -> Router<MailApi> {
    Router::new()
        .route("/graph/v1.0/me", get(me))
        .route("/graph/v1.0/me/sendMail", post(send_mail))
        .route("/graph/v1.0/me/messages", post(create))
        .route("/graph/v1.0/me/messages/{id}", get(show).delete(remove))
        .route("/graph/v1.0/me/messages/{id}/send", post(send))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES))
}

fn error(status: u16, code: &str, message: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = json!({ "error": { "code": code, "message": message, "innerError": {} } });
    (status, Json(body)).into_response()
}

fn not_found() -> Response {
    let text = "The specified object was not found in the store.";
    error(404, "ErrorItemNotFound", text)
}

/// The mailbox of a request, or the response to an invalid one.
fn admit(api: &MailApi, headers: &HeaderMap, is_post: bool) -> Result<String, Box<Response>> {
    if is_post && !headers.contains_key(CONTENT_LENGTH) {
        let text = "HTTP Error 411. The request must be chunked or have a content length.";
        return Err(Box::new(
            (StatusCode::LENGTH_REQUIRED, text).into_response(),
        ));
    }
    api.mailbox(headers).ok_or_else(|| {
        let text = "Access token has expired or is not yet valid.";
        Box::new(error(401, "InvalidAuthenticationToken", text))
    })
}

/// Decodes a MIME message in base64.
fn read(headers: &HeaderMap, body: &[u8]) -> Result<Vec<u8>, Box<Response>> {
    if headers
        .get(CONTENT_TYPE)
        .is_none_or(|kind| kind != "text/plain")
    {
        let text = "The sandbox takes messages whole, as MIME in base64 and text/plain.";
        return Err(Box::new(error(400, "ErrorInvalidRequest", text)));
    }
    STANDARD.decode(body).map_err(|_| {
        let text = "Invalid base64 string for MIME content.";
        Box::new(error(400, "ErrorMimeContentInvalidBase64String", text))
    })
}

async fn refusal(api: &MailApi, mailbox: &str, mime: &[u8]) -> Option<Response> {
    if !may_send(mailbox, mime) {
        let text = "The user account which was used to submit this request does not have the right to send mail on behalf of the specified sending account.";
        return Some(error(403, "ErrorSendAsDenied", text));
    }
    let recipients = recipients(mime);
    let (status, code, text) = match fault(api, &recipients).await {
        Some(Wish::Later) => (
            429,
            "ApplicationThrottled",
            "Application is over its MailboxConcurrency limit.",
        ),
        Some(Wish::Tomorrow) => (
            429,
            "ErrorExceededMessageLimit",
            "The limit of messages is exceeded.",
        ),
        Some(Wish::NoAddress) => (
            400,
            "ErrorInvalidRecipients",
            "At least one recipient isn't valid.",
        ),
        Some(Wish::Forbidden) => (
            403,
            "ErrorAccessDenied",
            "Access is denied. Check credentials and try again.",
        ),
        None if recipients.is_empty() => (
            400,
            "ErrorInvalidRecipients",
            "At least one recipient is needed.",
        ),
        None => return None,
    };
    Some(error(status, code, text))
}

async fn keep(api: &MailApi, mailbox: &str, mime: &[u8]) -> Response {
    match api.take(mailbox, mime).await {
        Ok(_) => StatusCode::ACCEPTED.into_response(),
        Err(failure) => {
            tracing::error!(error = %failure, "the sandbox can't store a message");
            error(503, "ErrorServerBusy", "The server is busy.")
        }
    }
}

async fn me(
    State(api): State<MailApi>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let mailbox = match admit(&api, &headers, false) {
        Ok(mailbox) => mailbox,
        Err(refused) => return *refused,
    };
    let account = json!({
        "displayName": mailbox, "mail": mailbox, "userPrincipalName": mailbox, "id": mailbox,
        "proxyAddresses": [
            format!("SMTP:{mailbox}"), format!("smtp:{}", alias(&mailbox)), "X500:/o=Sandbox/cn=ada",
        ],
    });
    let selected = query.get("$select").map_or(USUAL, String::as_str);
    let told: serde_json::Map<String, Value> = selected
        .split(',')
        .map(|name| (name.to_owned(), account[name].clone()))
        .collect();
    (StatusCode::OK, Json(Value::Object(told))).into_response()
}

async fn send_mail(State(api): State<MailApi>, headers: HeaderMap, body: Bytes) -> Response {
    let taken =
        admit(&api, &headers, true).and_then(|mailbox| Ok((mailbox, read(&headers, &body)?)));
    match taken {
        Ok((mailbox, mime)) => match refusal(&api, &mailbox, &mime).await {
            Some(refused) => refused,
            None => keep(&api, &mailbox, &mime).await,
        },
        Err(refused) => *refused,
    }
}

async fn create(State(api): State<MailApi>, headers: HeaderMap, body: Bytes) -> Response {
    let taken =
        admit(&api, &headers, true).and_then(|mailbox| Ok((mailbox, read(&headers, &body)?)));
    let (mailbox, mime) = match taken {
        Ok(taken) => taken,
        Err(refused) => return *refused,
    };
    let parsed = MessageParser::new().parse_headers(&mime);
    let message_id = parsed
        .as_ref()
        .and_then(|parsed| parsed.message_id())
        .map(|id| format!("<{id}>"));
    let id = Uuid::now_v7().simple().to_string();
    {
        let mut drafts = api.drafts.lock().unwrap_or_else(PoisonError::into_inner);
        if drafts.len() >= DRAFTS {
            return error(
                507,
                "ErrorQuotaExceeded",
                "The mailbox has too many drafts.",
            );
        }
        let mime = Bytes::from(mime);
        drafts.insert(id.clone(), Draft { mailbox, mime });
    }
    let body =
        json!({ "id": id, "internetMessageId": message_id, "isDraft": true, "isRead": true });
    (StatusCode::CREATED, Json(body)).into_response()
}

/// One of the mailbox's own drafts, optionally removing it.
fn draft(api: &MailApi, mailbox: &str, id: &str, take: bool) -> Option<Draft> {
    let mut drafts = api.drafts.lock().unwrap_or_else(PoisonError::into_inner);
    let found = drafts
        .get(id)
        .filter(|draft| draft.mailbox == mailbox)?
        .clone();
    if take {
        drafts.remove(id);
    }
    Some(found)
}

async fn send(State(api): State<MailApi>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let mailbox = match admit(&api, &headers, true) {
        Ok(mailbox) => mailbox,
        Err(refused) => return *refused,
    };
    let Some(found) = draft(&api, &mailbox, &id, false) else {
        return not_found();
    };
    if let Some(refused) = refusal(&api, &mailbox, &found.mime).await {
        return refused;
    }
    match draft(&api, &mailbox, &id, true) {
        Some(found) => keep(&api, &mailbox, &found.mime).await,
        None => not_found(),
    }
}

async fn show(State(api): State<MailApi>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    match admit(&api, &headers, false) {
        Ok(mailbox) if draft(&api, &mailbox, &id, false).is_some() => {
            (StatusCode::OK, Json(json!({ "id": id, "isDraft": true }))).into_response()
        }
        Ok(_) => not_found(),
        Err(refused) => *refused,
    }
}

async fn remove(
    State(api): State<MailApi>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    match admit(&api, &headers, false) {
        Ok(mailbox) if draft(&api, &mailbox, &id, true).is_some() => {
            StatusCode::NO_CONTENT.into_response()
        }
        Ok(_) => not_found(),
        Err(refused) => *refused,
    }
}
