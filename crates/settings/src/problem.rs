//! What is wrong with the settings.

use std::fmt::{Display, Formatter};

/// One setting that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting's name, or the environment variable's.
    pub setting: String,
    /// What is wrong, and what would be right.
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

/// The settings can't be used; every problem of them.
#[derive(Debug, thiserror::Error)]
#[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// Whether `log.format` asks for JSON, whatever else is wrong.
    pub logs_json: bool,
}
