//! What the stand-in answers to each call.

mod account;
mod received;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mail_parser::MessageParser;
use serde_json::{Value, json};

pub(super) use account::{me, token};
pub(super) use received::{delta, junk_delta, whole};

use super::{Call, Fault, File, Kept, Mailbox, Session, Shared, error_body, sent_id};

/// Graph's limit for one request.
const REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// Every range but the last is a multiple of this.
const RANGE_UNIT: usize = 320 * 1024;

type Answer = (u16, Value);

fn respond((status, body): Answer) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    if body.is_null() {
        status.into_response()
    } else {
        (status, Json(body)).into_response()
    }
}

fn error(status: u16, code: &str) -> Answer {
    let body = serde_json::from_str(&error_body(code)).expect("it is JSON");
    (status, body)
}

/// Does `work` with the mailbox, unless the caller breaks a rule or a test wants another answer.
async fn handle(
    shared: &Shared,
    call: Call,
    headers: &HeaderMap,
    size: usize,
    work: impl FnOnce(&mut Mailbox) -> Answer,
) -> Response {
    let fault = {
        let mut mailbox = shared.lock();
        mailbox.calls.push(call);
        mailbox
            .faults
            .get_mut(&call)
            .and_then(std::collections::VecDeque::pop_front)
    };
    let is_permitted = call == Call::Upload || {
        let token = headers
            .get("authorization")
            .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let mailbox = shared.lock();
        token.is_some_and(|token| !mailbox.refused.contains(token))
    };
    if !is_permitted {
        return respond(error(401, "InvalidAuthenticationToken"));
    }
    if let Some(reason) = against_the_document(call, headers) {
        let mut mailbox = shared.lock();
        mailbox.violations.push(format!("{call:?}: {reason}"));
        // The words of the front end, which is no part of Graph itself.
        return (
            StatusCode::LENGTH_REQUIRED,
            "<h2>Length Required</h2><p>HTTP Error 411. The request must be chunked or have a content length.</p>",
        )
            .into_response();
    }
    if size > REQUEST_BYTES {
        let mut mailbox = shared.lock();
        mailbox.violations.push(format!("{call:?}: {size} bytes"));
        return respond(error(413, "RequestEntityTooLarge"));
    }
    match fault {
        None => respond(work(&mut shared.lock())),
        Some(fault) => {
            if fault.done {
                work(&mut shared.lock());
            }
            say(fault).await
        }
    }
}

/// What the documents of the calls want in a request's headers and isn't there.
fn against_the_document(call: Call, headers: &HeaderMap) -> Option<&'static str> {
    let with_body = !matches!(
        call,
        Call::SentItems | Call::Look | Call::Delete | Call::Delta | Call::JunkDelta | Call::Whole
    );
    // message-send: "Content-Length | Integer. Set to 0. Required."
    if with_body && !headers.contains_key("content-length") {
        return Some("no Content-Length");
    }
    // outlook-immutable-id: with every request, or the ids in its answer are of the other kind.
    let prefers_immutable_ids = headers
        .get_all("prefer")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|preference| preference.trim() == "IdType=\"ImmutableId\"");
    if call != Call::Upload && !prefers_immutable_ids {
        return Some("ids that change");
    }
    None
}

async fn say(fault: Fault) -> Response {
    if fault.hangs {
        std::future::pending::<()>().await;
    }
    let mut response = Response::builder().status(fault.status);
    if let Some(value) = fault.retry_after {
        response = response.header("retry-after", value);
    }
    response.body(fault.body.into()).expect("a response")
}

/// A message from its MIME form, as it comes in base64.
fn read_mime(body: &[u8]) -> Option<Kept> {
    let mime = STANDARD.decode(body).ok()?;
    let parsed = MessageParser::new().parse_headers(&mime)?;
    let message_id = parsed.message_id().map(|id| format!("<{id}>"));
    Some(Kept {
        message_id: message_id.unwrap_or_else(|| "<made@graph.example>".to_owned()),
        mime,
        ..Kept::default()
    })
}

