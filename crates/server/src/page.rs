//! The HTML frame of all pages, including the sandbox's: inline style, no script except a page's own live update, and
//! nothing external except an app's logo. The Content-Security-Policy enforces it.

use askama::Template;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use url::Url;

use mailgate_types::language::Language;

const STYLE: &str = "\
:root{color-scheme:light dark;--text:#16181d;--soft:#59606b;--page:#f7f8fa;--card:#fff;--line:#838a94;--rule:#e2e5e9;--accent:#0b5cad;--good:#14653a;--danger:#b3261e;--on:#fff}\
@media(prefers-color-scheme:dark){:root{--text:#eceef1;--soft:#a3aab4;--page:#0e1013;--card:#16191d;--line:#767e89;--rule:#2b3037;--accent:#70b8ff;--good:#7bd69b;--danger:#ff8a80;--on:#0d1b2a}.logo{background:#fff;border-radius:.5rem;padding:.5rem}}\
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
button.main{background:var(--accent);border-color:var(--accent);color:var(--on);font-weight:600;font-size:1.1rem;padding:1rem}\
button.danger{border-color:var(--danger);color:var(--danger)}\
a.button{display:block;background:var(--accent);color:var(--on);border-radius:.5rem;font-weight:600;font-size:1.1rem;margin:.7rem 0;padding:1rem;text-align:center;text-decoration:none}\
:focus-visible{outline:3px solid var(--accent);outline-offset:3px}\
\
.sign-in{display:flex;align-items:center;justify-content:center;max-width:400px;min-height:40px;margin:.5rem 0;padding:.3rem 12px;border-radius:4px;cursor:pointer;font:500 14px/20px Roboto,arial,sans-serif;letter-spacing:.25px;background:#fff;border:1px solid #747775;color:#1f1f1f}\
.sign-in svg{flex:none;width:20px;height:20px;margin-right:10px}\
.sign-in.microsoft{min-height:41px;border-color:#8c8c8c;border-radius:0;color:#5e5e5e;font:600 15px/20px \"Segoe UI\",\"Segoe UI Variable\",system-ui,sans-serif;letter-spacing:0}.sign-in.microsoft svg{width:21px;height:21px;margin-right:12px}\
@media(prefers-color-scheme:dark){.sign-in{background:#131314;border-color:#8e918f;color:#e3e3e3}.sign-in.microsoft{background:#2f2f2f;color:#fff}}\
.languages{margin-top:1.5rem}.languages a,.languages span{display:inline-block;padding:.3rem .7rem .3rem 0}\
.search{display:flex;gap:.5rem;align-items:stretch;margin:.6rem 0}.search button,.acts button{width:auto;margin:0;padding:.5rem 1rem}.acts{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center}\
details{margin:.6rem 0}summary{cursor:pointer;padding:.4rem 0}summary h2{display:inline;margin:0}\
iframe{display:block;width:100%;height:60vh;resize:vertical;background:#fff;border:1px solid var(--line);border-radius:.6rem}\
.points{list-style:disc;padding-left:1.3rem}\
body:has(.narrow){max-width:32rem}.logo{display:block;max-width:12rem;max-height:6rem;margin:.5rem 0 1rem}\
body:has(.narrow) main{max-width:30rem;margin:0 auto;padding:1rem 1.5rem;background:var(--card);border:1px solid var(--rule);border-radius:.5rem}body:has(.narrow) h1{font-size:1.25rem;line-height:1.75rem;font-weight:600}@media(max-width:32rem){body:has(.narrow) main{padding:.5rem 1rem}}\
.lead{font-size:1.125rem;line-height:1.625rem}\
.marks li{display:flex;gap:.5rem;padding:.25rem 0}.marks svg{flex:none;width:1.25rem;height:1.25rem;margin-top:.125rem;fill:none;stroke:currentColor;stroke-width:2.5;stroke-linecap:round;stroke-linejoin:round}.yes svg{color:var(--good)}.no svg{color:var(--danger)}";

/// How a page is kept up to date.
#[derive(Debug, Clone, Copy)]
struct Live {
    script: &'static str,
    /// `None`: without scripts the page stays as it is.
    seconds: Option<u32>,
}

/// The permitted targets of a page's forms.
#[derive(Debug, Clone, Copy)]
enum Forms {
    None,
    Here,
    /// To a response that redirects to a client.
    Redirecting,
}

/// A page around a template, which escapes untrusted text; a plain string is not accepted. By default it has no images
/// and no forms.
#[derive(Debug, Template)]
#[template(path = "page.html")]
pub struct Page<'a, T: Template> {
    status: StatusCode,
    title: &'a str,
    body: T,
    live: Option<Live>,
    /// The style of a page that lays itself out.
    own_style: Option<&'static str>,
    forms: Forms,
    has_frames: bool,
    logo: Option<(&'a str, &'a str)>,
    /// `None`: the page is English only.
    language: Option<Language>,
}

impl<'a, T: Template> Page<'a, T> {
    /// Creates a page with `body` below the title.
    #[must_use]
    pub fn new(status: StatusCode, title: &'a str, body: T) -> Self {
        Self {
            status,
            title,
            body,
            live: None,
            own_style: None,
            forms: Forms::None,
            has_frames: false,
            logo: None,
            language: None,
        }
    }

    /// Adds a script that keeps the page up to date; browsers without scripts reload it after this many seconds. The
    /// script may fetch pages from this server.
    #[must_use]
    pub fn live(self, script: &'static str, seconds: u32) -> Self {
        Self {
            live: Some(Live {
                script,
                seconds: Some(seconds),
            }),
            ..self
        }
    }

    /// Adds a script that keeps the page up to date; browsers without scripts leave it as it is.
    #[must_use]
    pub fn live_by_script(self, script: &'static str) -> Self {
        Self {
            live: Some(Live {
                script,
                seconds: None,
            }),
            ..self
        }
    }

    /// Lays the page out by a style of its own, over the usual one: `body` has the heading too, and the whole window.
    #[must_use]
    pub fn laid_out(self, style: &'static str) -> Self {
        Self {
            own_style: Some(style),
            ..self
        }
    }

    /// Allows forms to this server.
    #[must_use]
    pub fn with_forms(self) -> Self {
        Self {
            forms: Forms::Here,
            ..self
        }
    }

    /// Allows frames with documents from this server.
    #[must_use]
    pub fn with_frames(self) -> Self {
        Self {
            has_frames: true,
            ..self
        }
    }

    /// Allows forms to this server that redirect to a client, which may redirect anywhere: browsers apply the policy to
    /// those redirects as well.
    #[must_use]
    pub fn with_redirecting_forms(self) -> Self {
        Self {
            forms: Forms::Redirecting,
            ..self
        }
    }

    /// Adds an image above the title, with its alternative text. Only its own origin may be loaded from.
    #[must_use]
    pub fn with_logo(self, address: &'a str, words: &'a str) -> Self {
        Self {
            logo: Some((address, words)),
            ..self
        }
    }

    /// Sets the language, which was negotiated: caches must vary by it.
    #[must_use]
    pub fn in_language(self, language: Language) -> Self {
        Self {
            language: Some(language),
            ..self
        }
    }

    fn tag(&self) -> &'static str {
        self.language.unwrap_or_default().tag()
    }

    fn policy(&self) -> String {
        let style: Vec<String> = [Some(STYLE), self.own_style]
            .into_iter()
            .flatten()
            .map(|style| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(style))))
            .collect();
        let style = style.join(" ");
        let forms = match self.forms {
            Forms::None => "'none'",
            Forms::Here => "'self'",
            Forms::Redirecting => "'self' http: https:",
        };
        let frames = if self.has_frames {
            "; frame-src 'self'"
        } else {
            ""
        };
        let images = self
            .logo
            .and_then(|(address, _)| Url::parse(address).ok())
            .filter(Url::has_host)
            .map(|address| address.origin().ascii_serialization())
            .filter(|origin| is_source(origin))
            .map_or_else(String::new, |origin| format!("; img-src {origin}"));
        let scripts = self.live.map_or_else(String::new, |live| {
            let script = STANDARD.encode(Sha256::digest(live.script));
            format!("; script-src 'sha256-{script}'; connect-src 'self'")
        });
        format!(
            "default-src 'none'; style-src {style}; form-action {forms}; base-uri 'none'; \
             frame-ancestors 'none'{scripts}{frames}{images}"
        )
    }
}

impl<T: Template> IntoResponse for Page<'_, T> {
    fn into_response(self) -> Response {
        // Without any referrer, older browsers omit the origin of a form submission too.
        let referrer = match self.forms {
            Forms::None => "no-referrer",
            Forms::Here | Forms::Redirecting => "same-origin",
        };
        // Writing to a String can't fail.
        let html = self.render().unwrap_or_default();
        let mut response = (self.status, html).into_response();
        let headers = response.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, referrer),
            (CACHE_CONTROL, "no-store"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        // The policy is ASCII without line ends; the fallback allows nothing.
        let policy = HeaderValue::try_from(self.policy())
            .unwrap_or(HeaderValue::from_static("default-src 'none'"));
        headers.insert(CONTENT_SECURITY_POLICY, policy);
        if self.language.is_some() {
            headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(self.tag()));
            headers.insert(VARY, HeaderValue::from_static("accept-language"));
        }
        response
    }
}

/// Hosts may hold characters that would end the directive, such as a semicolon.
#[must_use]
pub fn is_source(origin: &str) -> bool {
    origin
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b":/.-_[]".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Template)]
    #[template(source = "", ext = "html")]
    struct Nothing;

    #[test]
    fn the_policy_names_the_origin_of_an_image_and_no_more() {
        let page = |image| Page::new(StatusCode::OK, "Title", Nothing).with_logo(image, "");
        for (image, expected) in [
            (
                "https://cdn.example:8443/a/b.png?c=d",
                "; img-src https://cdn.example:8443",
            ),
            (
                "https://bücher.example/x",
                "; img-src https://xn--bcher-kva.example",
            ),
            ("https://x.example;script-src", ""),
            ("https://x.example,y", ""),
            ("data:image/png;base64,AA", ""),
            ("", ""),
        ] {
            let policy = page(image).policy();
            let (_, images) = policy
                .split_once("frame-ancestors 'none'")
                .unwrap_or_default();
            assert_eq!(images, expected, "{image}");
        }
    }
}
