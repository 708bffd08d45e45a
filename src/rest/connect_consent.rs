//! The page that a connect link opens: who asks, what the app will be able to do, who runs the gateway, how to take
//! it back, and a button for each provider.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use url::Url;

use super::AppState;
use super::connect_link::Asked;
use super::connect_pages::{PageProblem, ShownApp, link_query, under_logo};
use crate::config::{PluginSettings, PortalSettings};
use crate::mailboxes::PublicApp;
use mailgate_server::page::Page;
use mailgate_types::seal::SealError;

#[derive(Template)]
#[template(path = "connect/consent.html")]
struct Consent<'a> {
    app: &'a str,
    /// Each with the query of the link to it.
    providers: Vec<(&'a PluginSettings, String)>,
    /// Whether the gateway looks for replies.
    reads: bool,
    /// Who runs the gateway, and where they help.
    portal: &'a PortalSettings,
    host: &'a str,
}

/// The page of a link.
pub(super) fn consent(
    state: &AppState,
    app: &PublicApp,
    asked: &Asked,
) -> Result<Response, PageProblem> {
    let mailboxes = &state.mailboxes;
    let providers = mailboxes
        .providers()
        .filter(|it| asked.plugin.is_none_or(|plugin| plugin == it.plugin))
        .map(|it| Ok((it, link_query(mailboxes, &asked.link(it.plugin))?)))
        .collect::<Result<Vec<_>, SealError>>()
        .map_err(|error| PageProblem::internal(&error))?;
    let base_url = Url::parse(&state.base_url).ok();
    let host = base_url.as_ref().and_then(Url::host_str);
    let content = Consent {
        app: &app.name,
        reads: providers
            .iter()
            .any(|(it, _)| mailboxes.tracks_replies(it.plugin, &it.scopes)),
        providers,
        portal: &state.portal,
        host: host.unwrap_or(&state.base_url),
    };
    // Its buttons lead to somebody else's pages.
    let page = Page::new(StatusCode::OK, "Connect your mailbox", content).with_redirecting_forms();
    Ok(under_logo(page, &ShownApp::from(app)))
}
