//! Gmail's API, as far as sending needs it: `messages.send`, its upload, `messages.get` of the headers, and
//! `settings.sendAs.list`. Like the real one, as observed, it assigns every message a new Message-ID, and replaces a
//! From address that the mailbox may not send as with the mailbox's own.

use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use mail_parser::MessageParser;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{MailApi, Wish, alias, fault, may_send, pending, recipients, without_headers};

/// The upload's own limit (`maxSize` in the discovery document), and some room for JSON bodies.
const LARGEST: usize = 36_700_160;

/// Base64url, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(super) fn router() -> Router<MailApi> {
    Router::new()
        .route("/gmail/v1/users/me/messages/send", post(send))
        .route("/upload/gmail/v1/users/me/messages/send", post(upload))
        .route("/gmail/v1/users/me/messages/{id}", get(show))
        .route("/gmail/v1/users/me/settings/sendAs", get(send_as))
        .layer(DefaultBodyLimit::max(LARGEST))
}

fn error(code: u16, reason: &str, message: &str) -> Response {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let errors = json!([{ "message": message, "domain": "global", "reason": reason }]);
    let body = json!({ "error": { "code": code, "message": message, "errors": errors } });
    (status, Json(body)).into_response()
}

fn unauthorized() -> Response {
    error(401, "authError", "Invalid Credentials")
}

async fn send(State(api): State<MailApi>, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let raw = request["raw"].as_str().unwrap_or_default();
    match BASE64.decode(raw) {
        Ok(mime) if !mime.is_empty() => take(&api, &headers, &mime).await,
        _ => error(
            400,
            "invalidArgument",
            "'raw' RFC822 payload message string or uploading message via /upload/* URL required",
        ),
    }
}

async fn upload(
    State(api): State<MailApi>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if query.as_deref() != Some("uploadType=media") {
        return error(400, "badRequest", "Missing uploadType");
    }
    take(&api, &headers, &body).await
}

async fn take(api: &MailApi, headers: &HeaderMap, mime: &[u8]) -> Response {
    let Some(mailbox) = api.mailbox(headers) else {
        return unauthorized();
    };
    let recipients = recipients(mime);
    match fault(api, &recipients).await {
        Some(Wish::Later) => {
            return error(
                429,
                "rateLimitExceeded",
                "Too many concurrent requests for user",
            );
        }
        Some(Wish::Tomorrow) => return error(403, "dailyLimitExceeded", "Daily Limit Exceeded"),
        Some(Wish::NoAddress) => return error(400, "invalidArgument", "Invalid To header"),
        Some(Wish::Forbidden) => {
            let text = "The domain administrators have disabled Gmail apps.";
            return error(403, "domainPolicy", text);
        }
        None if recipients.is_empty() => {
            return error(400, "invalidArgument", "Recipient address required");
        }
        None => {}
    }
    let own = format!(
        "Message-ID: <CA+{}@mail.sandbox.example>\r\n",
        Uuid::now_v7().simple()
    );
    let mut renamed = [own.into_bytes(), without_headers(mime, &["message-id"])].concat();
    if !may_send(&mailbox, mime) {
        let from = format!("From: {mailbox}\r\n");
        renamed = [from.into_bytes(), without_headers(&renamed, &["from"])].concat();
    }
    match api.take(&mailbox, &renamed).await {
        Ok(message) => {
            let id = &message.id;
            let body = json!({ "id": id, "threadId": id, "labelIds": ["SENT"] });
            (StatusCode::OK, Json(body)).into_response()
        }
        Err(failure) => {
            tracing::error!(error = %failure, "the sandbox can't store a message");
            error(503, "backendError", "Backend Error")
        }
    }
}

async fn send_as(State(api): State<MailApi>, headers: HeaderMap) -> Response {
    let Some(mailbox) = api.mailbox(&headers) else {
        return unauthorized();
    };
    let body = json!({ "sendAs": [
        { "sendAsEmail": mailbox, "displayName": "", "isPrimary": true, "isDefault": true },
        { "sendAsEmail": alias(&mailbox), "displayName": "", "treatAsAlias": true,
          "verificationStatus": "accepted" },
        { "sendAsEmail": pending(&mailbox), "displayName": "", "treatAsAlias": true,
          "verificationStatus": "pending" },
    ] });
    (StatusCode::OK, Json(body)).into_response()
}

async fn show(
    State(api): State<MailApi>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some(mailbox) = api.mailbox(&headers) else {
        return unauthorized();
    };
    let query = query.unwrap_or_default();
    let wanted: Vec<String> = url::form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| name == "metadataHeaders")
        .map(|(_, value)| value.to_ascii_lowercase())
        .collect();
    let is_its = api
        .inbox
        .find(&id)
        .is_some_and(|message| message.mailbox == mailbox);
    let raw = match api.inbox.raw(&id).await {
        Ok(Some(raw)) if is_its => raw,
        _ => return error(404, "notFound", "Requested entity was not found."),
    };
    let shown: Vec<Value> = (MessageParser::new().parse_headers(&raw).iter())
        .flat_map(|parsed| {
            parsed
                .headers_raw()
                .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
                .collect::<Vec<_>>()
        })
        .filter(|(name, _)| wanted.contains(&name.to_ascii_lowercase()))
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    let body = json!({
        "id": id, "threadId": id, "labelIds": ["SENT"],
        "payload": { "mimeType": "text/plain", "headers": shown },
    });
    (StatusCode::OK, Json(body)).into_response()
}
