//! A schema's type and limits in words.

use serde_json::Value;

use super::list;
use super::schema::{Schemas, Shape};
use mailgate_types::grouped::grouped;

/// The type: `string`, `integer or null`, `object[]`.
pub(super) fn kind(schemas: &Schemas, shape: &Shape) -> String {
    let kind = match (shape.word("type"), shape.word("format")) {
        ("array", _) => format!("{}[]", kind(schemas, &schemas.shape(shape.get("items")))),
        ("string", "date-time") => "string, ISO 8601".to_owned(),
        ("string", "uuid") => "string, UUID".to_owned(),
        ("string", _) if shape.word("contentEncoding") == "base64" => "string, base64".to_owned(),
        ("", _) if shape.keywords.contains_key("properties") => "object".to_owned(),
        ("", _) => "any".to_owned(),
        (other, _) => other.to_owned(),
    };
    if shape.is_nullable {
        format!("{kind} or null")
    } else {
        kind
    }
}

/// The limits, with code in backticks.
pub(super) fn limits(schemas: &Schemas, shape: &Shape) -> Vec<String> {
    let mut limits = Vec::new();
    let words: Vec<String> = list(shape.get("enum")).map(code).collect();
    if let [word] = &words[..] {
        limits.push(format!("always {word}"));
    } else if !words.is_empty() {
        limits.push(format!("one of {}", words.join(", ")));
    }
    for (least, most, one, many) in [
        ("minLength", "maxLength", " character", " characters"),
        ("minItems", "maxItems", " item", " items"),
        ("minProperties", "maxProperties", " entry", " entries"),
        ("minimum", "maximum", "", ""),
    ] {
        limits.extend(range(shape.get(least), shape.get(most), one, many));
    }
    for (keyword, said) in [("pattern", "pattern"), ("default", "default")] {
        let value = shape.get(keyword);
        if !value.is_null() {
            limits.push(format!("{said} {}", code(value)));
        }
    }
    let is_array = shape.word("type") == "array";
    let inner = is_array.then_some(("items", "each item"));
    let inner = inner.into_iter().chain([
        ("additionalProperties", "each value"),
        ("propertyNames", "each name"),
    ]);
    for (keyword, said) in inner {
        if !shape.get(keyword).is_object() {
            continue;
        }
        let inner = schemas.shape(shape.get(keyword));
        let mut words = self::limits(schemas, &inner);
        if keyword == "additionalProperties" {
            words.insert(0, kind(schemas, &inner));
        }
        if !words.is_empty() {
            limits.push(format!("{said}: {}", words.join(", ")));
        }
    }
    limits
}

/// A value between backticks. A backtick in it is a code of its own.
fn code(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    format!("`{}`", text.replace('`', "\\x60"))
}

/// A range of numbers in words.
fn range(least: &Value, most: &Value, one: &str, many: &str) -> Option<String> {
    let noun = |number: &Value| {
        if number.as_f64() == Some(1.0) {
            one
        } else {
            many
        }
    };
    Some(match (number(least), number(most)) {
        (Some(least), Some(most_shown)) if least == most_shown => {
            format!("exactly {most_shown}{}", noun(most))
        }
        (Some(least), Some(shown)) => format!("{least} to {shown}{}", noun(most)),
        (Some(shown), None) => format!("at least {shown}{}", noun(least)),
        (None, Some(shown)) => format!("at most {shown}{}", noun(most)),
        (None, None) => return None,
    })
}

/// A number with its thousands apart.
fn number(value: &Value) -> Option<String> {
    let number = value.as_f64()?;
    let digits = format!("{number}");
    let whole = digits.len() > 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some(if whole { grouped(&digits, ",") } else { digits })
}
