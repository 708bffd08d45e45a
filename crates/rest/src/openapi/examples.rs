//! An example of every body, built from its schema: from a field's own example, or else from the usual value of that
//! name.

use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi as Description;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{Content, RefOr};

use super::document::operations;

const MOMENT: &str = "2026-11-02T09:30:00.000Z";
const UUID: &str = "0193f8a2-6c1e-7d54-9b1a-3f2c5d7e9a10";

/// Adds an example beside the schema of each body that has none.
pub(crate) fn add_examples(document: &mut Description) {
    let components = document.components.get_or_insert_default();
    let schemas = serde_json::to_value(&components.schemas).unwrap_or_default();
    let examples = Examples { schemas };
    let webhooks = document.webhooks.iter_mut();
    let paths = document.paths.paths.values_mut();
    for path in paths.chain(webhooks.flat_map(|webhooks| webhooks.paths.values_mut())) {
        examples.add(path);
    }
}

struct Examples {
    schemas: Value,
}

impl Examples {
    fn add(&self, path: &mut PathItem) {
        for operation in operations(path) {
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                body.content
                    .values_mut()
                    .for_each(|content| self.add_to(content));
            }
            self.add_answers(operation);
        }
    }

    fn add_answers(&self, operation: &mut Operation) {
        for (status, response) in &mut operation.responses.responses {
            let RefOr::T(response) = response else {
                continue;
            };
            for (media_type, content) in &mut response.content {
                match content {
                    RefOr::T(content) if media_type == "application/problem+json" => {
                        content.example = problem(status, &response.description);
                    }
                    content => self.add_to(content),
                }
            }
        }
    }

    fn add_to(&self, content: &mut RefOr<Content>) {
        let RefOr::T(content) = content else {
            return;
        };
        let schema = serde_json::to_value(&content.schema).unwrap_or_default();
        // An optional body's schema is one of an object and null.
        let is_object = ["$ref", "properties", "oneOf"]
            .iter()
            .any(|key| schema.get(key).is_some());
        if content.example.is_none() && is_object {
            content.example = Some(self.of("", &schema));
        }
    }

    /// An example value for a property of this name and schema.
    fn of(&self, name: &str, schema: &Value) -> Value {
        let own = schema.get("example").or_else(|| schema["examples"].get(0));
        if let Some(example) = own {
            return example.clone();
        }
        if let Some(value) = named(name) {
            return value;
        }
        if let Some(path) = schema["$ref"].as_str() {
            let component = path.rsplit('/').next().unwrap_or_default();
            return self.of(name, &self.schemas[component]);
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.first().cloned().unwrap_or_default();
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let objects = parts.iter().map(|part| self.of(name, part));
            let fields = objects.filter_map(|object| object.as_object().cloned());
            return Value::Object(fields.flatten().collect());
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            let choice = choices.iter().find(|choice| choice["type"] != "null");
            return choice.map_or(Value::Null, |choice| self.of(name, choice));
        }
        match kind(schema) {
            "object" => {
                let fields = schema["properties"].as_object().into_iter().flatten();
                Value::Object(
                    fields
                        .map(|(name, schema)| (name.clone(), self.of(name, schema)))
                        .collect(),
                )
            }
            "array" => json!([self.of(name, &schema["items"])]),
            "boolean" => json!(true),
            "integer" => {
                let least = schema["minimum"].as_i64().unwrap_or_default().max(1);
                schema.get("default").cloned().unwrap_or(json!(least))
            }
            "number" => json!(1.0),
            _ => match schema["format"].as_str() {
                Some("date-time") => json!(MOMENT),
                Some("uuid") => json!(UUID),
                _ => json!(""),
            },
        }
    }
}

/// The type of a nullable schema.
fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null")
            .unwrap_or_default(),
        kind => kind.as_str().unwrap_or_default(),
    }
}

