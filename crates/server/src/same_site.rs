//! Protects against cross-site request forgery: other sites' pages can't submit forms here for the user.

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Whether a request comes from another site's page. Browsers send the origin; other programs don't.
#[must_use]
pub fn is_foreign(headers: &HeaderMap, uri: &Uri) -> bool {
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        return !matches!(site.as_bytes(), b"same-origin" | b"none");
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return false;
    };
    // HTTP/2 has the host in the target (RFC 9113 §8.3.1).
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = uri.authority().map(Authority::as_str).or(host);
    let origin = origin.to_str().ok();
    let origin = origin.and_then(|origin| origin.split_once("://"));
    match (origin, host) {
        (Some((_, origin)), Some(host)) => !origin.eq_ignore_ascii_case(host),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_pages_and_programs_change_things() {
        for (fields, foreign) in [
            (&[][..], false),
            (&[("sec-fetch-site", "same-origin")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "cross-site")], true),
            (&[("sec-fetch-site", "same-site")], true),
            (
                &[
                    ("origin", "http://127.0.0.1:8025"),
                    ("host", "127.0.0.1:8025"),
                ],
                false,
            ),
            (
                &[
                    ("origin", "http://127.0.0.1:8080"),
                    ("host", "127.0.0.1:8025"),
                ],
                true,
            ),
            (&[("origin", "null"), ("host", "127.0.0.1:8025")], true),
            (&[("origin", "http://evil.example")], true),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.insert(*name, axum::http::HeaderValue::from_static(value));
            }
            let uri = Uri::from_static("/x");
            assert_eq!(is_foreign(&headers, &uri), foreign, "{fields:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(
            ORIGIN,
            axum::http::HeaderValue::from_static("http://a.example"),
        );
        assert!(!is_foreign(
            &headers,
            &Uri::from_static("http://a.example/x")
        ));
        assert!(is_foreign(
            &headers,
            &Uri::from_static("http://b.example/x")
        ));
    }
}
