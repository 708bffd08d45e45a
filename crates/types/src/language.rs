//! The languages of the pages for end users, and language negotiation.

use serde::{Deserialize, Serialize};

/// A language of the pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
    /// English, the fallback.
    #[default]
    #[serde(rename = "en")]
    English,
    /// German.
    #[serde(rename = "de")]
    German,
    /// French.
    #[serde(rename = "fr")]
    French,
    /// Spanish.
    #[serde(rename = "es")]
    Spanish,
    /// Japanese.
    #[serde(rename = "ja")]
    Japanese,
}

impl Language {
    /// All, in the order on the pages.
    pub const ALL: [Self; 5] = [
        Self::English,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Japanese,
    ];

    /// Its language tag (BCP 47).
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::French => "fr",
            Self::Spanish => "es",
            Self::Japanese => "ja",
        }
    }

    /// Its name in the language itself.
    #[must_use]
    pub const fn own_name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::German => "Deutsch",
            Self::French => "Français",
            Self::Spanish => "Español",
            Self::Japanese => "日本語",
        }
    }

    /// Its name in English.
    #[must_use]
    pub const fn english_name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::German => "German",
            Self::French => "French",
            Self::Spanish => "Spanish",
            Self::Japanese => "Japanese",
        }
    }

    /// The language for a language tag: `de-AT` is German. This is the lookup of RFC 4647 §3.4 with one-subtag tags:
    /// only the first subtag counts. An underscore is accepted too, as in locale names.
    #[must_use]
    pub fn look_up(tag: &str) -> Option<Self> {
        let first = tag.trim().split(['-', '_']).next()?;
        let mut all = Self::ALL.into_iter();
        all.find(|language| language.tag().eq_ignore_ascii_case(first))
    }

    /// The language that an `Accept-Language` (RFC 9110 §12.5.4) prefers; `None` if it names none of ours. The first
    /// one wins among equal weights. `*` is ignored, and a weight of 0 excludes a language.
    #[must_use]
    pub fn accepted(ranges: &str) -> Option<Self> {
        let mut best = None;
        let mut most = 0;
        for range in ranges.split(',') {
            let mut parts = range.split(';');
            let language = parts.next().and_then(Self::look_up);
            let weight = parts.map(str::trim).find_map(|part| {
                part.strip_prefix("q=")
                    .or_else(|| part.strip_prefix("Q="))
                    .map(thousandths)
            });
            let weight = weight.unwrap_or(Some(1_000)).unwrap_or_default();
            if language.is_some() && weight > most {
                (best, most) = (language, weight);
            }
        }
        best
    }
}

/// A weight (RFC 9110 §12.4.2): from 0 to 1, with at most three digits.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_number = fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths: u16 = is_number.then(|| format!("{fraction:0<3}").parse().ok())??;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Language::{English, French, German, Japanese, Spanish};
    use super::*;

    #[test]
    fn a_tag_means_a_language() {
        for (tag, expected) in [
            ("de", Some(German)),
            ("DE", Some(German)),
            ("de-AT", Some(German)),
            ("de_CH", Some(German)),
            ("de-Latn-DE-1996", Some(German)),
            ("en-GB", Some(English)),
            ("fr-CA", Some(French)),
            ("es-419", Some(Spanish)),
            ("ja-JP", Some(Japanese)),
            (" ja ", Some(Japanese)),
            ("", None),
            ("-", None),
            ("*", None),
            ("d", None),
            ("deu", None),
            ("den", None),
            ("it", None),
            ("x-de", None),
            ("i-default", None),
            ("zh-Hans", None),
        ] {
            assert_eq!(Language::look_up(tag), expected, "{tag}");
        }
    }

    #[test]
    fn the_language_that_is_preferred() {
        for (ranges, expected) in [
            ("", None),
            ("*", None),
            ("it", None),
            ("it, *;q=0.5", None),
            ("de", Some(German)),
            ("de-AT,de;q=0.9,en;q=0.8", Some(German)),
            ("en-US,en;q=0.9", Some(English)),
            ("it-IT,it;q=0.9,fr;q=0.5,en;q=0.4", Some(French)),
            ("en;q=0.7, ja", Some(Japanese)),
            ("en;q=0.7, ja;q=0.8", Some(Japanese)),
            ("fr;q=0.5, es;q=0.5", Some(French)),
            ("es;q=0.499, fr;q=0.5", Some(French)),
            ("de;q=0", None),
            ("de;q=0.000, fr;q=0.001", Some(French)),
            ("de;q=0, *", None),
            ("fr ; q=0.2 , ja\t;\tQ=1.000", Some(Japanese)),
            ("de;q=2, fr;q=0.1", Some(French)),
            ("de;q=, fr;q=0.1", Some(French)),
            ("de;q=-1, fr;q=0.1", Some(French)),
            ("de;q=0.1234, fr;q=0.1", Some(French)),
            ("de;q=NaN, fr;q=0.1", Some(French)),
            (",,;q=1,de", Some(German)),
            ("de;level=1;q=0.1, fr;q=0.2", Some(French)),
        ] {
            assert_eq!(Language::accepted(ranges), expected, "{ranges}");
        }
    }

    #[test]
    fn each_is_found_by_its_tag() {
        for language in Language::ALL {
            assert_eq!(Language::look_up(language.tag()), Some(language));
            let json = format!("\"{}\"", language.tag());
            assert_eq!(
                serde_json::to_string(&language).ok().as_deref(),
                Some(&*json)
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(ranges in "[a-zA-Z*;=q0-9.,é -]{0,80}") {
            let _ = (Language::accepted(&ranges), Language::look_up(&ranges));
        }
    }
}
