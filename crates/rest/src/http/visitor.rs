//! The reader of a page: the language, the request, and the gateway's operator.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::header::ACCEPT_LANGUAGE;
use axum::http::request::Parts;
use url::form_urlencoded::{Serializer, parse};

use crate::connect::messages::{Messages, messages};
use mailgate_server::failure::RequestId;
use mailgate_settings::PortalSettings;
use mailgate_types::language::Language;

/// The parameter that selects a language.
pub(crate) const PARAMETER: &str = "locale";

/// The reader of a page.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    /// The language in `?locale=`, if it is supported.
    asked: Option<Language>,
    /// The browser's preference.
    preferred: Language,
    /// As in `X-Request-Id`.
    pub(crate) request_id: String,
    /// The address's own query without the language; `None`: the page can't be reloaded.
    query: Option<Vec<(String, String)>>,
    /// The gateway's operator.
    pub(crate) portal: Arc<PortalSettings>,
}

/// A link to the same page in another language.
#[derive(Debug)]
pub(crate) struct LanguageLink {
    pub(crate) language: Language,
    /// `None`: the current language.
    pub(crate) query: Option<String>,
}

impl<S> FromRequestParts<S> for Visitor
where
    S: Send + Sync,
    Arc<PortalSettings>: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        let id = parts.extensions.get::<RequestId>();
        let id = id.map(|id| id.0.clone()).unwrap_or_default();
        let portal = Arc::from_ref(state);
        Ok(Self::new(query, &parts.headers, id, portal))
    }
}

impl Visitor {
    /// The reader who sent these headers.
    pub(crate) fn new(
        query: &str,
        headers: &HeaderMap,
        request_id: String,
        portal: Arc<PortalSettings>,
    ) -> Self {
        let (locales, query): (Vec<_>, Vec<_>) = parse(query.as_bytes())
            .into_owned()
            .partition(|(name, _)| name == PARAMETER);
        let asked = locales.iter().find_map(|(_, tag)| Language::look_up(tag));
        // Several fields are equivalent to one with all their values (RFC 9110 §5.3).
        let fields = headers.get_all(ACCEPT_LANGUAGE).iter();
        let accepted: Vec<&str> = fields.filter_map(|field| field.to_str().ok()).collect();
        Self {
            asked,
            preferred: Language::accepted(&accepted.join(",")).unwrap_or_default(),
            request_id,
            query: Some(query),
            portal,
        }
    }

    /// The language in the page's address: later pages keep it.
    pub(crate) fn asked(&self) -> Option<Language> {
        self.asked
    }

    /// The page's language.
    pub(crate) fn language(&self) -> Language {
        self.asked.unwrap_or(self.preferred)
    }

    /// The texts in it.
    pub(crate) fn messages(&self) -> &'static Messages {
        messages(self.language())
    }

    /// The same reader in a flow that began in this language.
    pub(crate) fn begun_in(self, language: Option<Language>) -> Self {
        Self {
            asked: self.asked.or(language),
            ..self
        }
    }

    /// The page must not be reloaded.
    pub(crate) fn once(self) -> Self {
        Self {
            query: None,
            ..self
        }
    }

    /// Links to the page in each language; none if it must not be reloaded.
    pub(crate) fn languages(&self) -> Vec<LanguageLink> {
        let Some(query) = &self.query else {
            return Vec::new();
        };
        let link = |language: Language| {
            let mut link = Serializer::new(String::new());
            link.extend_pairs(query)
                .append_pair(PARAMETER, language.tag());
            LanguageLink {
                language,
                query: (language != self.language()).then(|| link.finish()),
            }
        };
        Language::ALL.into_iter().map(link).collect()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn visitor(query: &str, accepted: &[&'static str]) -> Visitor {
        let mut headers = HeaderMap::new();
        for accepted in accepted {
            headers.append(ACCEPT_LANGUAGE, HeaderValue::from_static(accepted));
        }
        Visitor::new(query, &headers, String::new(), Arc::default())
    }

    #[test]
    fn the_address_comes_before_the_browser() {
        for (query, accepted, tag) in [
            ("", &[][..], "en"),
            ("", &["de-AT,de;q=0.9"], "de"),
            ("", &["it", "ja;q=0.1"], "ja"),
            ("", &["it"], "en"),
            ("locale=fr", &["de"], "fr"),
            ("locale=fr-CA", &[], "fr"),
            ("locale=en", &["de"], "en"),
            ("locale=it", &["de"], "de"),
            ("locale=", &["de"], "de"),
            ("locale=it&locale=es", &["de"], "es"),
            ("locale=%FF", &["de"], "de"),
        ] {
            let visitor = visitor(query, accepted);
            assert_eq!(visitor.language().tag(), tag, "{query} {accepted:?}");
        }
        let visitor = visitor("", &["de"]);
        assert_eq!(
            visitor.asked(),
            None,
            "what the browser says, it says itself"
        );
        let visitor = visitor.begun_in(Some(Language::French));
        assert_eq!(visitor.asked(), Some(Language::French));
    }

    #[test]
    fn links_keep_what_the_address_says() {
        let visitor = visitor("a=%3Cb%3E&locale=de&a=%26", &[]);
        let links = visitor.languages();
        let queries: Vec<_> = links.iter().map(|link| link.query.as_deref()).collect();
        assert_eq!(
            queries,
            [
                Some("a=%3Cb%3E&a=%26&locale=en"),
                None,
                Some("a=%3Cb%3E&a=%26&locale=fr"),
                Some("a=%3Cb%3E&a=%26&locale=es"),
                Some("a=%3Cb%3E&a=%26&locale=ja"),
            ]
        );
        assert!(visitor.once().languages().is_empty());
    }
}
