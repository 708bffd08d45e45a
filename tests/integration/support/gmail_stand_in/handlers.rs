//! What the stand-in answers to each request.

use std::collections::HashMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::{Value, json};

use super::connection::broken;
use super::fault::{Fault, error};
use super::mailbox::Mailbox;
use super::{Account, SentMessage, Shared, lock};
use crate::support::stand_in::ADDRESS;

fn answer(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, Json(body)).into_response()
}

pub(super) fn header(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// The access token of a request, or the answer to a bad one.
fn admit(shared: &Shared, headers: &HeaderMap, asked: String) -> Result<String, Box<Response>> {
    let mut account = lock(shared);
    account.asked.push(asked);
    let authorization = header(headers, "authorization");
    match authorization.strip_prefix("Bearer ") {
        Some(token) if !account.refused_tokens.contains(token) => Ok(token.to_owned()),
        _ => {
            let body = error(401, "authError", "Invalid Credentials", "UNAUTHENTICATED");
            Err(Box::new(answer(401, &body)))
        }
    }
}

pub(super) async fn send(
    State(shared): State<Shared>,
    request: axum::extract::Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let token = match admit(&shared, &parts.headers, parts.uri.to_string()) {
        Ok(token) => token,
        Err(refused) => return *refused,
    };
    let fault = lock(&shared).faults.pop_front();
    if let Some(Fault::BreakEarly) = fault {
        return broken();
    }
    let Ok(content) = axum::body::to_bytes(body, usize::MAX).await else {
        return broken();
    };
    lock(&shared).hold(&parts, &content);
    let uploaded = parts.uri.path().starts_with("/upload/");
    let raw = if uploaded {
        assert_eq!(parts.uri.query(), Some("uploadType=media"));
        content.to_vec()
    } else {
        let json: Value = serde_json::from_slice(&content).expect("it is JSON");
        URL_SAFE
            .decode(json["raw"].as_str().expect("it has the message"))
            .expect("it is base64url")
    };
    let sent = SentMessage {
        raw,
        uploaded,
        content_type: header(&parts.headers, "content-type"),
        content_length: header(&parts.headers, "content-length")
            .parse()
            .expect("a length is told"),
        token,
    };
    assert_eq!(sent.content_length, content.len());
    match fault {
        Some(Fault::Answer(status, headers, body)) => {
            let mut response = answer(status, &body);
            for (name, value) in headers {
                let value = value.parse().expect("a header's value");
                response.headers_mut().insert(name, value);
            }
            response
        }
        Some(Fault::Break) => broken(),
        Some(Fault::Silence) => {
            tokio::time::sleep(Duration::from_hours(1)).await;
            broken()
        }
        Some(Fault::KeptButBreak) => {
            lock(&shared).keep(sent);
            broken()
        }
        Some(Fault::KeptBut(status, body)) => {
            lock(&shared).keep(sent);
            answer(status, &body)
        }
        Some(Fault::KeptLaterBut(status, body)) => {
            let mut shared = lock(&shared);
            shared.keep(sent);
            shared.mailbox.hide_newest_from_next_list();
            answer(status, &body)
        }
        Some(Fault::BreakEarly) | None => {
            let id = lock(&shared).keep(sent);
            answer(
                200,
                &json!({ "id": id, "threadId": id, "labelIds": ["SENT"] }),
            )
        }
    }
}

impl Account {
    /// What reading this target is answered, where it fails.
    fn fault_at(&self, asked: &str) -> Option<(u16, Value)> {
        let mut faults = self.faults_at.iter();
        let (_, status, body) = faults.find(|(end, ..)| asked.ends_with(end))?;
        Some((*status, body.clone()))
    }

    fn keep(&mut self, sent: SentMessage) -> String {
        let id = self.mailbox.keep_sent(&sent.raw);
        self.sent.push(sent);
        id
    }
}

/// Lets a request read, and reads with `look`.
fn read(
    shared: &Shared,
    headers: &HeaderMap,
    asked: String,
    look: impl FnOnce(&Mailbox) -> Option<Value>,
) -> Response {
    let fault = lock(shared).fault_at(&asked);
    if let Err(refused) = admit(shared, headers, asked) {
        return *refused;
    }
    if let Some((status, body)) = fault {
        return answer(status, &body);
    }
    let account = lock(shared);
    if let Some((status, body)) = &account.read_fault {
        return answer(*status, body);
    }
    look(&account.mailbox).map_or_else(
        || {
            let text = "Requested entity was not found.";
            answer(404, &error(404, "notFound", text, "NOT_FOUND"))
        },
        |found| answer(200, &found),
    )
}

type Parameters = Query<HashMap<String, String>>;

pub(super) async fn list(
    State(shared): State<Shared>,
    headers: HeaderMap,
    RawQuery(raw): RawQuery,
    Query(parameters): Parameters,
) -> Response {
    let asked = format!("messages?{}", raw.unwrap_or_default());
    read(&shared, &headers, asked, |mailbox| {
        Some(mailbox.list(&parameters))
    })
}

pub(super) async fn message(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Path(id): Path<String>,
    RawQuery(raw): RawQuery,
) -> Response {
    let raw = raw.unwrap_or_default();
    let names: Vec<String> = url::form_urlencoded::parse(raw.as_bytes())
        .filter(|(name, _)| name == "metadataHeaders")
        .map(|(_, value)| value.to_ascii_lowercase())
        .collect();
    if raw == "format=raw" {
        return read(&shared, &headers, format!("messages/{id}?raw"), |mailbox| {
            mailbox.raw(&id)
        });
    }
    assert!(raw.starts_with("format=metadata"), "{raw}");
    read(&shared, &headers, format!("messages/{id}"), |mailbox| {
        mailbox.metadata(&id, &names)
    })
}

pub(super) async fn history(
    State(shared): State<Shared>,
    headers: HeaderMap,
    RawQuery(raw): RawQuery,
    Query(parameters): Parameters,
) -> Response {
    let asked = format!("history?{}", raw.unwrap_or_default());
    read(&shared, &headers, asked, |mailbox| {
        mailbox.history(&parameters)
    })
}

pub(super) async fn profile(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    read(&shared, &headers, "profile".to_owned(), |mailbox| {
        Some(mailbox.profile(ADDRESS))
    })
}

/// The shape of the answer is the discovery document's `ListSendAsResponse`; `fields` is what is told of it.
pub(super) async fn send_as(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Query(parameters): Parameters,
) -> Response {
    let wanted = parameters.get("fields").cloned();
    let wanted = wanted.expect("only what is needed is asked for");
    let wanted = wanted.strip_prefix("sendAs(").expect("it is of the list");
    let wanted: Vec<&str> = wanted.trim_end_matches(')').split(',').collect();
    let token = header(&headers, "authorization");
    let token = token.strip_prefix("Bearer ").unwrap_or_default();
    let mut account = lock(&shared);
    account.send_as_reads += 1;
    if token.is_empty() || account.refused_tokens.contains(token) {
        let body = error(401, "authError", "Invalid Credentials", "UNAUTHENTICATED");
        return answer(401, &body);
    }
    if let Some((status, body)) = &account.send_as_fault {
        let status = StatusCode::from_u16(*status).expect("a status");
        return (status, body.clone()).into_response();
    }
    let own = json!({
        "sendAsEmail": ADDRESS, "displayName": "Ada", "signature": "", "isPrimary": true, "isDefault": true,
    });
    let mut entries = vec![own];
    entries.extend(account.send_as.clone());
    for entry in &mut entries {
        let fields = entry.as_object_mut().expect("an entry");
        fields.retain(|name, _| wanted.contains(&name.as_str()));
    }
    answer(200, &json!({ "sendAs": entries }))
}
