//! Merges the layers of settings: the defaults, a command's presets, a file, the environment. The defaults define every
//! setting and its type, so each layer is checked against them, and all problems are collected.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use toml::{Table, Value};

use super::Problem;

/// Prefix of a setting's name in the environment; `__` stands for each dot.
const PREFIX: &str = "MAILGATE__";

/// Suffix of a variable that names a file with the setting's value.
const FILE: &str = "_FILE";

/// The only setting whose name in the environment is fixed by the contract.
const LOG_RETENTION_DAYS: &str = "LOG_RETENTION_DAYS";

/// Settings with another name in an earlier version, which is still accepted.
const RENAMED: [(&str, &str); 2] = [
    (
        "limits.waiting_messages_per_app",
        "waiting_messages_per_subscriber",
    ),
    (
        "limits.waiting_bytes_per_app",
        "waiting_bytes_per_subscriber",
    ),
];

/// The current key of a setting within its section, if `name` is a former name.
fn present_key(name: &str) -> Option<&'static str> {
    let renamed = RENAMED
        .iter()
        .find(|(former, _)| former.eq_ignore_ascii_case(name));
    renamed.map(|(_, present)| *present)
}

/// Like [`present_key`], for a full name with `__` for each dot; other names are unchanged.
fn present_name(name: &str) -> Cow<'_, str> {
    match (
        present_key(&name.replace("__", ".")),
        name.rsplit_once("__"),
    ) {
        (Some(present), Some((section, _))) => Cow::Owned(format!("{section}__{present}")),
        _ => Cow::Borrowed(name),
    }
}

/// Merges `layer` into `settings`; `origin` names the source of its values in errors.
pub(super) fn lay(settings: &mut Table, layer: Table, origin: &str, problems: &mut Vec<Problem>) {
    lay_table(settings, layer, "", origin, problems);
}

fn lay_table(
    settings: &mut Table,
    layer: Table,
    path: &str,
    origin: &str,
    problems: &mut Vec<Problem>,
) {
    for (key, value) in layer {
        let name = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        let key = present_key(&name).map_or(key, str::to_owned);
        let problem = |text: String| Problem::new(&name, format!("{text} ({origin})"));
        match (settings.get_mut(&key), value) {
            (None, _) => problems.push(problem("is not a setting".to_owned())),
            (Some(Value::Table(inner)), Value::Table(layer)) => {
                lay_table(inner, layer, &name, origin, problems);
            }
            (Some(current), value) if current.same_type(&value) => *current = value,
            (Some(current), _) => problems.push(problem(format!("must be {}", kind(current)))),
        }
    }
}

/// Merges the process's environment into `settings`. Each setting may come from a file, named by its variable with the
/// suffix `_FILE`.
pub(super) fn lay_environment(
    settings: &mut Table,
    environment: impl Iterator<Item = (OsString, OsString)>,
    problems: &mut Vec<Problem>,
) {
    let mut laid: HashMap<String, String> = HashMap::new();
    for (variable, text) in environment {
        // Unrelated variables may contain any bytes.
        let Ok(variable) = variable.into_string() else {
            continue;
        };
        let Some((name, is_file)) = setting_name(settings, &variable) else {
            continue;
        };
        let mut problem = |text: String| problems.push(Problem::new(&variable, text));
        let name = present_name(name);
        let Some(current) = find(settings, &name) else {
            problem("is not a setting (environment)".to_owned());
            continue;
        };
        let earlier = laid.insert(name.to_ascii_lowercase(), variable.clone());
        if let Some(other) = earlier
            && !other.eq_ignore_ascii_case(&variable)
        {
            problem(format!("{other} is set too; set one of them"));
            continue;
        }
        let (read, origin) = if is_file {
            let path = Path::new(&text);
            (read_value(path), path.display().to_string())
        } else {
            let text = text.into_string().map(|text| text.trim().to_owned());
            let not_text = |_| "must be UTF-8 (environment)".to_owned();
            (text.map_err(not_text), "environment".to_owned())
        };
        match read.map(|text| parse_as(current, &text)) {
            Ok(Some(value)) => *current = value,
            Ok(None) => problem(format!("must be {} ({origin})", kind(current))),
            Err(text) => problem(text),
        }
    }
}

/// The setting of a variable, with `__` for each dot, and whether the variable names a file; `None` for an unrelated
/// variable.
fn setting_name<'a>(settings: &mut Table, variable: &'a str) -> Option<(&'a str, bool)> {
    let stem = variable.strip_suffix(FILE);
    if stem.unwrap_or(variable) == LOG_RETENTION_DAYS {
        return Some((LOG_RETENTION_DAYS, stem.is_some()));
    }
    let name = variable.strip_prefix(PREFIX)?;
    match name.strip_suffix(FILE) {
        // Some settings' own names end in it.
        Some(stem) if find(settings, name).is_none() => Some((stem, true)),
        _ => Some((name, false)),
    }
}

/// A file's content, without a final line end.
fn read_value(path: &Path) -> Result<String, String> {
    let shown = path.display();
    if path.as_os_str().is_empty() {
        return Err("must be the path of a file (environment)".to_owned());
    }
    let mut text =
        std::fs::read_to_string(path).map_err(|error| format!("{shown} can't be read: {error}"))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// Finds a setting by its name with `__` for each dot.
fn find<'a>(settings: &'a mut Table, name: &str) -> Option<&'a mut Value> {
    let (first, rest) = match name.split_once("__") {
        Some((first, rest)) => (first, Some(rest)),
        None => (name, None),
    };
    let (_, value) = settings
        .iter_mut()
        .find(|(key, _)| key.eq_ignore_ascii_case(first))?;
    match (value, rest) {
        (Value::Table(inner), Some(rest)) => find(inner, rest),
        (Value::Table(_), None) | (_, Some(_)) => None,
        (value, None) => Some(value),
    }
}

/// Parses a string as a value of the type of `like`; a list's items are separated by commas or line ends.
fn parse_as(like: &Value, text: &str) -> Option<Value> {
    match like {
        Value::String(_) => Some(Value::String(text.to_owned())),
        Value::Integer(_) => text.trim().parse().ok().map(Value::Integer),
        Value::Boolean(_) => text.trim().parse().ok().map(Value::Boolean),
        Value::Array(items) => {
            let number = matches!(items.first(), Some(Value::Integer(_)));
            text.split([',', '\n'])
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| {
                    if number {
                        item.parse().ok().map(Value::Integer)
                    } else {
                        Some(Value::String(item.to_owned()))
                    }
                })
                .collect::<Option<Vec<_>>>()
                .map(Value::Array)
        }
        _ => None,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "a whole number",
        Value::Boolean(_) => "true or false",
        Value::Array(items) if matches!(items.first(), Some(Value::Integer(_))) => {
            "a list of whole numbers"
        }
        Value::Array(_) => "a list",
        Value::Table(_) => "a section",
        _ => "something else",
    }
}
