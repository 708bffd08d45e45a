//! What the document has to say: every route, field and error code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mailgate_types::event_name::EventName;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{document, operations, start, text};
use crate::support::described::resolved;
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

/// The Rust files of the REST interface, by their paths.
fn sources() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/rest/src");
    let mut sources = BTreeMap::new();
    read_sources(&folder, &folder, &mut sources);
    sources
}

fn read_sources(root: &Path, folder: &Path, sources: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_sources(root, &path, sources);
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            sources.insert(name, std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// Words between backticks that look like a code.
fn codes(description: &str) -> BTreeSet<String> {
    let is_code =
        |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let quoted = description.split('`').skip(1).step_by(2);
    quoted.filter(is_code).map(str::to_owned).collect()
}

/// The failures that the document knows, as `(operation, status, code)`.
pub fn failures(document: &Value) -> Vec<(String, String, String)> {
    let mut failures = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let place = format!("{method} {path}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                if status.starts_with(['4', '5']) {
                    let codes = codes(text(&response["description"]));
                    assert!(!codes.is_empty(), "{place}: {status} has no code");
                    let add = |code| (place.clone(), status.clone(), code);
                    failures.extend(codes.into_iter().map(add));
                }
            }
        }
    }
    failures
}

/// The `(status, code)` pairs of all `Problem::new` in the sources. A status or a code that isn't
/// written out there couldn't be found in the document.
pub fn made() -> BTreeSet<(String, String)> {
    let mut made = BTreeSet::new();
    for (file, source) in sources() {
        // The type's own file calls itself so.
        let own = if file == "http/problem.rs" {
            "Self::new("
        } else {
            "Problem::new("
        };
        for call in source.split(own).skip(1) {
            let mut arguments = call.splitn(3, ',').map(str::trim);
            let status = arguments.next().unwrap();
            let code = arguments.next().unwrap();
            let name = status.rsplit_once("StatusCode::").map(|(_, name)| name);
            let number = (400..600).find(|number| {
                let status = StatusCode::from_u16(*number).unwrap();
                let reason = status.canonical_reason().unwrap_or_default();
                Some(reason.to_uppercase().replace([' ', '-'], "_").as_str()) == name
            });
            let code = code.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            let (Some(number), Some(code)) = (number, code) else {
                panic!("{file}: a status and a code are to be written out: {call:.80}");
            };
            made.insert((number.to_string(), code.to_owned()));
        }
    }
    assert!(made.len() > 15, "{made:?}");
    made
}

#[tokio::test]
async fn every_route_is_in_the_document() {
    let gateway = start().await;
    let described = operations(&gateway).await;
    let specified = SPECIFIED.map(|(method, path)| (method.to_owned(), path.to_owned()));
    assert_eq!(described, BTreeSet::from(specified));
    // `routes!` takes a handler's path and method from its description, so that a route that is made
    // of it can't be missing. No route may be made without.
    let sources = sources();
    for (name, source) in &sources {
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

/// Finds the properties without a description, at any depth; returns how many there are.
fn check_properties(place: &str, schema: &Value) -> usize {
    let mut count = 0;
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            // Of a field that may be null it stands beside the type that it has otherwise.
            let others = property["oneOf"].as_array().into_iter().flatten();
            let mut described = std::iter::once(property).chain(others);
            let description = described
                .find_map(|schema| schema["description"].as_str())
                .unwrap_or_default();
            assert!(!description.is_empty(), "{place}.{name} has no description");
            count += 1;
        }
    }
    let inner: Vec<&Value> = match schema {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    inner
        .into_iter()
        .fold(count, |count, inner| count + check_properties(place, inner))
}

#[tokio::test]
async fn every_field_has_a_description() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let count: usize = schemas
        .iter()
        .map(|(name, schema)| check_properties(name, schema))
        .sum();
    assert!(count > 50, "{count}");
    gateway.stop().await;
}

