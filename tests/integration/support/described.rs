//! Whether what a gateway tells by webhooks is what its description says: each body of each test.

use std::sync::LazyLock;

use serde_json::Value;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(&mailgate_rest::openapi_json()).expect("the description is JSON")
});

/// Asserts that a body has the fields that are described for its event, no others, and each of its type.
pub fn check(body: &Value) {
    let name = body["event"].as_str().expect("an event has a name");
    let post = &DOCUMENT["webhooks"][name]["post"];
    let schema = &post["requestBody"]["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{name} is not described");
    is_of(name, schema, body);
}

/// The schema itself where another place has it.
pub fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let pointer = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    pointer.map_or(schema, |pointer| {
        document.pointer(pointer).expect("a schema")
    })
}

fn is_of(place: &str, schema: &Value, value: &Value) {
    let schema = resolved(&DOCUMENT, schema);
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed = match &schema["type"] {
        Value::Array(kinds) => kinds.contains(&Value::from(kind)),
        one => one == kind,
    };
    assert!(allowed, "{place}: {value} is not of {schema}");
    if let Some(values) = schema["enum"].as_array() {
        assert!(
            values.contains(value),
            "{place}: {value} is not of {schema}"
        );
    }
    let Some(fields) = value.as_object() else {
        return;
    };
    let further = schema.get("additionalProperties");
    for (name, value) in fields {
        let property = schema["properties"].get(name).or(further);
        let property = property.unwrap_or_else(|| panic!("{place}.{name} is not described"));
        is_of(&format!("{place}.{name}"), property, value);
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("a name");
        assert!(fields.contains_key(name), "{place}.{name} is missing");
    }
}

#[test]
fn what_is_not_as_described_is_seen() {
    let good = serde_json::json!({
        "event": "send_key.renewed", "app_id": "x", "timestamp": "x", "data": { "app_id": "x" }
    });
    check(&good);
    for (pointer, value) in [
        ("/event", Value::from("test")),
        ("/app_id", Value::from(7)),
        ("/data", Value::Null),
        ("/data", serde_json::json!({})),
        ("/data", serde_json::json!({ "app_id": "x", "name": "x" })),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        assert!(std::panic::catch_unwind(|| check(&bad)).is_err(), "{bad}");
    }
}
