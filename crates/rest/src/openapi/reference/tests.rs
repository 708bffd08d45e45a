//! The page has all that the description has.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::request::Request;
use super::text::{Piece, Text};
use super::*;
use crate::router::openapi_json;
use mailgate_server::content::{Caching, Content};

const BASE_URL: &str = "https://mail.example";

fn document() -> Value {
    serde_json::from_str(&openapi_json()).unwrap()
}

fn html(document: &Value) -> String {
    reference(document, BASE_URL, "/docs/x.css")
        .render()
        .unwrap()
}

/// The part of the page about an operation.
fn section<'a>(html: &'a str, id: &str) -> &'a str {
    let start = format!("<section class=\"operation\" id=\"{id}\"");
    let (_, rest) = html.split_once(&start).unwrap();
    rest.split_once("</section>").unwrap().0
}

/// The names of the properties in a schema, whatever it consists of.
fn properties(document: &Value, schema: &Value, names: &mut BTreeSet<String>, depth: usize) {
    if depth == 0 {
        return;
    }
    if let Some(path) = schema["$ref"].as_str() {
        let pointer = path.strip_prefix('#').unwrap();
        properties(
            document,
            document.pointer(pointer).unwrap(),
            names,
            depth - 1,
        );
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        names.insert(name.clone());
        properties(document, inner, names, depth - 1);
    }
    for part in list(&schema["allOf"]).chain(list(&schema["oneOf"])) {
        properties(document, part, names, depth - 1);
    }
    properties(document, &schema["items"], names, depth.saturating_sub(1));
}

#[test]
fn every_operation_is_there_with_all_its_fields_and_codes() {
    let document = document();
    let html = html(&document);
    let mut seen = 0;
    for place in ["paths", "webhooks"] {
        for (path, methods) in document[place].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                assert!(METHODS.contains(&method.as_str()), "{method}");
                let id = operation["operationId"].as_str().unwrap();
                let section = section(&html, id);
                assert!(html.contains(&format!("href=\"#{id}\"")), "{id}");
                assert!(section.contains(path.as_str()), "{id}");
                let mut names = BTreeSet::new();
                for parameter in list(&operation["parameters"]) {
                    names.insert(parameter["name"].as_str().unwrap().to_owned());
                }
                let body = &operation["requestBody"]["content"]["application/json"];
                properties(&document, &body["schema"], &mut names, 20);
                for (status, answer) in operation["responses"].as_object().unwrap() {
                    assert!(section.contains(&format!(">{status}<")), "{id} {status}");
                    let json = &answer["content"]["application/json"];
                    properties(&document, &json["schema"], &mut names, 20);
                    let text = answer["description"].as_str().unwrap();
                    for code in text.split('`').skip(1).step_by(2) {
                        let code = code.replace('"', "&quot;");
                        assert!(
                            section.contains(&format!("<code>{code}</code>")),
                            "{id} {code}"
                        );
                    }
                }
                for name in names {
                    assert!(section.contains(&format!("{name}</code>")), "{id}: {name}");
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 70, "{seen}");
}

#[test]
fn every_field_of_every_schema_is_there() {
    let document = document();
    let html = html(&document);
    for (schema, described) in document["components"]["schemas"].as_object().unwrap() {
        let mut names = BTreeSet::new();
        properties(&document, described, &mut names, 20);
        for name in names {
            assert!(
                html.contains(&format!("{name}</code> <span class=\"kind\">")),
                "{schema}.{name}"
            );
        }
    }
}

#[test]
fn an_anchor_is_given_once() {
    let html = html(&document());
    let mut ids = BTreeSet::new();
    for rest in html.split(" id=\"").skip(1) {
        let (id, _) = rest.split_once('"').unwrap();
        assert!(ids.insert(id), "{id}");
    }
    for rest in html.split(" href=\"#").skip(1) {
        let (id, _) = rest.split_once('"').unwrap();
        assert!(ids.contains(id), "{id}");
    }
}

#[test]
fn a_first_visit_stays_small() {
    let page = Content::new(html(&document()), "text/html", Caching::Briefly);
    let style = include_bytes!("../../../../../assets/docs/reference.css");
    let style = Content::new(&style[..], "text/css", Caching::Immutable);
    let bytes = page.compressed().len() + style.compressed().len();
    println!("{} bytes, {bytes} as sent", page.plain().len());
    assert!(bytes < 150_000, "{bytes}");
}

#[test]
fn texts_are_escaped_and_code_is_marked() {
    let piece = |text: &str, is_code| Piece {
        text: text.to_owned(),
        is_code,
    };
    let text = Text::new("a `b`\n\nc");
    assert_eq!(
        text.paragraphs,
        [
            vec![piece("a ", false), piece("b", true)],
            vec![piece("c", false)]
        ]
    );
    assert_eq!(Text::new("`a").paragraphs, [[piece("`a", false)]]);
    assert!(Text::new("").is_empty());
    let document = json!({
        "info": { "title": "<b>", "description": "`<script>`" },
        "paths": { "/x": { "get": { "operationId": "x", "tags": ["X"], "summary": "<i>" } } },
    });
    let html = html(&document);
    for tag in ["<b>", "<script>", "<i>"] {
        assert!(!html.contains(tag), "{tag}");
        assert!(
            html.contains(&tag.replace('<', "&lt;").replace('>', "&gt;")),
            "{tag}"
        );
    }
}

#[test]
fn limits_are_words() {
    let schemas = json!({ "schemas": { "Kind": { "type": "string", "enum": ["a", "b"] } } });
    let schemas = Schemas::new(&schemas);
    for (schema, kind, words) in [
        (
            json!({ "type": "string", "minLength": 1, "maxLength": 255 }),
            "string",
            "1 to 255 characters",
        ),
        (
            json!({ "type": ["integer", "null"], "maximum": 100, "default": 20 }),
            "integer or null",
            "at most 100; default `20`",
        ),
        (
            json!({ "type": "string", "minLength": 1 }),
            "string",
            "at least 1 character",
        ),
        (
            json!({ "type": "integer", "minimum": 10_000_000 }),
            "integer",
            "at least 10,000,000",
        ),
        (
            json!({ "type": "string", "enum": ["x"] }),
            "string",
            "always `x`",
        ),
        (
            json!({ "type": "array", "maxItems": 3, "items": { "$ref": "#/components/schemas/Kind" } }),
            "string[]",
            "at most 3 items; each item: one of `a`, `b`",
        ),
        (
            json!({ "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Kind" }] }),
            "string or null",
            "one of `a`, `b`",
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            "object",
            "each value: string",
        ),
    ] {
        let shape = schemas.shape(&schema);
        assert_eq!(limits::kind(&schemas, &shape), kind);
        assert_eq!(
            limits::limits(&schemas, &shape).join("; "),
            words,
            "{schema}"
        );
    }
}

#[test]
fn a_command_survives_the_shell() {
    let request = Request {
        method: "put",
        base_url: BASE_URL,
        path: "/apps/{pushable_key}/x",
        query: vec!["user_id"],
        headers: vec!["Stripe-Signature"],
        credential: None,
        body: "{\"a\": \"it's\"}",
    };
    assert_eq!(
        request.curl(),
        "curl -X PUT \"https://mail.example/apps/$PUSHABLE_KEY/x?user_id=$USER_ID\" \\\n  \
         -H \"Stripe-Signature: $STRIPE_SIGNATURE\" \\\n  \
         -H \"Content-Type: application/json\" \\\n  -d '{\"a\": \"it'\\''s\"}'"
    );
}
