//! The interface's description: `OpenAPI` 3.1, made from the handlers' types.

use axum::http::StatusCode;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Header, OpenApi as Description, Ref, RefOr};
use utoipa::{Modify, OpenApi};

/// What stands over the operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Mailgate",
        description = "An email gateway that sends through the end users' own connected OAuth mailboxes. \
            Errors are `application/problem+json` (RFC 9457) with a `code` that stays; every response \
            has an `X-Request-Id`, and `Cache-Control: no-store` unless it is the same for everybody. Either key may also \
            come as `Authorization: Bearer …`. A path that \
            isn't there is 404 `not_found`, a method that a path doesn't take 405 `method_not_allowed`, a request \
            without exactly one Host 400 `invalid_host`. Before a key is checked, any path may answer 429 \
            `too_many_connections` and 503 `overloaded`."
    ),
    tags(
        (name = "Send", description = "Sending mail, with the app's send key"),
        (name = "Apps", description = "Your apps, with the API secret"),
        (name = "Webhooks", description = "Who is told of your apps' events, with the API secret. What they are told is under webhooks"),
        (name = "Logs", description = "Your messages and their statistics, with the API secret"),
        (name = "Connect", description = "The pages on which end users connect their mailboxes, for browsers"),
        (name = "Subscriber", description = "You, with the API secret"),
        (name = "Billing", description = "Your subscription, with the API secret; and what the payment provider tells"),
        (name = "Operator", description = "Sign-up, for a page of the operator's own"),
        (name = "Health", description = "For balancers"),
    ),
    modifiers(&Credentials)
)]
pub(super) struct Document;

struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut Description) {
        let components = document.components.get_or_insert_default();
        for (name, header, description) in [
            (
                "api_secret",
                "X-Api-Secret",
                "The subscriber's API secret, `sk_…`",
            ),
            ("send_key", "X-Send-Key", "The app's send key, `sek_…`"),
            (
                "send_key_as_api_key",
                "X-Api-Key",
                "The app's send key, where older clients put it",
            ),
            (
                "operator_token",
                "X-Operator-Token",
                "The operator's own token",
            ),
        ] {
            let value = ApiKeyValue::with_description(header, description);
            components.add_security_scheme(name, SecurityScheme::ApiKey(ApiKey::Header(value)));
        }
    }
}

/// Adds what every operation may answer, and the headers that answers have, so that no handler has to
/// repeat them.
pub(super) fn say_what_all_answer(document: &mut Description) {
    for path in document.paths.paths.values_mut() {
        let operations = [
            &mut path.get,
            &mut path.put,
            &mut path.patch,
            &mut path.post,
            &mut path.delete,
        ];
        for operation in operations.into_iter().flatten() {
            say_failures(operation);
            say_successes(operation);
            say_headers(operation);
        }
    }
}

/// Failures that follow from what an operation takes. One that says more of a status has its own words.
fn say_failures(operation: &mut Operation) {
    let mut failures = vec![
        ("500", "`internal_error`"),
        ("504", "`timeout`: the request took too long"),
    ];
    if operation.request_body.is_some() {
        failures.extend([
            (
                "400",
                "`malformed_json`, `incomplete_body` or `ambiguous_credentials`",
            ),
            ("408", "`body_too_slow`"),
            ("413", "`payload_too_large`"),
            ("415", "`unsupported_media_type` or `unsupported_encoding`"),
            ("422", "`invalid_request`"),
            ("503", "`unavailable`, `overloaded` or `stopping`"),
        ]);
    }
    let api_secret = SecurityRequirement::new("api_secret", Vec::<String>::new());
    if (operation.security.iter().flatten()).any(|security| *security == api_secret) {
        failures.extend([
            ("400", "`ambiguous_credentials`"),
            ("401", "`invalid_api_secret`"),
            ("429", "`rate_limited`"),
            ("503", "`unavailable`"),
        ]);
    }
    if (operation.parameters.iter().flatten()).any(
        |parameter| matches!(parameter, RefOr::T(parameter) if parameter.name == "pushable_key"),
    ) {
        failures.push(("404", "`app_not_found`"));
    }
    for (status, description) in failures {
        operation
            .responses
            .responses
            .entry(status.to_owned())
            .or_insert_with(|| RefOr::T(problem(description)));
    }
}

/// `OpenAPI` 3.1 wants a description of every response; what a success holds its fields say.
fn say_successes(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        if response.description.is_empty() {
            let status = status.parse::<StatusCode>().ok();
            let reason = status.and_then(|status| status.canonical_reason());
            response.description = String::from(reason.unwrap_or("Answered"));
        }
    }
}

fn say_headers(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        let mut say = |name: &str, header: Header| {
            response.headers.insert(name.to_owned(), RefOr::T(header));
        };
        say(
            "X-Request-Id",
            header(Type::String, "The request's name in the gateway's log."),
        );
        if status == "401" {
            say(
                "WWW-Authenticate",
                header(
                    Type::String,
                    "`ApiKey realm=\"mailgate\", header=\"…\"`: the header that the key belongs in.",
                ),
            );
        }
        if matches!(status.as_str(), "429" | "503") {
            say(
                "Retry-After",
                header(Type::Integer, "Seconds after which to try again."),
            );
        }
    }
}

fn header(kind: Type, description: &str) -> Header {
    HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(kind)))
        .description(Some(description))
        .build()
}

fn problem(description: &str) -> Response {
    let body = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("ProblemBody")))
        .build();
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", body)
        .build()
}
