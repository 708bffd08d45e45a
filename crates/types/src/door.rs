//! The interface by which a message was submitted.

use crate::words::words;

words! {
    /// How a message was submitted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Door {
        /// `POST /send`.
        Rest = "rest",
        /// SMTP submission.
        Smtp = "smtp",
    }
}

impl Door {
    /// The interface with this name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|door| door.as_str() == name)
    }
}
