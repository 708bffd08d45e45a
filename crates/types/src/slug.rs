//! An app's slug: its `app_id` in the REST interface and its SMTP user name.

/// Longest slug, without the suffix that distinguishes apps of the same name.
const MAXIMUM_LENGTH: usize = 64;

/// The slug for a name without usable characters.
const FALLBACK: &str = "app";

/// The name in lower case, spaces removed, transliterated to `[a-z0-9-]`.
#[must_use]
pub fn slug(name: &str) -> String {
    let slug: String = deunicode::deunicode(name)
        .chars()
        .filter_map(|character| match character.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9' | '-') => Some(letter),
            '_' | '.' | '/' => Some('-'),
            _ => None,
        })
        .take(MAXIMUM_LENGTH)
        .collect();
    match slug.trim_matches('-') {
        "" => FALLBACK.to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        for (name, expected) in [
            ("My App", "myapp"),
            ("ACME", "acme"),
            ("Crème Brûlée", "cremebrulee"),
            ("Straße 7", "strasse7"),
            ("under_score.io", "under-score-io"),
            ("Acme & Co.", "acmeco"),
            ("_private_", "private"),
            ("a - b", "a-b"),
            ("???", "app"),
            ("-", "app"),
            ("", "app"),
        ] {
            assert_eq!(slug(name), expected, "{name}");
        }
        assert_eq!(slug(&"x".repeat(255)).len(), MAXIMUM_LENGTH);
        assert_eq!(slug(&format!("{}.x", "x".repeat(63))), "x".repeat(63));
    }
}
