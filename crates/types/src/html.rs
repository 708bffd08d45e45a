//! Text that becomes part of HTML.

use std::borrow::Cow;

/// `text` for use in HTML text and in quoted attributes.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut html = String::with_capacity(text.len() + text.len() / 4);
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    Cow::Owned(html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_html_takes_for_markup_is_escaped() {
        assert_eq!(
            escaped("<a b='c' d=\"e\">&amp;ü"),
            "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;amp;ü"
        );
        assert!(matches!(escaped("plain"), Cow::Borrowed("plain")));
    }
}
