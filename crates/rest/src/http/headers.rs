//! The response headers in the `OpenAPI` description.

use serde_json::{Value, json};
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Header, RefOr};

use crate::openapi::security::roles;

/// Credentials with a rate limit.
const COUNTED: [&str; 3] = ["api_secret", "send_key", "send_key_as_api_key"];

/// Adds the headers of every response of an operation.
pub(crate) fn add_headers(operation: &mut Operation) {
    let is_counted = (COUNTED.iter()).any(|scheme| roles(operation, scheme).is_some());
    let is_idempotent = (operation.parameters.iter().flatten()).any(
        |parameter| matches!(parameter, RefOr::T(parameter) if parameter.name == "Idempotency-Key"),
    );
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        let status = status.as_str();
        let is_in_flight = ["`idempotency_key_in_flight`", "`reactivation_in_flight`"]
            .iter()
            .any(|code| response.description.contains(code));
        let may_be_repeated = matches!(status, "429" | "503") || is_in_flight;
        let tells_limit = is_counted && (status.starts_with('2') || status == "429");
        let headers = [
            Some(request_id()),
            (status == "401").then(www_authenticate),
            may_be_repeated.then(retry_after),
            tells_limit.then(rate_limit),
            tells_limit.then(rate_limit_policy),
            (is_idempotent && matches!(status, "200" | "202" | "502")).then(idempotent_replayed),
        ];
        for (name, header) in headers.into_iter().flatten() {
            response.headers.insert(name.to_owned(), RefOr::T(header));
        }
    }
}

type Named = (&'static str, Header);

fn request_id() -> Named {
    let description = "The request's ID, as in the gateway's log.";
    let example = json!("0193f8a2-6c1e-7d54-9b1a-3f2c5d7e9a10");
    text("X-Request-Id", description, example)
}

fn www_authenticate() -> Named {
    let description = "Names the header for the key.";
    let example = json!("ApiKey realm=\"mailgate\", header=\"X-Api-Secret\"");
    text("WWW-Authenticate", description, example)
}

fn retry_after() -> Named {
    let description = "Seconds to wait before trying again.";
    ("Retry-After", header(Type::Integer, description, json!(5)))
}

/// draft-ietf-httpapi-ratelimit-headers.
fn rate_limit() -> Named {
    let description = "How many requests with this key are left (`r`), and in how many seconds all of them are \
        available again (`t`).";
    text("RateLimit", description, json!("\"key\";r=99;t=1"))
}

fn rate_limit_policy() -> Named {
    let description = "How many requests (`q`) a key may make in how many seconds (`w`).";
    text("RateLimit-Policy", description, json!("\"key\";q=100;w=2"))
}

fn idempotent_replayed() -> Named {
    let description = "`true` when this is the stored answer to an earlier request with the same `Idempotency-Key`: \
        no second message was sent. Missing otherwise.";
    text("Idempotent-Replayed", description, json!("true"))
}

fn text(name: &'static str, description: &str, example: Value) -> Named {
    (name, header(Type::String, description, example))
}

fn header(kind: Type, description: &str, example: Value) -> Header {
    HeaderBuilder::new()
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(kind)
                .examples([example])
                .build(),
        ))
        .description(Some(description))
        .build()
}
