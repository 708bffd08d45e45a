//! JSON as people read it: a line for each member, in its own order.

use std::iter::repeat_n;

/// Deepest that is indented: each level costs two spaces on every line below it.
const DEEPEST: usize = 32;

/// With line breaks and indentation, if it is JSON that isn't nested deeply; else unchanged.
pub(crate) fn indented(text: &str) -> String {
    let is_object = text.trim_start().starts_with(['{', '[']);
    if !is_object
        || depth(text) > DEEPEST
        || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
    {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut is_escaped) = (0, false, false);
    let mut letters = text.chars().peekable();
    let line = |shown: &mut String, depth: usize| {
        shown.push('\n');
        shown.extend(repeat_n("  ", depth));
    };
    while let Some(letter) = letters.next() {
        if in_string {
            shown.push(letter);
            in_string = is_escaped || letter != '"';
            is_escaped = !is_escaped && letter == '\\';
            continue;
        }
        match letter {
            '{' | '[' => {
                shown.push(letter);
                while letters.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    shown.push(end);
                } else {
                    depth += 1;
                    line(&mut shown, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                line(&mut shown, depth);
                shown.push(letter);
            }
            ',' => {
                shown.push(letter);
                line(&mut shown, depth);
            }
            ':' => shown.push_str(": "),
            letter if letter.is_ascii_whitespace() => {}
            letter => {
                in_string = letter == '"';
                shown.push(letter);
            }
        }
    }
    shown
}

/// How deeply brackets are nested, those within strings included.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_line_for_each_member() {
        let text = r#"{"b":"x, \"y\": {","a":[1,{}],"c":[]}"#;
        let expected =
            "{\n  \"b\": \"x, \\\"y\\\": {\",\n  \"a\": [\n    1,\n    {}\n  ],\n  \"c\": []\n}";
        assert_eq!(indented(text), expected);
        for other in ["", "OK", "\"text\"", "{", "{\"a\":1} x", "<html>"] {
            assert_eq!(indented(other), other);
        }
    }

    #[test]
    fn what_is_nested_deeply_stays_small() {
        let deep = format!("{}{}", "[".repeat(8_192), "]".repeat(8_192));
        assert_eq!(indented(&deep), deep);
        let wide = format!("[{}0]", "[[]],".repeat(3_000));
        assert!(indented(&wide).len() < 10 * wide.len());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
            Just(json!({})),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(".{0,4}", inner, 0..4).prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_same_value_however_it_was_written(value in value(), is_pretty: bool) {
            let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
            let shown: Value = serde_json::from_str(&indented(&text)).unwrap();
            prop_assert_eq!(shown, value);
        }
    }
}
