//! The text of the search box: `to:bob@example.com subject:"Your order"` and the rest.

/// The terms that have a name. A later one with the same name wins.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) to: String,
    pub(crate) from: String,
    pub(crate) subject: String,
    /// A Message-ID, a log ID or a mailbox ID.
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) app: String,
    /// The first day.
    pub(crate) after: String,
    /// The day behind the last one.
    pub(crate) before: String,
    /// The other words.
    pub(crate) rest: String,
}

impl Terms {
    /// Reads any text: an unknown name belongs to the other words, such as `Re:`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut terms = Self::default();
        for word in words(text) {
            let named = word.split_once(':').filter(|(_, value)| !value.is_empty());
            let field = named.and_then(|(name, value)| Some((terms.field(name)?, value)));
            if let Some((field, value)) = field {
                *field = unquoted(value);
            } else {
                if !terms.rest.is_empty() {
                    terms.rest.push(' ');
                }
                terms.rest.push_str(word);
            }
        }
        terms.rest = unquoted(&terms.rest);
        terms
    }

    fn field(&mut self, name: &str) -> Option<&mut String> {
        Some(match name.to_ascii_lowercase().as_str() {
            "to" => &mut self.to,
            "from" => &mut self.from,
            "subject" => &mut self.subject,
            "id" => &mut self.id,
            "status" => &mut self.status,
            "app" => &mut self.app,
            "after" => &mut self.after,
            "before" => &mut self.before,
            _ => return None,
        })
    }
}

/// One term as it is written in the box: in quotes if it has to be, and quotes in it behind a backslash.
pub(crate) fn term(name: &str, value: &str) -> String {
    let value = value.trim();
    if value.contains(|letter: char| letter.is_whitespace() || letter == '"') {
        format!("{name}:\"{}\"", value.replace('"', "\\\""))
    } else {
        format!("{name}:{value}")
    }
}

/// The words, separated by white space outside of quotes.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut before) = (false, ' ');
    text.split(move |letter: char| {
        is_quoted ^= letter == '"' && before != '\\';
        before = letter;
        letter.is_whitespace() && !is_quoted
    })
    .filter(|word| !word.is_empty())
}

/// Without the quotes around it; the second one may be missing while somebody types.
fn unquoted(text: &str) -> String {
    let Some(inside) = text.strip_prefix('"') else {
        return text.to_owned();
    };
    let is_closed = inside.ends_with('"') && !inside.ends_with("\\\"");
    let inside = &inside[..inside.len() - usize::from(is_closed)];
    inside.trim().replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn named_terms_and_the_rest() {
        let terms = Terms::parse(
            "  Re: to:Bob@Example.com status:bounced  SUBJECT:\"Your order 7\" invoice after:2026-11-01 12:30",
        );
        let expected = Terms {
            to: "Bob@Example.com".to_owned(),
            status: "bounced".to_owned(),
            subject: "Your order 7".to_owned(),
            after: "2026-11-01".to_owned(),
            rest: "Re: invoice 12:30".to_owned(),
            ..Terms::default()
        };
        assert_eq!(terms, expected);
        assert_eq!(Terms::parse("\"to: me\"").rest, "to: me");
        assert_eq!(Terms::parse("subject:\"half").subject, "half");
        assert_eq!(Terms::parse("to:").rest, "to:");
    }

    proptest! {
        #[test]
        fn a_term_is_read_as_it_was_written(value in "[^\\\\\\p{C}]{1,40}") {
            let value = value.trim().to_owned();
            prop_assume!(!value.is_empty() && !value.contains('\u{85}'));
            prop_assert_eq!(Terms::parse(&term("subject", &value)).subject, value);
        }

        #[test]
        fn any_text_is_read(text in ".{0,80}") {
            let _ = Terms::parse(&text);
        }
    }
}
