//! The interfaces of Google, Microsoft and Stripe as their own client libraries describe them, and whether a
//! request keeps to it: a path and method that exist, parameters that are known, of their types, and none that is
//! required missing. `tests/peers/install` writes the descriptions (see `tests/peers/contracts.py`).

mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

/// One interface.
#[derive(Deserialize)]
pub struct Contract {
    operations: Vec<Operation>,
    types: HashMap<String, Type>,
}

#[derive(Deserialize)]
struct Operation {
    method: String,
    /// With `{names}` for what varies.
    path: String,
    query: Type,
    body: Option<Type>,
    /// A message may stand there by itself.
    media: bool,
    /// Bytes that such a message may have.
    bytes: Option<usize>,
}

#[derive(Deserialize, Clone)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Type {
    String {
        #[serde(rename = "enum")]
        words: Option<Vec<String>>,
    },
    Integer,
    Number,
    Boolean,
    Any,
    Array {
        items: Box<Type>,
    },
    Map {
        values: Box<Type>,
    },
    Object {
        fields: HashMap<String, Field>,
    },
    Union {
        of: Vec<Type>,
    },
    Ref {
        name: String,
    },
}

#[derive(Deserialize, Clone)]
struct Field {
    r#type: Type,
    required: bool,
}

/// Whether values are JSON, or texts throughout as in queries and forms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Texts,
}

/// What was against a contract so far.
pub type Violations = Arc<Mutex<Vec<String>>>;

impl Contract {
    /// The description of that name: `gmail`, `graph`, `stripe-VERSION`.
    pub fn load(name: &str) -> Arc<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/contracts");
        let path = folder.join(format!("{name}.json"));
        let text = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; run tests/peers/install", path.display()));
        Arc::new(serde_json::from_slice(&text).expect("contracts.py writes this form"))
    }

    /// The versions of Stripe's interface that there are, the oldest first.
    pub fn stripe_versions() -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/contracts");
        let files = std::fs::read_dir(folder).expect("tests/peers/install has been run");
        let mut versions: Vec<String> = files
            .filter_map(|file| {
                let name = file.ok()?.file_name().into_string().ok()?;
                let version = name.strip_prefix("stripe-")?.strip_suffix(".json")?;
                Some(version.to_owned())
            })
            .collect();
        versions.sort();
        versions
    }

    /// What is against the contract in a request.
    pub fn check(
        &self,
        method: &str,
        path: &str,
        query: &str,
        content_type: Option<&str>,
        body: &[u8],
    ) -> Vec<String> {
        let operation = self
            .operations
            .iter()
            .filter(|operation| operation.method == method && fits(&operation.path, path))
            // `messages/send` before `messages/{id}`.
            .max_by_key(|operation| {
                (
                    operation.media,
                    std::cmp::Reverse(operation.path.matches('{').count()),
                )
            });
        let Some(operation) = operation else {
            return vec![format!("{method} {path}: there is no such operation")];
        };
        let mut found = Vec::new();
        let mut note = |text: String| found.push(format!("{method} {path}: {text}"));
        self.compare(
            &operation.query,
            &tree(query.as_bytes()),
            Form::Texts,
            "query",
            &mut note,
        );
        let kind = content_type.unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        match (&operation.body, kind) {
            (_, "text/plain" | "message/rfc822") if operation.media => {
                let limit = operation.bytes.unwrap_or(usize::MAX);
                if kind == "text/plain" && STANDARD.decode(body).is_err() {
                    note("the message isn't base64".to_owned());
                }
                if body.is_empty() || body.len() > limit {
                    note(format!("a message of {} bytes", body.len()));
                }
            }
            (None, _) if body.is_empty() => {}
            (None, _) => note("no content is known".to_owned()),
            (Some(body_type), "application/json") => match serde_json::from_slice(body) {
                Ok(value) => self.compare(body_type, &value, Form::Json, "body", &mut note),
                Err(error) => note(format!("the body is no JSON: {error}")),
            },
            (Some(body_type), "application/x-www-form-urlencoded") => {
                self.compare(body_type, &tree(body), Form::Texts, "body", &mut note);
            }
            (Some(body_type), "") if body.is_empty() => {
                self.compare(body_type, &tree(b""), Form::Texts, "body", &mut note);
            }
            (Some(_), kind) => note(format!("content of the type {kind:?}")),
        }
        found
    }

    fn compare(
        &self,
        wanted: &Type,
        value: &Value,
        form: Form,
        place: &str,
        note: &mut dyn FnMut(String),
    ) {
        match wanted {
            Type::Any => {}
            Type::Ref { name } => match self.types.get(name) {
                Some(wanted) => self.compare(wanted, value, form, place, note),
                None => note(format!("{place}: the type {name} isn't described")),
            },
            // Graph's fields are nullable, every one.
            _ if value.is_null() && form == Form::Json => {}
            Type::Union { of } => {
                let suits = |wanted: &Type| {
                    let mut suits = true;
                    self.compare(wanted, value, form, place, &mut |_| suits = false);
                    suits
                };
                if !of.iter().any(suits) {
                    note(format!("{place}: {value} is of none of the types"));
                }
            }
            Type::Object { fields } => match value.as_object() {
                Some(object) => self.compare_fields(fields, object, form, place, note),
                None => note(format!("{place}: {value} is no object")),
            },
            Type::Map { values } => match value.as_object() {
                Some(object) => {
                    for (name, value) in object {
                        self.compare(values, value, form, &format!("{place}.{name}"), note);
                    }
                }
                None => note(format!("{place}: {value} is no map")),
            },
            Type::Array { items } => {
                let elements: Vec<&Value> = match value {
                    Value::Array(elements) => elements.iter().collect(),
                    // `items[0]`, `expand[]`, which may be there several times.
                    Value::Object(object) if form == Form::Texts => object
                        .values()
                        .flat_map(|value| match value {
                            Value::Array(values) => values.iter().collect(),
                            value => vec![value],
                        })
                        .collect(),
                    // A parameter that is there once.
                    Value::String(_) if form == Form::Texts => vec![value],
                    _ => return note(format!("{place}: {value} is no list")),
                };
                for element in elements {
                    self.compare(items, element, form, &format!("{place}[]"), note);
                }
            }
            Type::String { words } => match value.as_str() {
                Some(text)
                    if words
                        .as_ref()
                        .is_none_or(|words| words.iter().any(|word| word == text)) => {}
                _ => note(format!("{place}: {value} is none of {words:?}")),
            },
            Type::Integer | Type::Number | Type::Boolean => {
                if !is_plain(wanted, value, form) {
                    note(format!("{place}: {value} is of another type"));
                }
            }
        }
    }

    fn compare_fields(
        &self,
        fields: &HashMap<String, Field>,
        object: &Map<String, Value>,
        form: Form,
        place: &str,
        note: &mut dyn FnMut(String),
    ) {
        for (name, value) in object {
            match fields.get(name) {
                Some(field) => {
                    self.compare(&field.r#type, value, form, &format!("{place}.{name}"), note);
                }
                None => note(format!("{place}.{name}: there is no such parameter")),
            }
        }
        for (name, field) in fields {
            if field.required && !object.contains_key(name) {
                note(format!("{place}.{name}: it is required"));
            }
        }
    }
}

