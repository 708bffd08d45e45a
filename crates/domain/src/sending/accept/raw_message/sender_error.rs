//! The error in the From field of a refused message. Only for the text of the refusal: the code that reads the field
//! decides whether to refuse.

use mailgate_types::display_name::AT_SIGNS;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::encoded_words::decoded;

/// Why no sender could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SenderError {
    /// There is no From field.
    #[error("The message has no From header")]
    Missing,
    /// There is none, since the headers end with the first line.
    #[error(
        "The message has no From header: its first line is empty, and an empty line ends the headers"
    )]
    EmptyFirstLine,
    /// There is more than one From field.
    #[error("From address not authorized: the message has more than one From header")]
    Several,
    /// The field is empty.
    #[error("The From header is empty")]
    Empty,
    /// The field has no address.
    #[error("The From header has no address of the form name@domain")]
    NoAddress,
    /// The address isn't valid.
    #[error("The From header's address isn't valid")]
    InvalidAddress,
    /// A name isn't quoted although it must be.
    #[error(
        "The From header's name must be in quotes since it holds one of ()<>[]:;@\\,\" as in \"Lovelace, Ada\" \
         <ada@example.com>"
    )]
    Name,
    /// The brackets or quotes around the address or the name aren't closed, or something follows the address.
    #[error(
        "The From header isn't one address, with or without a name in front: Ada Lovelace <ada@example.com>"
    )]
    Form,
    /// The field has a control character.
    #[error("The From header has a control character in it")]
    ControlCharacter,
    /// The field has several addresses, or text that some reader may mistake for another.
    #[error(
        "From address not authorized: the From header names several addresses, or some reader may take another one \
         for the sender; a name holds no other address, and an @ only in quotes"
    )]
    Ambiguous,
}

impl SenderError {
    /// Whether readers understand the field differently, rather than it being a mere mistake.
    #[must_use]
    pub fn is_ambiguous(self) -> bool {
        matches!(self, Self::Several | Self::Ambiguous)
    }

    /// The error in this value of a From field.
    pub(super) fn of(value: &[u8]) -> Self {
        let text = String::from_utf8_lossy(value).replace("\r\n", "");
        let text = text.trim();
        if text.is_empty() || text == "<>" {
            return Self::Empty;
        }
        if text.contains(|letter: char| letter.is_control() && letter != '\t') {
            return Self::ControlCharacter;
        }
        // In encoded words there may be more of them, and they may be there on purpose.
        match decoded(value).matches(AT_SIGNS).count() {
            0 => return Self::NoAddress,
            1 => {}
            _ => return Self::Ambiguous,
        }
        let (name, address) = match text.rsplit_once('<') {
            Some((name, behind)) => (name, behind.split_once('>')),
            None => ("", Some((text, ""))),
        };
        let Some((address, behind)) = address else {
            return Self::Form;
        };
        if EmailAddress::parse(address.trim()).is_ok_and(|address| address == address.to_standard())
        {
            return if text.contains("=?") {
                Self::Ambiguous
            } else if behind.trim().is_empty() && !name.contains('"') {
                Self::Name
            } else {
                Self::Form
            };
        }
        if name.is_empty() && address.contains([' ', '\t', ',', ';', ':', '(', '>', '"']) {
            Self::Form
        } else {
            Self::InvalidAddress
        }
    }
}
