//! The one HTML frame of the sandbox's pages: inline style, no scripts, nothing from outside.

use std::borrow::Cow;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

const STYLE: &str = "\
:root{color-scheme:light dark;--text:#1c2024;--soft:#60646c;--page:#f6f7f9;--card:#fff;--line:#d9dce1;--accent:#0b5cad;--on:#fff}\
@media(prefers-color-scheme:dark){:root{--text:#edeef0;--soft:#a3a8b0;--page:#111214;--card:#1a1c1f;--line:#363a40;--accent:#70b8ff;--on:#10243a}}\
*{box-sizing:border-box}\
body{margin:0 auto;max-width:52rem;padding:1.25rem 1rem 3rem;background:var(--page);color:var(--text);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}\
h1{font-size:1.4rem;margin:.5rem 0 1rem}h2{font-size:1.05rem;margin:1.5rem 0 .5rem}\
a{color:var(--accent)}small,.soft{color:var(--soft)}\
.card{display:block;background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.8rem 1rem;margin:.6rem 0}\
ul{list-style:none;margin:0;padding:0}\
dl{display:grid;grid-template-columns:minmax(5rem,max-content) 1fr;gap:.2rem .8rem;margin:0}dt{color:var(--soft)}@media(max-width:32rem){dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}}dd{margin:0}\
pre{white-space:pre-wrap;font:.9rem/1.45 ui-monospace,monospace;margin:0}\
code{font-family:ui-monospace,monospace}\
label{display:block;margin:.2rem 0}\
input{width:100%;font:inherit;padding:.7rem;border:1px solid var(--line);border-radius:.5rem;background:var(--page);color:inherit}\
button{width:100%;font:inherit;padding:.8rem;margin:.5rem 0;border:1px solid var(--line);border-radius:.5rem;background:var(--card);color:inherit;cursor:pointer}\
button.main{background:var(--accent);border-color:var(--accent);color:var(--on);font-weight:600;font-size:1.1rem;padding:1rem}";

/// Where a page's forms may lead. Browsers apply it to the redirects that follow as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sandbox) enum Forms {
    /// The page has none.
    None,
    /// The answer to the form redirects to the client, and the client on to wherever it likes.
    Redirecting,
}

/// What a page consists of; `body` is HTML, every foreign part of it already [`escaped`].
#[derive(Debug)]
pub(in crate::sandbox) struct Page<'a> {
    pub(in crate::sandbox) status: StatusCode,
    /// Plain text.
    pub(in crate::sandbox) title: &'a str,
    pub(in crate::sandbox) body: &'a str,
    /// Seconds after which the browser loads it again.
    pub(in crate::sandbox) refresh: Option<u32>,
    pub(in crate::sandbox) forms: Forms,
}

impl IntoResponse for Page<'_> {
    fn into_response(self) -> Response {
        let refresh = self.refresh.map_or_else(String::new, |seconds| {
            format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">")
        });
        let html = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">{refresh}\
             <title>{title}</title><style>{STYLE}</style></head>\
             <body><h1>{title}</h1>{body}</body></html>",
            title = escaped(self.title),
            body = self.body,
        );
        let policy = match self.forms {
            Forms::None => {
                "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
            }
            Forms::Redirecting => {
                "default-src 'none'; style-src 'unsafe-inline'; form-action 'self' http: https:; base-uri 'none'; frame-ancestors 'none'"
            }
        };
        let headers: [(HeaderName, HeaderValue); 5] = [
            (
                CONTENT_TYPE,
                HeaderValue::from_static("text/html; charset=utf-8"),
            ),
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        (self.status, headers, html).into_response()
    }
}

/// `text` for use in HTML text and in quoted attributes.
pub(in crate::sandbox) fn escaped(text: &str) -> Cow<'_, str> {
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
