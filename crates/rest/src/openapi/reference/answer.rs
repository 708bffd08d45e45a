//! The responses of an operation: successes with their fields, and errors with their codes.

use axum::http::StatusCode;
use serde_json::Value;

use super::field::{Field, fields};
use super::schema::Schemas;
use super::text::Text;

/// A response.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: String,
    pub(super) reason: &'static str,
    pub(super) text: Text,
    /// Its media types; none if it has no body.
    pub(super) media_types: Vec<String>,
    pub(super) fields: Vec<Field>,
    pub(super) headers: Vec<Field>,
    /// JSON, or empty.
    pub(super) example: String,
}

impl Answer {
    pub(super) fn new(schemas: &Schemas, status: &str, described: &Value) -> Self {
        let content = described["content"].as_object();
        let json = &described["content"]["application/json"];
        let headers = described["headers"].as_object().into_iter().flatten();
        let code = status.parse::<StatusCode>().ok();
        Self {
            status: status.to_owned(),
            reason: code
                .and_then(|code| code.canonical_reason())
                .unwrap_or_default(),
            text: Text::of(&described["description"]),
            media_types: content
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect(),
            fields: fields(schemas, &json["schema"]),
            headers: headers
                .map(|(name, header)| Field::parameter(schemas, name, header))
                .collect(),
            example: example(json),
        }
    }

    /// Whether it is an error.
    pub(super) fn is_error(&self) -> bool {
        self.status.as_str() >= "400"
    }

    /// Whether its description only repeats the status.
    pub(super) fn is_plain(&self) -> bool {
        self.text == Text::new(self.reason)
    }

    /// Its headers beside those of every response.
    pub(super) fn own_headers(&self) -> impl Iterator<Item = &Field> {
        self.headers
            .iter()
            .filter(|header| header.name != "X-Request-Id")
    }
}

/// The example of a content as indented JSON; empty if there is none.
pub(super) fn example(content: &Value) -> String {
    match &content["example"] {
        Value::Null => String::new(),
        example => serde_json::to_string_pretty(example).unwrap_or_default(),
    }
}
