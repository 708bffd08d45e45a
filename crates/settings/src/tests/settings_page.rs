//! The documentation's table, the defaults and the code have the same settings.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use toml::Value;

const PAGE: &str = include_str!("../../../../docs/settings.md");

/// The plugin without rows in the table, and the one whose rows apply to it.
const OTHER: (&str, &str) = ("plugins.plugin_b.", "plugins.plugin_a.");

/// Between two defaults: `plugin_a`'s and `plugin_b`'s.
const APART: &str = " · ";

fn defaults() -> Table {
    DEFAULTS.parse().unwrap()
}

fn flatten(table: &Table, path: &str, flat: &mut BTreeMap<String, Value>) {
    for (key, value) in table {
        let name = format!("{path}{key}");
        match value {
            Value::Table(inner) => flatten(inner, &format!("{name}."), flat),
            value => {
                flat.insert(name, value.clone());
            }
        }
    }
}

fn flat_defaults() -> BTreeMap<String, Value> {
    let mut flat = BTreeMap::new();
    flatten(&defaults(), "", &mut flat);
    flat
}

/// A default in the table's form.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            items.join(", ")
        }
        value => value.to_string(),
    };
    if text.is_empty() {
        text
    } else {
        format!("`{text}`")
    }
}

/// The rows of the table: name, default, and whether there is a description.
fn rows() -> Vec<(String, String, bool)> {
    PAGE.lines()
        .filter_map(|line| {
            let cells = line.strip_prefix("| `")?.strip_suffix('|')?;
            let mut cells = cells.split('|').map(str::trim);
            let name = cells.next()?.strip_suffix('`')?.to_owned();
            let default = cells.next()?.to_owned();
            Some((
                name,
                default,
                cells.next().is_some_and(|text| !text.is_empty()),
            ))
        })
        .collect()
}

#[test]
fn the_table_lists_every_setting_with_its_default() {
    let mut defaults = flat_defaults();
    for (name, default, says) in rows() {
        assert!(says, "{name} says nothing");
        let value = defaults
            .remove(&name)
            .unwrap_or_else(|| panic!("{name} is no setting, or stands there twice"));
        let (own, others) = default.split_once(APART).unwrap_or((&default, &default));
        assert_eq!(own, shown(&value), "{name}");
        if let Some(key) = name.strip_prefix(OTHER.1) {
            let other = format!("{}{key}", OTHER.0);
            let value = defaults.remove(&other).unwrap();
            assert_eq!(others, shown(&value), "{other}");
        }
    }
    assert!(defaults.is_empty(), "not in the table: {defaults:?}");
}

#[test]
fn every_setting_is_read() {
    let mut settings = defaults();
    // Without this one reading stops early.
    settings["seal"]["keys"] = Value::Array(vec![Value::String(KEY.to_owned())]);
    let mut reader = Reader::new(&settings);
    assert!(read(&mut reader).is_some());
    let known: BTreeSet<String> = flat_defaults().into_keys().collect();
    assert_eq!(reader.asked, known);
}
