//! What the document has to say: every route, field, error code and event.

pub mod errors;
mod events;
mod examples;
mod fields;
mod headers;
mod routes;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

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
