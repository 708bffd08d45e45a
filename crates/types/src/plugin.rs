//! The two kinds of mail provider.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kind of mail provider, as named in send requests, user records and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Plugin {
    /// The first kind (Google by default).
    #[serde(rename = "plugin_a")]
    A,
    /// The second kind (Microsoft by default).
    #[serde(rename = "plugin_b")]
    B,
}

/// How mail is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    /// SMTP with XOAUTH2; mail is read by IMAP.
    Smtp,
    /// Gmail's REST API.
    GmailApi,
    /// Microsoft Graph.
    Graph,
}

/// The text is not the name of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be plugin_a or plugin_b")]
pub struct UnknownPlugin;

impl Plugin {
    /// Both, in order.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// `plugin_a` or `plugin_b`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "plugin_a",
            Self::B => "plugin_b",
        }
    }
}

/// The text is not a plugin name of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be plugin_a or plugin_b_alt")]
pub struct UnknownLogPlugin;

impl Plugin {
    /// `plugin_a` or `plugin_b_alt`: the name in logs, their filters and statistics.
    #[must_use]
    pub const fn log_name(self) -> &'static str {
        match self {
            Self::A => "plugin_a",
            Self::B => "plugin_b_alt",
        }
    }

    /// The plugin with this name in logs.
    pub fn from_log_name(text: &str) -> Result<Self, UnknownLogPlugin> {
        Self::ALL
            .into_iter()
            .find(|plugin| plugin.log_name() == text)
            .ok_or(UnknownLogPlugin)
    }
}

impl Display for Plugin {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Plugin {
    type Err = UnknownPlugin;

    fn from_str(text: &str) -> Result<Self, UnknownPlugin> {
        Self::ALL
            .into_iter()
            .find(|plugin| plugin.as_str() == text)
            .ok_or(UnknownPlugin)
    }
}