/// The names of the headers that a draft's fields give it.
fn own_headers(fields: &Value) -> impl Iterator<Item = &str> {
    let headers = fields["internetMessageHeaders"].as_array();
    (headers.into_iter().flatten()).filter_map(|header| header["name"].as_str())
}

fn is_mime(headers: &HeaderMap) -> bool {
    headers
        .get("content-type")
        .is_some_and(|kind| kind == "text/plain")
}

pub(super) async fn send_mail(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    handle(
        &shared,
        Call::SendMail,
        &headers,
        body.len(),
        |mailbox| match read_mime(&body).filter(|_| is_mime(&headers)) {
            Some(kept) => {
                mailbox.sent.push(kept);
                (202, Value::Null)
            }
            None => error(400, "ErrorMimeContentInvalidBase64String"),
        },
    )
    .await
}

pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    handle(&shared, Call::Create, &headers, body.len(), |mailbox| {
        let kept = if is_mime(&headers) {
            read_mime(&body)
        } else {
            let fields: Option<Value> = serde_json::from_slice(&body).ok();
            if let Some(fields) = &fields
                && own_headers(fields).any(|name| !name.to_lowercase().starts_with("x-"))
            {
                // "The internet message header name … should start with 'x-' or 'X-'."
                return error(400, "InvalidInternetMessageHeader");
            }
            fields.map(|fields| Kept {
                message_id: fields["internetMessageId"]
                    .as_str()
                    .unwrap_or("<made@graph.example>")
                    .to_owned(),
                fields,
                ..Kept::default()
            })
        };
        let Some(mut kept) = kept else {
            return error(400, "ErrorMimeContentInvalidBase64String");
        };
        if let Some(rewritten) = &mailbox.rewritten {
            kept.message_id.clone_from(rewritten);
        }
        mailbox.numbers += 1;
        // Real ones end so, too.
        let id = format!("AAMkAGI1/AAA+{}==", mailbox.numbers);
        let answer = json!({
            "@odata.context": "https://graph.microsoft.com/v1.0/$metadata#users('48d31887')/messages/$entity",
            "@odata.etag": "W/\"CQAAABYAAADHcgC8Hl9tRZ/hc1wEUs1TAAAwR4Hg\"",
            "id": id,
            "internetMessageId": kept.message_id,
            "isDraft": true,
            "isRead": true,
        });
        mailbox.drafts.insert(id, kept);
        (201, answer)
    })
    .await
}

pub(super) async fn send(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    handle(
        &shared,
        Call::Send,
        &headers,
        body.len(),
        |mailbox| match mailbox.drafts.remove(&id) {
            Some(kept) => {
                mailbox.sent.push(kept);
                mailbox.sent_ids.insert(id);
                (202, Value::Null)
            }
            None => error(404, "ErrorItemNotFound"),
        },
    )
    .await
}

pub(super) async fn look(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    handle(&shared, Call::Look, &headers, 0, |mailbox| {
        let received = mailbox
            .inbox
            .iter()
            .find(|entry| entry["id"] == id.as_str());
        if let Some(received) = received {
            let mut whole = received.clone();
            let hidden = whole.as_object_mut().expect("an object").remove("hidden");
            if let Some(headers) = hidden {
                whole["internetMessageHeaders"] = headers;
            }
            return (200, whole);
        }
        if mailbox.drafts.contains_key(&id) {
            return (200, json!({ "id": id, "isDraft": true }));
        }
        if mailbox.sent_ids.contains(&id) && mailbox.keeps_ids {
            return (200, json!({ "id": id, "isDraft": false }));
        }
        error(404, "ErrorItemNotFound")
    })
    .await
}

pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    handle(
        &shared,
        Call::Delete,
        &headers,
        0,
        |mailbox| match mailbox.drafts.remove(&id) {
            Some(_) => (204, Value::Null),
            None => error(404, "ErrorItemNotFound"),
        },
    )
    .await
}

