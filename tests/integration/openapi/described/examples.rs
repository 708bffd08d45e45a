//! The examples of bodies.

use serde_json::Value;

use crate::openapi::{document, start};

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
