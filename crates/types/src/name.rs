//! Names that subscribers choose: of their accounts, apps, keys and secrets.

use crate::plain_name::is_invisible;

/// Longest name, in characters.
const LENGTH: usize = 255;

/// Why a name is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Nothing of it can be seen.
    #[error("must not be empty")]
    Empty,
    /// Too long.
    #[error("must have at most {LENGTH} characters")]
    TooLong,
    /// It has control characters.
    #[error("must not contain control characters")]
    ControlCharacters,
}

/// Checks a name. Invisible characters are permitted beside others, since emoji and several scripts need joiners.
pub fn check_name(text: &str) -> Result<(), InvalidName> {
    if text.chars().all(shows_nothing) {
        Err(InvalidName::Empty)
    } else if text.chars().count() > LENGTH {
        Err(InvalidName::TooLong)
    } else if text.contains(char::is_control) {
        Err(InvalidName::ControlCharacters)
    } else {
        Ok(())
    }
}

/// Whether a character shows nothing by itself: spaces, fillers, variation selectors, and those that only change how
/// others are shown.
fn shows_nothing(character: char) -> bool {
    character.is_whitespace()
        || is_invisible(character)
        || matches!(character,
            '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_of_a_name_can_be_seen() {
        for empty in [
            "",
            " \u{a0}",
            "\u{200b}",
            "\u{200b} \u{2060}",
            "\u{3164}\u{200d}",
            "\u{feff}",
            "\u{fff9}\u{fffb}",
            "\u{e0041}",
            &"\u{200b}".repeat(256),
        ] {
            assert_eq!(check_name(empty), Err(InvalidName::Empty), "{empty:?}");
        }
        for name in [
            "Ada",
            " Ada ",
            "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
            "\u{646}\u{645}\u{6cc}\u{200c}\u{634}",
        ] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn length_is_counted_in_characters() {
        assert_eq!(check_name(&"é".repeat(255)), Ok(()));
        assert_eq!(check_name(&"é".repeat(256)), Err(InvalidName::TooLong));
    }

    #[test]
    fn control_characters_are_rejected() {
        for name in ["\0", "a\nb", "a\u{7f}", "a\u{85}", "\u{200b}\u{7}"] {
            let checked = check_name(name);
            assert_eq!(checked, Err(InvalidName::ControlCharacters), "{name:?}");
        }
    }
}
