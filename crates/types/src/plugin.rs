//! The two kinds of mail provider.

use crate::words::words;
use serde::Deserialize;

words! {
    /// A kind of mail provider, as named in send requests, user records and events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
    pub enum Plugin {
        /// The first kind (Google by default).
        #[serde(rename = "plugin_a")]
        A = "plugin_a",
        /// The second kind (Microsoft by default).
        #[serde(rename = "plugin_b")]
        B = "plugin_b",
    }

    /// The text is not the name of a plugin.
    else UnknownPlugin("must be plugin_a or plugin_b");
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
