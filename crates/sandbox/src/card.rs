//! The content of pages with only a message.

use askama::Template;

/// A text, with an optional link.
#[derive(Debug, Template)]
#[template(path = "card.html")]
pub(crate) struct Card<'a> {
    text: &'a str,
    /// The link's address and text.
    link: Option<(&'a str, &'a str)>,
}

impl<'a> Card<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, link: None }
    }

    /// Adds a link after the text.
    pub(crate) fn with_link(self, address: &'a str, words: &'a str) -> Self {
        Self {
            link: Some((address, words)),
            ..self
        }
    }
}
