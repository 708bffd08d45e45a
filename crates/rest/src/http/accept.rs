//! Content negotiation (RFC 9110 §12.5.1): JSON, unless the caller prefers CSV.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `application/json`.
    Json,
    /// `text/csv`.
    Csv,
}

/// A format's weight in thousandths, and the specificity of its range: 1 for `*/*`, 3 for the type itself.
type Preference = (u16, u8);

/// The preferred format. Without a preference it is JSON; `None` if JSON is explicitly refused and CSV isn't
/// accepted.
pub(crate) fn negotiate(headers: &HeaderMap) -> Option<Format> {
    let fields = headers.get_all(ACCEPT).iter();
    let accepted: Vec<&str> = fields.filter_map(|field| field.to_str().ok()).collect();
    let accepted = accepted.join(",");
    let json = preference(&accepted, "application", "json");
    let csv = preference(&accepted, "text", "csv");
    let wants_csv = csv.is_some_and(|(weight, exactness)| {
        let (of_json, exactness_of_json) = json.unwrap_or_default();
        weight > of_json || weight == of_json && weight > 0 && exactness > exactness_of_json
    });
    match json {
        _ if wants_csv => Some(Format::Csv),
        Some((0, _)) => None,
        _ => Some(Format::Json),
    }
}

/// The weight that the most specific range gives a type.
fn preference(accepted: &str, wanted: &str, subtype: &str) -> Option<Preference> {
    let ranges = accepted.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let (kind, sub) = parts.next()?.split_once('/')?;
        let exactness = match (kind, sub) {
            ("*", "*") => 1,
            (kind, "*") if kind.eq_ignore_ascii_case(wanted) => 2,
            (kind, sub)
                if kind.eq_ignore_ascii_case(wanted) && sub.eq_ignore_ascii_case(subtype) =>
            {
                3
            }
            _ => return None,
        };
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        Some((weight.map_or(Some(1_000), thousandths)?, exactness))
    });
    ranges.max_by_key(|(weight, exactness)| (*exactness, *weight))
}

/// A weight between 0 and 1 with at most three digits.
fn thousandths(text: &str) -> Option<u16> {
    let weight: f32 = text
        .trim()
        .parse()
        .ok()
        .filter(|weight| (0.0..=1.0).contains(weight))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and 1"
    )]
    Some((weight * 1_000.0).round() as u16)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn negotiated(accepted: &[&str]) -> Option<Format> {
        let mut headers = HeaderMap::new();
        for accepted in accepted {
            if let Ok(value) = HeaderValue::from_str(accepted) {
                headers.append(ACCEPT, value);
            }
        }
        negotiate(&headers)
    }

    #[test]
    fn the_form_that_is_wanted() {
        for (accepted, expected) in [
            ("text/csv", Some(Format::Csv)),
            ("TEXT/CSV; charset=utf-8; Q=0.5", Some(Format::Csv)),
            ("text/csv, */*", Some(Format::Csv)),
            ("text/csv, application/json;q=0.9", Some(Format::Csv)),
            ("text/*", Some(Format::Csv)),
            ("*/*;q=0.1, text/csv", Some(Format::Csv)),
            ("application/json;q=0, text/csv;q=0.1", Some(Format::Csv)),
            ("application/json;q=0, */*", Some(Format::Csv)),
            ("", Some(Format::Json)),
            ("*/*", Some(Format::Json)),
            ("application/json, text/csv", Some(Format::Json)),
            ("text/csv;q=0.1, application/json", Some(Format::Json)),
            ("text/csv;q=0, */*", Some(Format::Json)),
            ("text/csv;q=0", Some(Format::Json)),
            ("text/csv;q=much", Some(Format::Json)),
            (
                "text/html,application/xhtml+xml,*/*;q=0.8",
                Some(Format::Json),
            ),
            ("text/html", Some(Format::Json)),
            ("application/json;q=0", None),
            ("*/*;q=0", None),
            ("application/json;q=0, text/csv;q=0", None),
        ] {
            assert_eq!(negotiated(&[accepted]), expected, "{accepted}");
        }
        assert_eq!(negotiated(&[]), Some(Format::Json));
        let two = ["text/html", "text/csv"];
        assert_eq!(negotiated(&two), Some(Format::Csv));
    }

    proptest! {
        #[test]
        fn any_text_is_read(accepted in "[a-z/*;=q0-9., ]{0,60}") {
            let _ = negotiated(&[&accepted]);
        }
    }
}
