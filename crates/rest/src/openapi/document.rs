//! The interface's description: `OpenAPI` 3.1, made from the handlers' types.

use axum::http::StatusCode;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi as Description, Ref, RefOr};
use utoipa::{Modify, OpenApi};

use super::security::roles;
use crate::http::headers::add_headers;
use crate::http::problem::ProblemBody;

/// The document's metadata.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Mailgate",
        description = "An email gateway that sends through the end users' own connected OAuth mailboxes. \
            Errors are `application/problem+json` (RFC 9457) with a stable `code`. Every response has an \
            `X-Request-Id`, and `Cache-Control: no-store` unless it is the same for every caller. The API secret and \
            the send key may also be sent as `Authorization: Bearer …`. An unknown path is 404 `not_found`, an \
            unsupported method 405 `method_not_allowed`, and a request without exactly one Host header 400 \
            `invalid_host`; `mailgate dev` answers 421 `misdirected_request` to names that aren't its own. Before a key is checked, any path may answer 429 `too_many_connections` or 503 \
            `overloaded`."
    ),
    tags(
        (name = "Send", description = "Sending mail, with the app's send key"),
        (name = "Apps", description = "Your apps, with the API secret"),
        (name = "Webhooks", description = "Webhook endpoints, with the API secret; the payloads are under Events"),
        (name = "Events", description = "Events that the gateway posts to your webhook endpoints, signed as Standard Webhooks specifies"),
        (name = "Logs", description = "Your messages and their statistics, with the API secret"),
        (name = "Connect", description = "Browser pages on which end users connect their mailboxes"),
        (name = "Subscriber", description = "Your account, with the API secret"),
        (name = "Billing", description = "Your subscription, with the API secret; and the payment provider's inbound webhook"),
        (name = "Operator", description = "Sign-up, for the operator's own sign-up page"),
        (name = "Health", description = "For balancers"),
    ),
    components(schemas(ProblemBody)),
    servers((url = "/", description = "The gateway that serves this document")),
    modifiers(&Credentials)
)]
pub(crate) struct Document;

struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut Description) {
        let components = document.components.get_or_insert_default();
        for (name, header, description) in [
            (
                "api_secret",
                "X-Api-Secret",
                "The subscriber's API secret, `sk_…`: the main one, or an additional one with the scope that an \
                 operation lists here; for operations that list `main`, only the main one",
            ),
            ("send_key", "X-Send-Key", "The app's send key, `sek_…`"),
            (
                "send_key_as_api_key",
                "X-Api-Key",
                "The app's send key, in the header that older clients use",
            ),
            ("operator_token", "X-Operator-Token", "The operator token"),
        ] {
            let value = ApiKeyValue::with_description(header, description);
            components.add_security_scheme(name, SecurityScheme::ApiKey(ApiKey::Header(value)));
        }
    }
}

/// The operations of a path.
pub(crate) fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let methods = [
        &mut path.get,
        &mut path.put,
        &mut path.patch,
        &mut path.post,
        &mut path.delete,
    ];
    methods.into_iter().flatten()
}

/// Adds the common responses and headers to every operation, so that no handler has to
/// repeat them.
pub(crate) fn add_common_parts(document: &mut Description) {
    for path in document.paths.paths.values_mut() {
        for operation in operations(path) {
            split_summary(operation);
            // No security means that no credential is needed.
            operation
                .security
                .get_or_insert_with(|| vec![SecurityRequirement::default()]);
            add_failures(operation);
            add_successes(operation);
            add_headers(operation);
        }
    }
}

/// The summary is the doc comment's first sentence, without markup; the rest is the description.
fn split_summary(operation: &mut Operation) {
    let said = operation
        .summary
        .take()
        .unwrap_or_default()
        .replace('\n', " ");
    let (summary, more) = match said.split_once(". ") {
        Some((summary, more)) => (summary, Some(more)),
        None => (said.trim_end_matches('.'), None),
    };
    operation.summary = Some(summary.replace('`', ""));
    let description = operation.description.take();
    let description: Vec<&str> = (more.into_iter()).chain(description.as_deref()).collect();
    if !description.is_empty() {
        operation.description = Some(description.join("\n\n"));
    }
}

/// Errors that follow from an operation's inputs. A handler's own description of a status takes precedence. All are
/// problems, unless the handler specifies another body.
fn add_failures(operation: &mut Operation) {
    let mut failures = vec![
        (
            "500",
            "`internal_error`: something went wrong in the gateway",
        ),
        ("504", "`timeout`: the request took too long"),
    ];
    if operation.request_body.is_some() {
        failures.extend([
            (
                "400",
                "`malformed_json`: the body isn't valid JSON; `incomplete_body` or `ambiguous_credentials`",
            ),
            ("408", "`body_too_slow`: the body took too long to arrive"),
            ("413", "`payload_too_large`: the body is too large"),
            (
                "415",
                "`unsupported_media_type`: the body must be application/json; `unsupported_encoding`: it must not be \
                 compressed",
            ),
            (
                "422",
                "`invalid_request`: fields are missing or wrong, as the list of errors says",
            ),
            (
                "503",
                "`unavailable`: the database can't be reached; `overloaded` or `stopping`",
            ),
        ]);
    }
    let insufficient;
    let asked = roles(operation, "api_secret");
    if let Some(scope) = asked.and_then(|roles| roles.into_iter().next()) {
        insufficient = if scope == MAIN {
            "`insufficient_scope`: this requires the main API secret".to_owned()
        } else {
            format!("`insufficient_scope`: the API secret lacks the scope `{scope}`")
        };
        failures.extend([
            ("403", insufficient.as_str()),
            (
                "400",
                "`ambiguous_credentials`: two different API secrets were given",
            ),
            (
                "401",
                "`invalid_api_secret`: the API secret is missing, wrong or expired",
            ),
            (
                "429",
                "`rate_limited`: too many requests with this key; `too_many_requests`: too many are in progress",
            ),
            ("503", "`unavailable`: the database can't be reached"),
        ]);
    }
    if (operation.parameters.iter().flatten()).any(
        |parameter| matches!(parameter, RefOr::T(parameter) if parameter.name == "pushable_key"),
    ) {
        failures.push(("404", "`app_not_found`: none of your apps has this key"));
    }
    let responses = &mut operation.responses.responses;
    for (status, description) in failures {
        responses
            .entry(status.to_owned())
            .or_insert_with(|| RefOr::T(ResponseBuilder::new().description(description).build()));
    }
    for (status, response) in responses {
        if let RefOr::T(response) = response
            && status.as_str() >= "400"
            && response.content.is_empty()
        {
            let body = ContentBuilder::new()
                .schema(Some(Ref::from_schema_name("ProblemBody")))
                .build();
            (response.content).insert("application/problem+json".to_owned(), body.into());
        }
    }
}

/// The role of operations that require the main API secret.
const MAIN: &str = "main";

/// `OpenAPI` 3.1 requires a description of every response; the fields of a success describe themselves.
fn add_successes(operation: &mut Operation) {
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