/// The usual values of fields with these names.
fn named(name: &str) -> Option<Value> {
    Some(match name {
        "action" => json!("app.changed"),
        "address" => json!("203.0.113.7"),
        "api_secret" => json!("sk_4fX9mQ2vTzK7pLwYc1RbN8sHdGjA5uE3oVi6xWq0BtM"),
        "app_name" | "name" => json!("My App"),
        "app_slug" | "deleted" => json!("myapp"),
        "best_month" => json!("2026-11"),
        "callback_url" => json!("https://app.example/connected"),
        "credential_id" | "oauth_credential_id" => json!("cred_01h2xcejqtf2nbrexx3vqjhp41"),
        "date" => json!("2026-11-02"),
        "details" => json!({ "fields": { "name": { "from": "Old", "to": "My App" } } }),
        "email" | "from" | "from_address" | "login_hint" => json!("ada@example.com"),
        "error" => json!("The provider asks to try again later."),
        "error_message"
        | "cc"
        | "bcc"
        | "next_cursor"
        | "reply_tracking_error"
        | "send_at"
        | "target"
        | "suspended_at"
        | "suspension_reason"
        | "trial_end" => Value::Null,
        "bounce_type" => json!("permanent"),
        "bcc_addresses" | "cc_addresses" | "former_users" => json!([]),
        "cancel_at_period_end"
        | "has_attachments"
        | "has_more"
        | "multilink"
        | "require_connect_session"
        | "show_banner"
        | "test" => json!(false),
        "diagnostic" => json!("550 5.1.1 No such user here"),
        "duration_ms" => json!(184),
        "expires_at" | "current_period_end" | "previous_secret_expires_at" => {
            json!("2026-11-03T09:30:00.000Z")
        }
        "failed_perm" | "failed_temp" | "failure_count" => json!(0),
        "http_status" => json!(200),
        "label" => json!("Example Ltd"),
        "log_id" => json!("log_01h2xcejqtf2nbrexx3vqjhp41"),
        "logo_url" => json!("https://app.example/logo.png"),
        "message" => json!("This is a test of your webhook. Nothing has happened."),
        "message_id" => json!("<01h2xcejqtf2nbrexx3vqjhp41@example.com>"),
        "next_retry_at" => json!("2026-11-02T09:31:00.000Z"),
        "object" => json!({ "id": "sub_1MowQVLkdIwHu7ixeRlqHVzs", "object": "subscription" }),
        "payload" => json!({
            "event": "send_key.renewed",
            "app_id": UUID,
            "timestamp": MOMENT,
            "data": { "app_id": UUID },
        }),
        "payprov_customer_id" => json!("cus_NffrFeUfNV2Hib"),
        "pk" | "pushable_key" => json!("pk_7hQ2mT9vXzK4pLwYc1RbN8sHdGjA5uE3oVi6xWq0BtM"),
        "response_body" => json!("ok"),
        "send_key" => json!("sek_9kW3nU8yZaB5qMxTd2ScP7rJeHfG6vL4oXi1tCj0EgN"),
        "size_bytes" => json!(2_048),
        "subject" => json!("Your invoice"),
        "subscriber_id" => json!("sub_01h2xcejqtf2nbrexx3vqjhp41"),
        "success_rate" => json!(0.98),
        "to" | "to_address" => json!("bob@example.com"),
        "url" | "webhook_url" => json!("https://app.example/hook"),
        "user_id" => json!("customer-7"),
        "webhook_config_id" => json!("wconf_01h2xcejqtf2nbrexx3vqjhp41"),
        "webhook_secret" => json!("whs_2pV6oS1wYxL8qNzUe3TdQ9rKfIgH7vM5jZk4uDm0FhA"),
        _ => return None,
    })
}

/// The first problem that a response's description names.
fn problem(status: &str, description: &str) -> Option<Value> {
    let number: u16 = status.parse().ok()?;
    let title = axum::http::StatusCode::from_u16(number).ok()?;
    let title = title.canonical_reason().unwrap_or("Error");
    let code = description.split('`').nth(1)?;
    let said = description
        .split_once("`: ")
        .and_then(|(_, said)| said.split([';', '`']).next())
        .filter(|_| description.starts_with(&format!("`{code}`: ")));
    let detail = match said.and_then(|said| said.split_at_checked(1)) {
        Some((first, rest)) => format!("{}{rest}.", first.to_uppercase()),
        None => format!("{title}."),
    };
    let mut problem = Map::new();
    problem.insert("type".to_owned(), json!("about:blank"));
    problem.insert("title".to_owned(), json!(title));
    problem.insert("status".to_owned(), json!(number));
    problem.insert("detail".to_owned(), json!(detail));
    problem.insert("code".to_owned(), json!(code));
    problem.insert("request_id".to_owned(), json!(UUID));
    if code == "invalid_request" {
        let wrong = json!({ "field": "to", "detail": "must be one email address" });
        problem.insert("errors".to_owned(), json!([wrong]));
    }
    if number == 502 && matches!(code, "provider_rejected" | "outcome_unknown") {
        problem.insert("log_id".to_owned(), json!("log_01h2xcejqtf2nbrexx3vqjhp41"));
    }
    Some(Value::Object(problem))
}
