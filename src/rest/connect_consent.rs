//! The page that a connect link opens: who asks, what the app will be able to do, who runs the gateway, how to take
//! it back, and a button for each provider.

use std::fmt::Write as _;

use axum::response::Response;
use url::Url;

use super::AppState;
use super::connect_link::Asked;
use super::connect_pages::{PageProblem, ShownApp, framed_form, link_query, name};
use crate::config::{PluginSettings, PortalSettings};
use crate::mailboxes::PublicApp;
use mailgate_server::page::escaped;

/// The page of a link.
pub(super) fn consent(
    state: &AppState,
    app: &PublicApp,
    asked: &Asked,
) -> Result<Response, PageProblem> {
    let is_asked = |provider: &&PluginSettings| asked.plugin.is_none_or(|it| it == provider.plugin);
    let providers: Vec<_> = state.mailboxes.providers().filter(is_asked).collect();
    let app_name = name(&app.name);
    let mut body = format!("<p>{app_name} would like to send email from your mailbox.</p>");
    for provider in &providers {
        let query = link_query(&state.mailboxes, &asked.link(provider.plugin))
            .map_err(|error| PageProblem::internal(&error))?;
        // Writing to a String can't fail, here and below.
        let _ = write!(
            body,
            "<form method=\"post\" action=\"?{}\"><button class=\"main\" id=\"connect-{}\">Connect {}</button></form>",
            escaped(&query),
            provider.plugin,
            escaped(&provider.label)
        );
    }
    let reads = providers.iter().any(|provider| {
        let mailboxes = &state.mailboxes;
        mailboxes.tracks_replies(provider.plugin, &provider.scopes)
    });
    let _ = write!(body, "<h2>What {app_name} will be able to do</h2><ul>");
    body.push_str("<li class=\"card\">Send email from your address.</li>");
    if reads {
        body.push_str(
            "<li class=\"card\">See when somebody replies to that email. To do this, the gateway checks new \
             messages in your mailbox.</li>",
        );
    }
    body.push_str(
        "</ul><p class=\"soft\">You'll sign in and review the access on the \
         provider's own page. The gateway never sees your password.</p>",
    );
    let _ = write!(
        body,
        "<h2>How to remove the access</h2><p>Disconnect your mailbox in {app_name}, or remove the access in the security \
         settings of your account at {}.</p>",
        labels(&providers)
    );
    body.push_str(&operator(&state.portal, &state.base_url));
    Ok(framed_form(
        "Connect your mailbox",
        &ShownApp::from(app),
        &body,
    ))
}

fn labels(providers: &[&PluginSettings]) -> String {
    let labels: Vec<_> = providers.iter().map(|it| escaped(&it.label)).collect();
    labels.join(" or ")
}

/// Who runs the gateway, and where they help.
fn operator(portal: &PortalSettings, base_url: &str) -> String {
    let host = Url::parse(base_url).ok();
    let host = host.as_ref().and_then(Url::host_str).unwrap_or(base_url);
    let who = if portal.name.is_empty() {
        format!("This email gateway runs at {}.", name(host))
    } else {
        format!(
            "This email gateway is run by {}, at {}.",
            name(&portal.name),
            name(host)
        )
    };
    let help = if portal.support_url.is_empty() {
        String::new()
    } else {
        let address = escaped(&portal.support_url);
        format!(" <a href=\"{address}\" rel=\"noreferrer\">Get help</a>")
    };
    format!("<p class=\"soft\"><small>{who}{help}</small></p>")
}
