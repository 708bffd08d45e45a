//! The connect link: a page that names the app and the access it requests, and the button that leads to the provider.

mod back;
mod button;
pub(super) mod callback;
mod consent;
mod failure;
mod link;
pub(super) mod messages;
pub(super) mod pages;
mod pending;
pub(super) mod result;
pub(super) mod sessions;

use std::net::IpAddr;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::AppState;
use crate::http::authority::ClientAddress;
use crate::http::browser::Browser;
use crate::http::query::QueryParameters;
use crate::http::visitor::Visitor;
use back::Back;
use consent::consent;
use link::{open, plugin_off, wrong};
use mailgate_domain::mailboxes::BeginError;
use mailgate_server::same_site::is_foreign;
use mailgate_types::language::Language;
use pages::{PageProblem, redirect};

/// The query parameters of a connect link.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes parameters that are parsed by hand")]
pub(super) struct LinkParameters {
    /// The provider. If omitted, the user chooses on the page.
    #[param(value_type = Option<String>, pattern = "^plugin_[ab]$", example = "plugin_a")]
    plugin: Option<String>,
    /// Your own ID for the end user, required when the app is multiuser. It is passed back to your
    /// `callback_url`, and `POST /send` accepts it.
    #[param(value_type = Option<String>, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    user_id: Option<String>,
    /// The account that the provider's page suggests to the user.
    #[param(value_type = Option<String>, max_length = 320, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    login_hint: Option<String>,
    /// The language of the pages: a language tag, such as `de` or `fr-CA`. Supported are `en`, `de`, `fr`, `es` and
    /// `ja`. If omitted or unsupported, the browser's `Accept-Language` decides, then English. All pages of this
    /// connection keep it, and providers that accept a language receive it.
    #[param(value_type = Option<String>, example = "de")]
    locale: Option<String>,
    /// A connect session, from the link that `POST /apps/{pushable_key}/connect-sessions` returned. It already holds
    /// the user and the account, so `user_id` and `login_hint` must not be given with it.
    session: Option<String>,
}

