//! HTML escaping in templates, by named character references.

use std::fmt::{self, Write};

use askama::filters::Escaper;

/// Escapes text and quoted attributes. Each crate's `askama.toml` uses it for `.html`.
#[derive(Debug, Clone, Copy)]
pub struct Html;

impl Escaper for Html {
    fn write_escaped_str<W: Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => dest.write_str("&amp;")?,
                '<' => dest.write_str("&lt;")?,
                '>' => dest.write_str("&gt;")?,
                '"' => dest.write_str("&quot;")?,
                '\'' => dest.write_str("&#39;")?,
                other => dest.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_html_takes_for_markup_is_escaped() {
        let mut html = String::new();
        let written = Html.write_escaped_str(&mut html, "<a b='c' d=\"e\">&amp;ü");
        assert!(written.is_ok());
        assert_eq!(html, "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;amp;ü");
    }
}
