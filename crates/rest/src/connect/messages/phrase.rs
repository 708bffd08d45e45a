//! Texts that contain names chosen by others: they are split into pieces, so that a page can keep a name
//! from changing the direction of the text around it.

use std::borrow::Cow;

/// A text with names in braces, as `{app}`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Phrase(pub(super) &'static str);

/// The values for a [`Phrase`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Names<'a> {
    /// The app's name, as its subscriber sets it.
    pub(crate) app: &'a str,
    /// The provider's name, as the operator sets it.
    pub(crate) label: &'a str,
    /// An address: the connected mailbox's, or the one that was expected.
    pub(crate) email: &'a str,
    /// A host: the gateway's, or the app's.
    pub(crate) host: &'a str,
    /// The gateway's operator.
    pub(crate) operator: &'a str,
    /// The provider's explanation.
    pub(crate) said: &'a str,
}

impl<'a> Names<'a> {
    /// Their placeholders in a [`Phrase`].
    #[cfg(test)]
    pub(super) const ALL: [&'static str; 6] = ["app", "label", "email", "host", "operator", "said"];

    /// Only the app's.
    pub(crate) fn app(app: &'a str) -> Self {
        Self {
            app,
            ..Self::default()
        }
    }

    /// A value, and whether someone other than the operator has chosen it.
    fn get(&self, name: &str) -> Option<(&'a str, bool)> {
        match name {
            "app" => Some((self.app, true)),
            "label" => Some((self.label, false)),
            "email" => Some((self.email, true)),
            "host" => Some((self.host, true)),
            "operator" => Some((self.operator, true)),
            "said" => Some((self.said, true)),
            _ => None,
        }
    }
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Whether it was chosen by others, to be isolated.
    pub(crate) is_foreign: bool,
}

impl<'a> Piece<'a> {
    /// The gateway's own text.
    pub(crate) fn ours(text: &'a str) -> Self {
        let text = Cow::Borrowed(text);
        let is_foreign = false;
        Self { text, is_foreign }
    }
}

impl Phrase {
    /// Its parts, with these names filled in.
    pub(crate) fn of<'a>(self, names: &Names<'a>) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        let mut add = |text: &'a str, is_foreign| {
            if !text.is_empty() {
                let text = Cow::Borrowed(text);
                pieces.push(Piece { text, is_foreign });
            }
        };
        let mut rest = self.0;
        while let Some((before, behind)) = rest.split_once('{') {
            let Some((name, after)) = behind.split_once('}') else {
                break;
            };
            add(before, false);
            if let Some((text, is_foreign)) = names.get(name) {
                add(text, is_foreign);
            }
            rest = after;
        }
        add(rest, false);
        pieces
    }

    /// As plain text, where no markup is possible.
    pub(crate) fn plain(self, names: &Names<'_>) -> String {
        self.of(names).into_iter().map(|piece| piece.text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_apart() {
        let names = Names {
            app: "{label} <b>",
            label: "Google",
            ..Names::default()
        };
        let phrase = Phrase("At {label}, {app} asks. {app}");
        assert_eq!(
            phrase.plain(&names),
            "At Google, {label} <b> asks. {label} <b>"
        );
        let pieces = phrase.of(&names);
        let foreign: Vec<&str> = pieces
            .iter()
            .filter(|piece| piece.is_foreign)
            .map(|piece| &*piece.text)
            .collect();
        assert_eq!(foreign, ["{label} <b>"; 2]);
        assert_eq!(Phrase("a{b").plain(&names), "a{b");
        assert_eq!(Phrase("{none}a").plain(&names), "a");
    }
}
