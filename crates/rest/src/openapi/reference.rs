//! The reference at `/docs`: a page made from the description alone, which needs no scripts.

mod answer;
mod credential;
mod field;
mod limits;
mod operation;
mod request;
mod schema;
#[cfg(test)]
mod tests;
mod text;

use askama::Template;
use serde_json::Value;
use utoipa::openapi::OpenApi as Description;

use field::{Field, fields};
use operation::Operation;
use schema::Schemas;
use text::Text;

/// The methods of a path, in the order in which they are shown.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The page.
#[derive(Debug, Template)]
#[template(path = "reference/page.html")]
struct Reference {
    title: String,
    version: String,
    style: String,
    base_url: String,
    text: Text,
    groups: Vec<Group>,
    /// The fields of a problem.
    problem: Vec<Field>,
}

/// The operations under one tag.
#[derive(Debug)]
struct Group {
    name: String,
    text: Text,
    operations: Vec<Operation>,
}

impl Group {
    /// Its anchor, which no operation has.
    fn anchor(&self) -> String {
        format!("tag-{}", self.name.to_lowercase())
    }
}

/// The page as HTML, with examples for the gateway at this URL.
pub(super) fn page(description: &Description, base_url: &str, style: &str) -> String {
    let document = serde_json::to_value(description).unwrap_or_default();
    // Writing to a String can't fail.
    reference(&document, base_url, style)
        .render()
        .unwrap_or_default()
}

fn reference(document: &Value, base_url: &str, style: &str) -> Reference {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let schemas = Schemas::new(&document["components"]);
    let operations = operations(document, &schemas, base_url);
    let mut groups: Vec<Group> = list(&document["tags"])
        .map(|tag| Group {
            name: word(&tag["name"]),
            text: Text::of(&tag["description"]),
            operations: Vec::new(),
        })
        .collect();
    for (tag, operation) in operations {
        if let Some(group) = groups.iter_mut().find(|group| group.name == tag) {
            group.operations.push(operation);
        } else {
            groups.push(Group {
                name: tag,
                text: Text::default(),
                operations: vec![operation],
            });
        }
    }
    Reference {
        title: format!("{} API", word(&document["info"]["title"])),
        version: word(&document["info"]["version"]),
        style: style.to_owned(),
        base_url: base_url.to_owned(),
        text: Text::of(&document["info"]["description"]),
        groups,
        problem: fields(&schemas, schemas.named("ProblemBody")),
    }
}

/// The operations and the events, each with its tag.
fn operations(document: &Value, schemas: &Schemas, base_url: &str) -> Vec<(String, Operation)> {
    let mut all = Vec::new();
    for (section, is_event) in [("paths", false), ("webhooks", true)] {
        let paths = document[section].as_object().into_iter().flatten();
        for (path, methods) in paths {
            for method in METHODS {
                let Some(described) = methods.get(method) else {
                    continue;
                };
                let tag = described["tags"][0].as_str().unwrap_or("Others");
                let operation = if is_event {
                    Operation::event(described, schemas)
                } else {
                    Operation::new(method, path, described, schemas, base_url)
                };
                all.push((tag.to_owned(), operation));
            }
        }
    }
    all
}

/// The elements of an array.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