fn is_plain(wanted: &Type, value: &Value, form: Form) -> bool {
    let text = value.as_str().filter(|_| form == Form::Texts);
    match wanted {
        Type::Integer => value.is_i64() || text.is_some_and(|text| text.parse::<i64>().is_ok()),
        Type::Number => value.is_number() || text.is_some_and(|text| text.parse::<f64>().is_ok()),
        _ => value.is_boolean() || text.is_some_and(|text| matches!(text, "true" | "false")),
    }
}

/// Whether a path is one of the template's. What varies is one segment and not empty.
fn fits(template: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(name), Some(segment)) if name.starts_with('{') && !segment.is_empty() => {}
            (Some(name), Some(segment)) if name == segment => {}
            _ => return false,
        }
    }
}

/// The pairs of a query or a form, as what their brackets say lies within each other.
fn tree(pairs: &[u8]) -> Value {
    let mut root = Map::new();
    for (name, value) in url::form_urlencoded::parse(pairs) {
        let mut steps: Vec<String> = name
            .split('[')
            .map(|step| step.trim_end_matches(']').to_owned())
            .collect();
        let last = steps.pop().unwrap_or_default();
        let mut place = &mut root;
        for step in steps {
            let inner = place
                .entry(step)
                .or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            place = inner.as_object_mut().expect("it is one");
        }
        // `expand[]=a&expand[]=b`, `metadataHeaders=a&metadataHeaders=b`
        let value = Value::from(value.into_owned());
        match place.get_mut(&last) {
            Some(Value::Array(values)) => values.push(value),
            Some(known) => *known = Value::Array(vec![known.clone(), value]),
            None => {
                place.insert(last, value);
            }
        }
    }
    Value::Object(root)
}

/// A layer around a stand-in that holds each request against a contract, before it is answered.
pub async fn hold(
    State((contract, violations)): State<(Arc<Contract>, Violations)>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    // What breaks off is the test's own doing, and no request.
    let Ok(content) = axum::body::to_bytes(body, usize::MAX).await else {
        return next.run(Request::from_parts(parts, Body::empty())).await;
    };
    let text = |name: &str| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let found = contract.check(
        parts.method.as_str(),
        parts.uri.path(),
        parts.uri.query().unwrap_or_default(),
        text("content-type"),
        &content,
    );
    violations
        .lock()
        .expect("nobody panics with it")
        .extend(found);
    let body = Body::from(content);
    next.run(Request::from_parts(parts, body)).await
}

/// Fails a test that is about to end well though something was against a contract.
pub fn assert_none(violations: &Violations) {
    if !std::thread::panicking() {
        let violations = violations.lock().expect("nobody panics with it");
        assert!(violations.is_empty(), "{violations:#?}");
    }
}
