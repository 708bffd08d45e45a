//! Tokens, and whose account they open.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Form, Query, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::super::{Call, Shared};
use super::{error, respond, say};

pub async fn token(
    State(shared): State<Arc<Shared>>,
    Form(form): Form<HashMap<String, String>>,
) -> Response {
    let fault = {
        let mut mailbox = shared.lock();
        mailbox.refreshes += usize::from(form.contains_key("refresh_token"));
        let faults = mailbox.faults.get_mut(&Call::Token);
        faults.and_then(std::collections::VecDeque::pop_front)
    };
    if let Some(fault) = fault {
        return say(fault).await;
    }
    let mut mailbox = shared.lock();
    mailbox
        .scopes_asked
        .push(form.get("scope").cloned().unwrap_or_default());
    // Reported of refreshes without it (AADSTS900144); optional by the document.
    if form.get("scope").is_none_or(String::is_empty) {
        return respond((
            400,
            json!({
                "error": "invalid_request",
                "error_description": "AADSTS900144: The request body must contain the following parameter: 'scope'.",
                "error_codes": [900_144],
            }),
        ));
    }
    mailbox.tokens += 1;
    let number = mailbox.tokens;
    respond((
        200,
        json!({
            "token_type": "Bearer",
            "scope": mailbox.scope,
            "expires_in": 3_600,
            "ext_expires_in": 3_600,
            "access_token": format!("access-{number}"),
            "refresh_token": format!("refresh-{number}"),
        }),
    ))
}

/// What `/me` tells unasked (user-get, "Optional query parameters").
const USUAL: [&str; 11] = [
    "businessPhones",
    "displayName",
    "givenName",
    "id",
    "jobTitle",
    "mail",
    "mobilePhone",
    "officeLocation",
    "preferredLanguage",
    "surname",
    "userPrincipalName",
];

pub async fn me(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let fault = {
        let mut mailbox = shared.lock();
        mailbox.calls.push(Call::Account);
        let faults = mailbox.faults.get_mut(&Call::Account);
        faults.and_then(std::collections::VecDeque::pop_front)
    };
    if let Some(fault) = fault {
        return say(fault).await;
    }
    let account = {
        let mailbox = shared.lock();
        if mailbox.no_directory && query.contains_key("$select") {
            return respond(error(400, "RequestBroker--ParseUri"));
        }
        mailbox.account.clone()
    };
    let selected: Vec<&str> = match query.get("$select") {
        Some(names) => names.split(',').collect(),
        None => USUAL.to_vec(),
    };
    let told = selected.into_iter().map(|name| {
        let value = account.get(name).cloned().unwrap_or_default();
        (name.to_owned(), value)
    });
    respond((200, Value::Object(told.collect())))
}
