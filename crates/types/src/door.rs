//! The interface by which a message was submitted.

/// How a message was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// `POST /send`.
    Rest,
    /// SMTP submission.
    Smtp,
}

impl Door {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Rest, Self::Smtp];

    /// The name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Smtp => "smtp",
        }
    }

    /// The interface with this name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|door| door.as_str() == name)
    }
}
