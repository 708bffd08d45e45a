//! Every route, the methods that it takes, and the names of its operations.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::Value;

use super::sources;
use crate::openapi::{document, operations, start, text};
use crate::support::gateway::Gateway;

/// The tables Apps, Subscriber, Send, Webhook configurations, Billing, Statistics and logs, and what is
/// beside them.
const SPECIFIED: [(&str, &str); 64] = [
    ("GET", "/apps"),
    ("POST", "/apps"),
    ("GET", "/apps/{pushable_key}"),
    ("PUT", "/apps/{pushable_key}"),
    ("PATCH", "/me"),
    ("GET", "/apps/{pushable_key}/refusals"),
    ("GET", "/apps/{pushable_key}/suppressions"),
    ("DELETE", "/apps/{pushable_key}/suppressions"),
    ("GET", "/apps/{pushable_key}/deliveries"),
    ("GET", "/apps/{pushable_key}/deliveries/{delivery_id}"),
    (
        "POST",
        "/apps/{pushable_key}/deliveries/{delivery_id}/retry",
    ),
    ("POST", "/apps/{pushable_key}/replay"),
    ("POST", "/apps/{pushable_key}/webhooks/{webhook_id}/replay"),
    (
        "POST",
        "/apps/{pushable_key}/webhooks/{webhook_id}/rotate-secret",
    ),
    (
        "GET",
        "/apps/{pushable_key}/webhooks/{webhook_id}/deliveries/{delivery_id}",
    ),
    ("DELETE", "/apps/{pushable_key}"),
    ("GET", "/apps/{pushable_key}/send-key"),
    ("POST", "/apps/{pushable_key}/reset-send-key"),
    ("GET", "/apps/{pushable_key}/send-keys"),
    ("POST", "/apps/{pushable_key}/send-keys"),
    ("PUT", "/apps/{pushable_key}/send-keys/{id}"),
    ("DELETE", "/apps/{pushable_key}/send-keys/{id}"),
    ("GET", "/me/api-secrets"),
    ("POST", "/me/api-secrets"),
    ("DELETE", "/me/api-secrets/{id}"),
    ("GET", "/apps/{pushable_key}/webhook-secret"),
    ("POST", "/apps/{pushable_key}/reset-webhook-secret"),
    ("POST", "/apps/{pushable_key}/reset-pushable-key"),
    ("DELETE", "/apps/{pushable_key}/credentials/{credential_id}"),
    ("DELETE", "/apps/{pushable_key}/users/{user_key}"),
    ("GET", "/apps/{pushable_key}/webhooks"),
    ("POST", "/apps/{pushable_key}/webhooks"),
    ("PUT", "/apps/{pushable_key}/webhooks/{webhook_id}"),
    ("DELETE", "/apps/{pushable_key}/webhooks/{webhook_id}"),
    ("POST", "/apps/{pushable_key}/webhooks/{webhook_id}/test"),
    (
        "GET",
        "/apps/{pushable_key}/webhooks/{webhook_id}/deliveries",
    ),
    (
        "POST",
        "/apps/{pushable_key}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry",
    ),
    ("POST", "/apps/{pushable_key}/connect-sessions"),
    ("GET", "/connect/{pushable_key}"),
    ("POST", "/connect/{pushable_key}"),
    ("GET", "/connect/result"),
    ("GET", "/oauth/callback"),
    ("GET", "/audit"),
    ("GET", "/logs"),
    ("GET", "/logs/{log_id}"),
    ("POST", "/logs/{log_id}/retry"),
    ("POST", "/logs/{log_id}/cancel"),
    ("GET", "/queue"),
    ("GET", "/stats"),
    ("GET", "/email-stats"),
    ("GET", "/me"),
    ("POST", "/me/reset-api-secret"),
    ("POST", "/portal/sessions"),
    ("POST", "/send"),
    ("POST", "/subscribers"),
    ("GET", "/payprov/status"),
    ("GET", "/payprov/subscription"),
    ("POST", "/payprov/checkout-setup"),
    ("POST", "/payprov/reactivate"),
    ("POST", "/payprov/cancel-subscription"),
    ("POST", "/payprov/portal"),
    ("POST", "/payprov/webhook"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
];

const METHODS: [Method; 6] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::PATCH,
    Method::OPTIONS,
];

#[tokio::test]
async fn every_route_is_in_the_document() {
    let gateway = start().await;
    let described = operations(&gateway).await;
    let specified = SPECIFIED.map(|(method, path)| (method.to_owned(), path.to_owned()));
    assert_eq!(described, BTreeSet::from(specified));
    // `routes!` takes a handler's path and method from its description, so that a route that is made
    // of it can't be missing. No route may be made without, but for the pages that show the document.
    let sources = sources();
    for (name, source) in &sources {
        if name == "openapi/docs.rs" {
            for path in source.split(".route(").skip(1) {
                let is_docs = path.starts_with("\"/docs") || path.starts_with("\"/openapi.json\"");
                assert!(is_docs, "{name}: {path:.60}");
            }
            continue;
        }
        for other in [".route(", ".route_service(", ".nest(", ".nest_service("] {
            assert!(!source.contains(other), "{name} has a {other}");
        }
    }
    let handlers: usize = sources
        .values()
        .map(|source| source.matches("#[utoipa::path(").count())
        .sum();
    assert_eq!(
        handlers,
        described.len(),
        "a handler that no route leads to"
    );
    gateway.stop().await;
}

async fn ask(gateway: &Gateway, method: Method, path: &str) -> (u16, Value) {
    let path = path.replace("{pushable_key}", gateway.app.pushable_key.expose());
    let url = format!("{}{path}", gateway.daemon.base_url);
    let request = gateway.http.request(method, url);
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let body = response.text().await.unwrap();
    (status, serde_json::from_str(&body).unwrap_or_default())
}

#[tokio::test]
async fn every_path_takes_the_methods_that_are_described_and_no_other() {
    let gateway = start().await;
    let described = operations(&gateway).await;
    let paths: BTreeSet<&String> = described.iter().map(|(_, path)| path).collect();
    for path in paths {
        for method in METHODS {
            let (status, body) = ask(&gateway, method.clone(), path).await;
            let place = format!("{method} {path}: {status} {body}");
            if described.contains(&(method.to_string(), path.clone())) {
                // Without a credential.
                let expected = match path.as_str() {
                    // It names no provider.
                    "/connect/{pushable_key}" if method == Method::POST => 422,
                    "/healthz" | "/readyz" | "/connect/{pushable_key}" => 200,
                    "/connect/result" => 404,
                    "/oauth/callback" | "/payprov/webhook" => 400,
                    _ => 401,
                };
                assert_eq!(status, expected, "{place}");
            } else {
                assert_eq!(status, 405, "{place}");
                assert_eq!(body["code"], "method_not_allowed", "{place}");
            }
        }
    }
    let (status, body) = ask(&gateway, Method::GET, "/nothing").await;
    assert_eq!((status, &body["code"]), (404, &Value::from("not_found")));
    gateway.stop().await;
}

#[tokio::test]
async fn every_operation_has_a_name_of_its_own_and_a_summary() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let mut names = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let place = format!("{method} {path}");
            let name = text(&operation["operationId"]);
            assert!(names.insert(name.to_owned()), "{place}: {name} is taken");
            assert!(!text(&operation["summary"]).is_empty(), "{place}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(!text(&parameter["description"]).is_empty(), "{place}");
            }
            // The standard wants one.
            for (status, response) in operation["responses"].as_object().unwrap() {
                let description = response["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{place}: {status}");
            }
        }
    }
    gateway.stop().await;
}
