//! Content that is the same for every reader: stored once, compressed once, and sent again only after a change.
//!
//! Nothing that depends on the reader belongs here: a compressed response tells its secrets by its length (BREACH).

use std::borrow::Cow;
use std::io::{Read, Write};
use std::sync::OnceLock;

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use mailgate_types::hex::hex;

/// Bytes of the digest in an entity tag and in an address.
const DIGEST: usize = 8;

/// How long clients may use it without asking.
#[derive(Debug, Clone, Copy)]
pub enum Caching {
    /// For a year: its address has its digest.
    Immutable,
    /// For five minutes: its address is the same in the next version.
    Briefly,
}

/// This response's body takes no memory of its own.
#[derive(Debug, Clone, Copy)]
pub struct SharedBody;

/// A file or a page. The form that it isn't stored in is made when it is first asked for.
#[derive(Debug)]
pub struct Content {
    media_type: &'static str,
    caching: Caching,
    digest: String,
    plain: OnceLock<Bytes>,
    gzipped: OnceLock<Bytes>,
}

impl Content {
    /// Content as it is.
    #[must_use]
    pub fn new(plain: impl Into<Bytes>, media_type: &'static str, caching: Caching) -> Self {
        let plain = plain.into();
        Self {
            media_type,
            caching,
            digest: hex(&Sha256::digest(&plain)[..DIGEST]),
            plain: OnceLock::from(plain),
            gzipped: OnceLock::new(),
        }
    }

    /// Content that was compressed when the program was built.
    #[must_use]
    pub fn gzipped(gzipped: impl Into<Bytes>, media_type: &'static str, caching: Caching) -> Self {
        let gzipped = gzipped.into();
        Self {
            media_type,
            caching,
            digest: hex(&Sha256::digest(&gzipped)[..DIGEST]),
            plain: OnceLock::new(),
            gzipped: OnceLock::from(gzipped),
        }
    }

    /// Sixteen hexadecimal digits that change with the content.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The content itself.
    pub fn plain(&self) -> &Bytes {
        self.plain.get_or_init(|| {
            let mut plain = Vec::new();
            let stored = self.gzipped.get().map_or(&[][..], |stored| stored);
            // What was compressed when the program was built can be read.
            let _ = GzDecoder::new(stored).read_to_end(&mut plain);
            plain.into()
        })
    }

    /// The content in gzip's form.
    pub fn compressed(&self) -> &Bytes {
        self.gzipped.get_or_init(|| {
            let plain = self.plain.get().map_or(&[][..], |stored| stored);
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            // Writing to memory can't fail.
            let _ = encoder.write_all(plain);
            encoder.finish().unwrap_or_default().into()
        })
    }

    /// The response to a request with these headers: 304 if the client has it already.
    #[must_use]
    pub fn respond(&self, request: &HeaderMap) -> Response {
        let is_gzip = accepts_gzip(&joined(request, &ACCEPT_ENCODING));
        // A strong tag says which bytes follow, so each form has its own (RFC 9110 §8.8.3.3).
        let tag = if is_gzip {
            format!("\"{}-gzip\"", self.digest)
        } else {
            format!("\"{}\"", self.digest)
        };
        let is_known = matches(&joined(request, &IF_NONE_MATCH), &tag);
        let mut response = if is_known {
            Response::new(Body::empty())
        } else if is_gzip {
            Response::new(Body::from(self.compressed().clone()))
        } else {
            Response::new(Body::from(self.plain().clone()))
        };
        let caching = match self.caching {
            Caching::Immutable => "public, max-age=31536000, immutable",
            Caching::Briefly => "public, max-age=300",
        };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if let Ok(tag) = HeaderValue::try_from(tag) {
            headers.insert(ETAG, tag);
        }
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if is_gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response.extensions_mut().insert(SharedBody);
        response
    }
}

