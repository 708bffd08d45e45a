//! Puts the layers of settings on each other: the defaults, what a way of running sets, a file, the
//! environment. The defaults name every setting and its kind, so whatever a layer says is held
//! against them, and all that is wrong is gathered.

use std::ffi::OsString;

use toml::{Table, Value};

use super::Problem;

/// Prefix of a setting's name in the environment; `__` stands for each dot.
const PREFIX: &str = "MAILGATE__";

/// The one setting whose name in the environment is fixed by the contract.
const LOG_RETENTION_DAYS: &str = "LOG_RETENTION_DAYS";

/// Lays `layer` over `settings`; `origin` is what a reader is told of where a value came from.
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

/// Lays the process's environment over `settings`.
pub(super) fn lay_environment(
    settings: &mut Table,
    environment: impl Iterator<Item = (OsString, OsString)>,
    problems: &mut Vec<Problem>,
) {
    for (variable, text) in environment {
        // Others' variables may be of any bytes.
        let Ok(variable) = variable.into_string() else {
            continue;
        };
        let keys: Vec<&str> = if variable == LOG_RETENTION_DAYS {
            vec![LOG_RETENTION_DAYS]
        } else if let Some(rest) = variable.strip_prefix(PREFIX) {
            rest.split("__").collect()
        } else {
            continue;
        };
        let Ok(text) = text.into_string() else {
            problems.push(Problem::new(&variable, "must be UTF-8 (environment)"));
            continue;
        };
        match find(settings, &keys) {
            None => problems.push(Problem::new(&variable, "is not a setting (environment)")),
            Some(current) => match parse_as(current, &text) {
                Some(value) => *current = value,
                None => problems.push(Problem::new(
                    &variable,
                    format!("must be {} (environment)", kind(current)),
                )),
            },
        }
    }
}

fn find<'a>(settings: &'a mut Table, keys: &[&str]) -> Option<&'a mut Value> {
    let (first, rest) = keys.split_first()?;
    let (_, value) = settings
        .iter_mut()
        .find(|(key, _)| key.eq_ignore_ascii_case(first))?;
    match value {
        Value::Table(inner) => find(inner, rest),
        value if rest.is_empty() => Some(value),
        _ => None,
    }
}

/// The text of an environment variable as a value of the kind that `like` has.
fn parse_as(like: &Value, text: &str) -> Option<Value> {
    let text = text.trim();
    match like {
        Value::String(_) => Some(Value::String(text.to_owned())),
        Value::Integer(_) => text.parse().ok().map(Value::Integer),
        Value::Boolean(_) => text.parse().ok().map(Value::Boolean),
        Value::Array(items) => {
            let number = matches!(items.first(), Some(Value::Integer(_)));
            text.split(',')
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
        Value::String(_) => "a text",
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