pub(super) async fn attach(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    handle(&shared, Call::Attach, &headers, body.len(), |mailbox| {
        let mut fields: Value = serde_json::from_slice(&body).unwrap_or_default();
        if fields["@odata.type"] != "#microsoft.graph.fileAttachment" {
            return error(400, "ErrorInvalidRequest");
        }
        let bytes = fields
            .as_object_mut()
            .and_then(|fields| fields.remove("contentBytes"));
        let bytes = bytes.and_then(|bytes| STANDARD.decode(bytes.as_str()?).ok());
        match (bytes, mailbox.drafts.get_mut(&id)) {
            (Some(content), Some(draft)) => {
                draft.files.push(File {
                    fields,
                    content,
                    pieces: 0,
                });
                (201, json!({ "id": "AAMkAGI1AAAt=", "isInline": false }))
            }
            (None, _) => error(400, "ErrorInvalidRequest"),
            (_, None) => error(404, "ErrorItemNotFound"),
        }
    })
    .await
}

pub(super) async fn create_session(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let base = shared.base.clone();
    handle(&shared, Call::Session, &headers, body.len(), |mailbox| {
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let fields = body["AttachmentItem"].clone();
        let size = fields["size"].as_u64().and_then(|size| usize::try_from(size).ok());
        let (Some(size), "file") = (size, fields["attachmentType"].as_str().unwrap_or_default())
        else {
            return error(400, "ErrorInvalidRequest");
        };
        if !mailbox.drafts.contains_key(&id) {
            return error(404, "ErrorItemNotFound");
        }
        mailbox.numbers += 1;
        let session = format!("session-{}", mailbox.numbers);
        let address = mailbox
            .upload_url
            .clone()
            .unwrap_or_else(|| format!("{base}/upload/{session}"));
        let file = File { fields, content: Vec::new(), pieces: 0 };
        let draft = id.clone();
        mailbox.sessions.insert(session, Session { draft, file, size });
        (
            201,
            json!({
                "@odata.context": "https://graph.microsoft.com/v1.0/$metadata#microsoft.graph.uploadSession",
                "uploadUrl": address,
                "expirationDateTime": "2026-01-02T03:04:05.0Z",
                "nextExpectedRanges": ["0-"],
            }),
        )
    })
    .await
}

pub(super) async fn upload(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    handle(&shared, Call::Upload, &headers, body.len(), |mailbox| {
        if headers.contains_key("authorization") {
            let text = "an upload with a token".to_owned();
            mailbox.violations.push(text);
        }
        let Some(session) = mailbox.sessions.get_mut(&name) else {
            return error(404, "ErrorItemNotFound");
        };
        let (start, size) = (session.file.content.len(), session.size);
        let end = start + body.len();
        let expected = format!("bytes {start}-{}/{size}", end - 1);
        let is_whole = end == size;
        let fits = body.len() < 4_000_000 && (is_whole || body.len().is_multiple_of(RANGE_UNIT));
        if headers
            .get("content-range")
            .is_none_or(|range| *range != *expected)
            || !fits
        {
            mailbox.violations.push(format!("not {expected}"));
            return error(416, "ErrorInvalidRange");
        }
        session.file.content.extend_from_slice(&body);
        session.file.pieces += 1;
        if !is_whole {
            return (200, json!({ "nextExpectedRanges": [format!("{end}-")] }));
        }
        let session = mailbox.sessions.remove(&name).expect("it is there");
        match mailbox.drafts.get_mut(&session.draft) {
            Some(draft) => {
                draft.files.push(session.file);
                (201, Value::Null)
            }
            None => error(404, "ErrorItemNotFound"),
        }
    })
    .await
}

pub(super) async fn sent_items(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    handle(&shared, Call::SentItems, &headers, 0, |mailbox| {
        let wanted = query
            .get("$filter")
            .and_then(|filter| {
                filter
                    .strip_prefix("internetMessageId eq '")?
                    .strip_suffix('\'')
            })
            .map(|id| id.replace("''", "'"));
        let Some(wanted) = wanted else {
            return error(400, "ErrorInvalidUrlQueryFilter");
        };
        let found: Vec<Value> = mailbox
            .sent
            .iter()
            .enumerate()
            .filter(|(_, kept)| kept.message_id == wanted)
            .map(|(number, _)| json!({ "@odata.etag": "W/\"CQ\"", "id": sent_id(number) }))
            .collect();
        (200, json!({ "value": found }))
    })
    .await
}