/// Several fields are equivalent to one with all their values (RFC 9110 §5.3).
fn joined<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Cow<'a, str> {
    let mut fields = headers.get_all(name).iter();
    let first = fields.next().and_then(|field| field.to_str().ok());
    let first = first.unwrap_or_default();
    fields
        .filter_map(|field| field.to_str().ok())
        .fold(Cow::Borrowed(first), |all, field| {
            Cow::Owned(format!("{all},{field}"))
        })
}

/// Whether gzip is accepted (RFC 9110 §12.5.3). A client that names no encodings may not be able to read any.
fn accepts_gzip(accepted: &str) -> bool {
    let weight = |wanted: &[&str]| {
        accepted.split(',').find_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let coding = parts.next()?.to_ascii_lowercase();
            let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
            let weight = weight.map_or(Some(1.0), |weight| weight.trim().parse::<f32>().ok());
            wanted
                .contains(&coding.as_str())
                .then_some(weight.unwrap_or_default())
        })
    };
    let weight = weight(&["gzip", "x-gzip"]).or_else(|| weight(&["*"]));
    weight.is_some_and(|weight| weight > 0.0)
}

/// Whether `If-None-Match` names this tag, by the weak comparison (RFC 9110 §13.1.2).
fn matches(named: &str, tag: &str) -> bool {
    named
        .split(',')
        .map(str::trim)
        .any(|named| named == "*" || named.strip_prefix("W/").unwrap_or(named) == tag)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const TEXT: &str = "body{color:red}body{color:red}body{color:red}";

    fn asked(content: &Content, named: &[(HeaderName, &str)]) -> Response {
        let mut headers = HeaderMap::new();
        for (name, value) in named {
            headers.append(name, value.parse().unwrap());
        }
        content.respond(&headers)
    }

    #[test]
    fn gzip_is_sent_to_those_who_accept_it() {
        for (accepted, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("br, gzip, deflate", true),
            ("x-gzip", true),
            ("*", true),
            ("*;q=0, gzip", true),
            ("gzip;q=0, *", false),
            ("gzip; q=0.000", false),
            ("gzip;q=much", false),
            ("*;q=0", false),
            ("br", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(accepted), expected, "{accepted}");
        }
    }

    #[test]
    fn both_forms_have_the_same_content_and_tags_of_their_own() {
        let plain = Content::new(TEXT, "text/css", Caching::Briefly);
        let stored = plain.compressed().clone();
        assert!(stored.len() < TEXT.len());
        let gzipped = Content::gzipped(stored, "text/css", Caching::Immutable);
        assert_eq!(gzipped.plain(), TEXT.as_bytes());
        let whole = asked(&plain, &[]);
        let short = asked(&plain, &[(ACCEPT_ENCODING, "gzip")]);
        assert_ne!(whole.headers()[ETAG], short.headers()[ETAG]);
        assert!(!whole.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(short.headers()[CONTENT_ENCODING], "gzip");
        for response in [whole, short] {
            assert_eq!(response.headers()[VARY], "accept-encoding");
            assert_eq!(response.headers()[CACHE_CONTROL], "public, max-age=300");
            assert!(response.extensions().get::<SharedBody>().is_some());
        }
    }

    #[test]
    fn a_client_that_has_it_gets_no_body() {
        let content = Content::new(TEXT, "text/css", Caching::Briefly);
        let tag = format!("\"{}\"", content.digest());
        let gzip_tag = format!("\"{}-gzip\"", content.digest());
        for (named, accepted, expected) in [
            (tag.clone(), "", 304),
            (format!("W/{tag}"), "", 304),
            (format!("\"x\", {tag}"), "", 304),
            ("*".to_owned(), "", 304),
            (gzip_tag.clone(), "gzip", 304),
            (gzip_tag, "", 200),
            (tag, "gzip", 200),
            ("\"x\"".to_owned(), "", 200),
        ] {
            let headers = [(IF_NONE_MATCH, &*named), (ACCEPT_ENCODING, accepted)];
            let response = asked(&content, &headers);
            assert_eq!(response.status(), expected, "{named} {accepted}");
            assert!(response.headers().contains_key(ETAG));
            assert!(response.headers().contains_key(VARY));
        }
    }
}