#[tokio::test]
async fn every_error_code_is_in_the_document_with_its_status() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let failures = failures(&document);
    for (method, path) in operations(&gateway).await {
        let place = format!("{} {path}", method.to_lowercase());
        // Nothing that a caller of these does can be wrong.
        let is_health = path.ends_with('z');
        assert!(
            is_health
                || failures
                    .iter()
                    .any(|(at, status, _)| *at == place && status < &"5".to_owned()),
            "{place} never fails"
        );
    }
    // What any path may answer stands in front.
    let overall = text(&document["info"]["description"]);
    let made = made();
    for (status, code) in &made {
        let is_described = failures
            .iter()
            .any(|(_, at, word)| at == status && word == code);
        assert!(
            is_described || overall.contains(&format!("{status} `{code}`")),
            "{status} {code}"
        );
    }
    for (place, status, code) in failures {
        let is_made = made.contains(&(status.clone(), code.clone()));
        assert!(is_made, "{place}: {status} {code} is never answered");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn every_event_is_described() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let webhooks = document["webhooks"].as_object().unwrap();
    let names: BTreeSet<&str> = webhooks.keys().map(String::as_str).collect();
    assert_eq!(names, BTreeSet::from(EventName::ALL.map(EventName::as_str)));
    for (name, webhook) in webhooks {
        let post = &webhook["post"];
        assert!(!text(&post["summary"]).is_empty(), "{name}");
        let headers = post["parameters"].as_array().unwrap();
        let headers: BTreeSet<&str> = headers.iter().map(|it| text(&it["name"])).collect();
        let signing = ["webhook-id", "webhook-signature", "webhook-timestamp"];
        assert_eq!(headers, BTreeSet::from(signing), "{name}");
        let schema = &post["requestBody"]["content"]["application/json"]["schema"];
        let schema = resolved(&document, schema);
        assert!(check_properties(name, schema) >= 5, "{name}");
        let listed = &document["components"]["schemas"]["EventName"]["enum"];
        assert!(
            listed
                .as_array()
                .unwrap()
                .contains(&Value::from(name.as_str()))
        );
    }
    gateway.stop().await;
}

/// Its texts, at any depth.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn every_body_has_an_example() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let (mut bodies, mut without) = (0, Vec::new());
    for section in ["paths", "webhooks"] {
        for (path, methods) in document[section].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let request = ("request", &operation["requestBody"]);
                let answers = operation["responses"].as_object().unwrap().iter();
                let answers = answers.map(|(status, answer)| (status.as_str(), answer));
                for (what, body) in std::iter::once(request).chain(answers) {
                    let contents = body["content"].as_object().into_iter().flatten();
                    for (media_type, content) in contents.filter(|(it, _)| it.ends_with("json")) {
                        bodies += 1;
                        let example = &content["example"];
                        if !example.is_object() || texts(example).contains(&"") {
                            without.push(format!("{method} {path} {what} {media_type}: {example}"));
                        }
                    }
                }
            }
        }
    }
    assert!(bodies > 300, "{bodies}");
    assert!(without.is_empty(), "{without:#?}");
    gateway.stop().await;
}

#[tokio::test]
async fn what_a_field_may_hold_is_listed() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let schemas = &document["components"]["schemas"];
    for (schema, field) in [
        ("SentResponse", "status"),
        ("SentResponse", "plugin"),
        ("SendRequest", "plugin"),
        ("LogItem", "status"),
        ("LogItem", "plugin"),
        ("AttemptShown", "status"),
        ("ConnectedMailbox", "plugin"),
        ("ConnectedMailbox", "status"),
        ("FormerUser", "reason"),
        ("RefusalItem", "reason"),
        ("RefusalItem", "door"),
        ("DeliveryItem", "event"),
        ("LogDelivery", "event"),
        ("Me", "subscription_status"),
        ("StatusAnswer", "status"),
        ("SubscriptionView", "status"),
        ("AuditItem", "action"),
        ("AuditItem", "actor"),
    ] {
        let mut property = &schemas[schema]["properties"][field];
        if let Some(choices) = property["oneOf"].as_array() {
            property = choices.iter().find(|it| it["type"] != "null").unwrap();
        }
        let words = &resolved(&document, property)["enum"];
        assert!(words.is_array(), "{schema}.{field}: {property}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn the_headers_of_answers_are_described() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let headers = |path: &str, method: &str, status: &str| {
        let response = &document["paths"][path][method]["responses"][status];
        let headers = response["headers"].as_object().unwrap().keys();
        headers.cloned().collect::<BTreeSet<_>>()
    };
    for (path, method, status, name) in [
        ("/send", "post", "200", "RateLimit"),
        ("/send", "post", "200", "RateLimit-Policy"),
        ("/send", "post", "200", "Idempotent-Replayed"),
        ("/send", "post", "502", "Idempotent-Replayed"),
        ("/send", "post", "409", "Retry-After"),
        ("/send", "post", "429", "Retry-After"),
        ("/send", "post", "401", "WWW-Authenticate"),
        ("/apps", "get", "200", "RateLimit"),
        ("/apps", "get", "503", "Retry-After"),
    ] {
        let headers = headers(path, method, status);
        assert!(headers.contains(name), "{path} {status}: {headers:?}");
    }
    assert_eq!(document["servers"][0]["url"], "/");
    for methods in document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let summary = text(&operation["summary"]);
            assert!(
                !summary.contains(['`', '\n']) && !summary.ends_with('.'),
                "{summary}"
            );
        }
    }
    gateway.stop().await;
}
