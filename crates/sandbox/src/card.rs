//! What pages that only say something have in them.

use askama::Template;

/// A text, and perhaps where to go.
#[derive(Debug, Template)]
#[template(path = "card.html")]
pub(crate) struct Card<'a> {
    text: &'a str,
    /// An address, and the words that lead there.
    link: Option<(&'a str, &'a str)>,
}

impl<'a> Card<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, link: None }
    }

    /// With a link after the text.
    pub(crate) fn with_link(self, address: &'a str, words: &'a str) -> Self {
        Self {
            link: Some((address, words)),
            ..self
        }
    }
}
