//! What was received: the changes of inbox and junk folder, and messages in MIME.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::super::{Call, Shared, sent_number};
use super::{error, handle};

/// A message that was received, or sent, in MIME.
pub async fn whole(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = {
        let mailbox = shared.lock();
        let sent = || Some(mailbox.sent.get(sent_number(&id)?)?.in_mime());
        mailbox.whole.get(&id).cloned().or_else(sent)
    };
    let answered = handle(&shared, Call::Whole, &headers, 0, |_| match &found {
        Some(_) => (200, Value::Null),
        None => error(404, "ErrorItemNotFound"),
    });
    let answered = answered.await;
    match found {
        Some(mime) if answered.status() == 200 => {
            ([("content-type", "text/plain")], mime).into_response()
        }
        _ => answered,
    }
}

pub async fn delta(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    changes(&shared, Call::Delta, &query, &headers).await
}

pub async fn junk_delta(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    changes(&shared, Call::JunkDelta, &query, &headers).await
}

async fn changes(
    shared: &Arc<Shared>,
    call: Call,
    query: &HashMap<String, String>,
    headers: &HeaderMap,
) -> Response {
    let folder = if call == Call::Delta {
        "inbox"
    } else {
        "junkemail"
    };
    let base = format!(
        "{}/v1.0/me/mailFolders/{folder}/messages/delta",
        shared.base
    );
    handle(shared, call, headers, 0, |mailbox| {
        let page: usize = headers
            .get("prefer")
            .and_then(|value| {
                let (first, _) = value.to_str().ok()?.split_once(',')?;
                first.strip_prefix("odata.maxpagesize=")?.parse().ok()
            })
            .unwrap_or(10);
        let place = query.get("$skiptoken").or(query.get("$deltatoken"));
        let since = query
            .get("$filter")
            .and_then(|filter| filter.strip_prefix("receivedDateTime ge "));
        let (start, since) = match (place, since) {
            (Some(place), _) => {
                let (start, since) = place.split_once('|').expect("a place of ours");
                (start.parse().expect("a number"), since.to_owned())
            }
            (None, Some(since)) => (0, since.to_owned()),
            (None, None) => return error(400, "ErrorInvalidUrlQueryFilter"),
        };
        let new = |entry: &&Value| {
            entry["receivedDateTime"]
                .as_str()
                .is_none_or(|at| at >= since.as_str())
        };
        let kept = if call == Call::Delta {
            &mailbox.inbox
        } else {
            &mailbox.junk
        };
        let end = kept.len().min(start + page);
        let entries: Vec<Value> = kept[start..end]
            .iter()
            .filter(new)
            .cloned()
            .map(|mut entry| {
                entry.as_object_mut().expect("an object").remove("hidden");
                entry
            })
            .collect();
        let (link, token) = if end < kept.len() {
            ("@odata.nextLink", "$skiptoken")
        } else {
            ("@odata.deltaLink", "$deltatoken")
        };
        let mut answer = json!({
            "@odata.context": "https://graph.microsoft.com/v1.0/$metadata#Collection(message)",
            "value": entries,
        });
        answer[link] = format!("{base}?{token}={end}%7C{since}").into();
        (200, answer)
    })
    .await
}