/// The link with which your end users connect a mailbox. Open it in a browser. The response is a page that names the
/// app and the access it gets, with a button for each provider, or only for the provider that the link names. Opening
/// it changes nothing.
#[utoipa::path(
    get,
    path = "/connect/{pushable_key}",
    operation_id = "connect",
    tag = "Connect",
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        LinkParameters,
    ),
    responses(
        (status = 200, body = String, content_type = "text/html", description = "The page", headers(("Set-Cookie" = String, description = "The site where the user opened the link, kept for an hour; left out if there is none"))),
        (status = 403, body = String, content_type = "text/html", description = "`app_suspended`: the operator has suspended the app's account"),
        (status = 404, body = String, content_type = "text/html", description = "`link_not_found`: the pushable key is not in use, or was renewed"),
        (status = 410, body = String, content_type = "text/html", description = "`link_expired`: the connect session has lapsed; `link_used`: it has connected a mailbox"),
        (status = 422, body = String, content_type = "text/html", description = "`invalid_request`: a parameter is invalid, given twice or missing; `plugin_off`: this provider is not set up; `connect_session_required`: the app accepts only connect sessions"),
        (status = 429, body = String, content_type = "text/html", description = "`rate_limited`"),
        (status = 500, description = "`internal_error`", content((String = "text/html"), (crate::http::problem::ProblemBody = "application/problem+json"))),
        (status = 503, body = String, content_type = "text/html", description = "`unavailable`; `not_set_up`: the operator hasn't set up a provider"),
    )
)]
pub(super) async fn connect(
    State(state): State<AppState>,
    pushable_key: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    ClientAddress(address): ClientAddress,
    visitor: Visitor,
    headers: HeaderMap,
) -> Result<Response, PageProblem> {
    let query = QueryParameters::parse(query.as_deref());
    let page = match open(&state, pushable_key, &query, address).await {
        Ok((app, asked)) => consent(&state, &app, &asked, &visitor).map(|page| (app, page)),
        Err(problem) => Err(problem),
    };
    let (app, mut response) = page.map_err(|problem| problem.to(visitor))?;
    if let Some(cookie) = Back::kept(&headers, &state.base_url, &app.pushable_key) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Redirects the user to the provider when the page's button is pressed. `plugin` is required; the other parameters are
/// those of the link. The response sets cookies, which the callback requires.
#[utoipa::path(
    post,
    path = "/connect/{pushable_key}",
    operation_id = "begin_connecting",
    tag = "Connect",
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        LinkParameters,
    ),
    responses(
        (status = 303, description = "To the provider; the user must return within ten minutes", headers(("Location" = String, description = "The provider's page"), ("Set-Cookie" = String, description = "Identifies this browser; further cookies keep the authorization until the user returns, at most eight of them"))),
        (status = 403, body = String, content_type = "text/html", description = "`another_site`: the request came from another site's page; `app_suspended`: the operator has suspended the app's account"),
        (status = 404, body = String, content_type = "text/html", description = "`link_not_found`: the pushable key is not in use, or was renewed"),
        (status = 410, body = String, content_type = "text/html", description = "`link_expired`: the connect session has lapsed; `link_used`: it has connected a mailbox"),
        (status = 422, body = String, content_type = "text/html", description = "`invalid_request`, `plugin_off` or `connect_session_required`"),
        (status = 429, body = String, content_type = "text/html", description = "`rate_limited`"),
        (status = 500, description = "`internal_error`", content((String = "text/html"), (crate::http::problem::ProblemBody = "application/problem+json"))),
        (status = 503, body = String, content_type = "text/html", description = "`unavailable` or `not_set_up`"),
    )
)]
pub(super) async fn begin(
    State(state): State<AppState>,
    pushable_key: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    ClientAddress(address): ClientAddress,
    visitor: Visitor,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, PageProblem> {
    let query = QueryParameters::parse(query.as_deref());
    let press = Press {
        address,
        language: visitor.asked(),
        uri: &uri,
        headers: &headers,
    };
    let begun = lead(&state, pushable_key, &query, &press).await;
    begun.map_err(|problem| problem.to(visitor))
}

/// The origin of a press of the button.
struct Press<'a> {
    address: IpAddr,
    /// The requested language.
    language: Option<Language>,
    uri: &'a Uri,
    headers: &'a HeaderMap,
}

async fn lead(
    state: &AppState,
    pushable_key: Result<Path<String>, PathRejection>,
    query: &QueryParameters,
    press: &Press<'_>,
) -> Result<Response, PageProblem> {
    if is_foreign(press.headers, press.uri) {
        return Err(PageProblem::new(
            StatusCode::FORBIDDEN,
            "another_site",
            |notices| &notices.another_site,
        ));
    }
    let (app, asked) = open(state, pushable_key, query, press.address).await?;
    let plugin = asked.plugin.ok_or_else(|| wrong("plugin is missing"))?;
    let browser = match Browser::of(press.headers, &state.base_url) {
        Some(browser) => browser,
        None => Browser::new().map_err(|error| PageProblem::internal(&error))?,
    };
    let redirect_uri = format!("{}/oauth/callback", state.base_url);
    let link = asked.link(plugin, press.language);
    let begun = state
        .mailboxes
        .begin(&app, &link, &redirect_uri, &browser.digest());
    let begun = begun.map_err(|error| match error {
        BeginError::PluginOff(plugin) => plugin_off(plugin),
        error => PageProblem::internal(&error),
    })?;
    let now = state.clock.now();
    let kept = pending::keep(
        press.headers,
        &state.base_url,
        &begun.state,
        &begun.pending,
        now,
    );
    let kept = kept.ok_or_else(|| wrong("the link is too long"))?;
    let mut response = redirect(StatusCode::SEE_OTHER, begun.url.as_str());
    for cookie in browser.cookie(&state.base_url).into_iter().chain(kept) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}
