//! The page of a connect link: the app, the access that it gets and doesn't get, the gateway's operator,
//! how to remove access, and a button for each provider.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use url::Url;

use super::button::{Button, Removal};
use super::link::Asked;
use super::messages::{Messages, Names};
use super::pages::{PageProblem, ShownApp, link_query, under_logo};
use crate::AppState;
use crate::http::visitor::{LanguageLink, Visitor};
use mailgate_domain::mailboxes::PublicApp;
use mailgate_server::page::Page;
use mailgate_settings::{PortalSettings, ProviderKind};
use mailgate_types::seal::SealError;

#[derive(Template)]
#[template(path = "connect/consent.html")]
struct Consent<'a> {
    m: &'static Messages,
    name: &'a Names<'a>,
    /// The app's name, and all of the providers.
    at_all: &'a Names<'a>,
    /// The gateway's operator, or else its host.
    gateway: &'a Names<'a>,
    buttons: &'a [Button<'a>],
    /// Whether the gateway detects replies.
    reads: bool,
    removals: Vec<Removal<'a>>,
    portal: &'a PortalSettings,
    languages: Vec<LanguageLink>,
}

/// A link's page.
pub(crate) fn consent(
    state: &AppState,
    app: &PublicApp,
    asked: &Asked,
    visitor: &Visitor,
) -> Result<Response, PageProblem> {
    let mailboxes = &state.mailboxes;
    let providers: Vec<_> = mailboxes
        .providers()
        .filter(|it| asked.plugin.is_none_or(|plugin| plugin == it.plugin))
        .collect();
    let has_brand = providers.iter().any(|it| it.kind != ProviderKind::Generic);
    let buttons = providers
        .iter()
        .map(|it| {
            let query = link_query(mailboxes, &asked.link(it.plugin, visitor.asked()))?;
            Ok(Button::new(it, query, has_brand))
        })
        .collect::<Result<Vec<_>, SealError>>()
        .map_err(|error| PageProblem::internal(&error))?;
    let m = visitor.messages();
    let labels: Vec<&str> = providers.iter().map(|it| it.label.as_str()).collect();
    let base_url = Url::parse(&state.base_url).ok();
    let host = base_url.as_ref().and_then(Url::host_str);
    let content = Consent {
        m,
        name: &Names::app(&app.name),
        at_all: &Names {
            label: &labels.join(m.or),
            ..Names::app(&app.name)
        },
        gateway: &Names {
            operator: if state.portal.name.is_empty() {
                host.unwrap_or(&state.base_url)
            } else {
                &state.portal.name
            },
            ..Names::default()
        },
        reads: providers
            .iter()
            .any(|it| mailboxes.tracks_replies(it.plugin, &it.scopes)),
        removals: providers.iter().flat_map(|it| Removal::of(it)).collect(),
        buttons: &buttons,
        portal: &state.portal,
        languages: visitor.languages(),
    };
    // Its buttons lead to other sites' pages.
    let page = Page::new(StatusCode::OK, m.consent.title, content).with_redirecting_forms();
    let page = page.in_language(visitor.language());
    Ok(under_logo(page, &ShownApp::from(app), m))
}
