//! Schemas without their references: what a value of theirs looks like.

use serde_json::{Map, Value};

use super::list;

/// The named schemas and credentials of the description.
#[derive(Debug)]
pub(super) struct Schemas<'a> {
    components: &'a Value,
}

/// A schema whose references, alternatives with null and parts are resolved.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Its keywords; with all parts' properties.
    pub(super) keywords: Map<String, Value>,
    pub(super) is_nullable: bool,
}

impl<'a> Schemas<'a> {
    pub(super) fn new(components: &'a Value) -> Self {
        Self { components }
    }

    /// The schema of this name.
    pub(super) fn named(&self, name: &str) -> &'a Value {
        &self.components["schemas"][name]
    }

    /// The credential of this name.
    pub(super) fn credential(&self, name: &str) -> &'a Value {
        &self.components["securitySchemes"][name]
    }

    /// The shape of a schema. What stands beside a reference takes precedence over what it refers to.
    pub(super) fn shape(&self, schema: &Value) -> Shape {
        let mut shape = Shape::default();
        if let Some(path) = schema["$ref"].as_str() {
            let name = path.rsplit('/').next().unwrap_or_default();
            shape = self.shape(self.named(name));
        }
        for choice in list(&schema["oneOf"]) {
            if choice["type"] == "null" {
                shape.is_nullable = true;
            } else {
                let inner = self.shape(choice);
                shape.is_nullable |= inner.is_nullable;
                shape.keywords = inner.keywords;
            }
        }
        for part in list(&schema["allOf"]) {
            self.shape(part).add_to(&mut shape);
        }
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            match keyword.as_str() {
                "$ref" | "oneOf" | "allOf" => {}
                "type" => shape.set_type(value),
                _ => {
                    shape.keywords.insert(keyword.clone(), value.clone());
                }
            }
        }
        shape
    }
}

impl Shape {
    /// Adds the keywords to a whole of which this is a part.
    fn add_to(self, whole: &mut Self) {
        for (keyword, value) in self.keywords {
            match (whole.keywords.get_mut(&keyword), value) {
                (Some(Value::Object(all)), Value::Object(more)) => all.extend(more),
                (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
                (_, value) => {
                    whole.keywords.insert(keyword, value);
                }
            }
        }
    }

    fn set_type(&mut self, value: &Value) {
        let kinds = list(value).filter(|kind| *kind != "null");
        let kind = kinds.last().unwrap_or(value);
        self.is_nullable |= list(value).any(|kind| kind == "null");
        self.keywords.insert("type".to_owned(), kind.clone());
    }

    /// A keyword's value, or null.
    pub(super) fn get(&self, keyword: &str) -> &Value {
        self.keywords.get(keyword).unwrap_or(&Value::Null)
    }

    /// A keyword's word, or an empty one.
    pub(super) fn word(&self, keyword: &str) -> &str {
        self.get(keyword).as_str().unwrap_or_default()
    }
}
