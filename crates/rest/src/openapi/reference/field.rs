//! The fields of a body, with those of its objects under their paths, and parameters.

use serde_json::Value;

use super::limits::{kind, limits};
use super::list;
use super::schema::{Schemas, Shape};
use super::text::Text;

/// Levels of objects in objects.
const DEPTH: usize = 8;

/// A field, or a parameter.
#[derive(Debug)]
pub(super) struct Field {
    /// What it is in: `attachments[].`; empty at the top.
    pub(super) within: String,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) is_required: bool,
    pub(super) limits: Text,
    pub(super) text: Text,
}

impl Field {
    fn new(schemas: &Schemas, within: &str, name: &str, shape: &Shape, is_required: bool) -> Self {
        Self {
            within: within.to_owned(),
            name: name.to_owned(),
            kind: kind(schemas, shape),
            is_required,
            limits: Text::new(&limits(schemas, shape).join("; ")),
            text: Text::of(shape.get("description")),
        }
    }

    /// A parameter or a header.
    pub(super) fn parameter(schemas: &Schemas, name: &str, described: &Value) -> Self {
        let shape = schemas.shape(&described["schema"]);
        let is_required = described["required"] == true;
        let field = Self::new(schemas, "", name, &shape, is_required);
        let text = Text::of(&described["description"]);
        Self {
            text: if text.is_empty() { field.text } else { text },
            ..field
        }
    }
}

/// The fields of values of a schema.
pub(super) fn fields(schemas: &Schemas, schema: &Value) -> Vec<Field> {
    let mut fields = Vec::new();
    add(schemas, schema, "", DEPTH, &mut fields);
    fields
}

fn add(schemas: &Schemas, schema: &Value, within: &str, depth: usize, fields: &mut Vec<Field>) {
    let shape = schemas.shape(schema);
    if depth == 0 {
        return;
    }
    if shape.word("type") == "array" {
        let within = format!("{}[].", within.trim_end_matches('.'));
        return add(schemas, shape.get("items"), &within, depth - 1, fields);
    }
    let required: Vec<&str> = list(shape.get("required"))
        .filter_map(Value::as_str)
        .collect();
    let properties = shape.get("properties").as_object().into_iter().flatten();
    let (first, then): (Vec<_>, Vec<_>) =
        properties.partition(|(name, _)| required.contains(&name.as_str()));
    for (name, schema) in first.into_iter().chain(then) {
        let is_required = required.contains(&name.as_str());
        let shape = schemas.shape(schema);
        fields.push(Field::new(schemas, within, name, &shape, is_required));
        add(
            schemas,
            schema,
            &format!("{within}{name}."),
            depth - 1,
            fields,
        );
    }
}
