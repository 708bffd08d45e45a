//! Problems in the settings.

use std::fmt::{Display, Formatter};

/// One setting that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting's name, or the environment variable's.
    pub setting: String,
    /// The problem, and its remedy.
    pub text: String,
}

impl Problem {
    pub(super) fn new(setting: &str, text: impl Into<String>) -> Self {
        Self {
            setting: setting.to_owned(),
            text: text.into(),
        }
    }
}

impl Display for Problem {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.setting, self.text)
    }
}

/// The settings are invalid.
#[derive(Debug, thiserror::Error)]
#[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    /// All problems.
    pub problems: Vec<Problem>,
    /// Whether `log.format` is JSON, regardless of other problems.
    pub logs_json: bool,
}
