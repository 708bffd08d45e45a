//! The description's texts: paragraphs, in which backticks enclose code.

use serde_json::Value;

/// A part of a paragraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) is_code: bool,
}

/// Paragraphs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) paragraphs: Vec<Vec<Piece>>,
}

impl Text {
    /// The text that a value holds; empty if it holds none.
    pub(super) fn of(value: &Value) -> Self {
        Self::new(value.as_str().unwrap_or_default())
    }

    pub(super) fn new(text: &str) -> Self {
        let paragraphs = text.split("\n\n").map(str::trim);
        Self {
            paragraphs: paragraphs
                .filter(|paragraph| !paragraph.is_empty())
                .map(pieces)
                .collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paragraphs.is_empty()
    }
}

/// Every second part between backticks is code. An odd backtick is itself.
fn pieces(paragraph: &str) -> Vec<Piece> {
    let parts: Vec<&str> = paragraph.split('`').collect();
    let is_paired = parts.len() % 2 == 1;
    let pieces = parts.iter().enumerate().map(|(number, part)| {
        let is_odd = !is_paired && number + 1 == parts.len();
        Piece {
            text: if is_odd {
                format!("`{part}")
            } else {
                (*part).to_owned()
            },
            is_code: number % 2 == 1 && !is_odd,
        }
    });
    pieces.filter(|piece| !piece.text.is_empty()).collect()
}
