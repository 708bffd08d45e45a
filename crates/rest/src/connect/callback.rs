//! Where providers redirect users back to: the result goes to the app, or is shown on a page. The state is checked by
//! `mailboxes::complete`.

use std::net::IpAddr;

use axum::extract::{RawQuery, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use url::Url;
use utoipa::IntoParams;

use super::failure::Failure;
use super::messages::messages;
use super::pages::{PageProblem, ShownApp, redirect};
use super::pending;
use super::result::Shown;
use crate::AppState;
use crate::http::authority::ClientAddress;
use crate::http::browser::Browser;
use crate::http::query::QueryParameters;
use crate::http::visitor::Visitor;
use mailgate_domain::mailboxes::{
    CompleteError, Completed, ConnectLink, Connected, ProviderAnswer, PublicApp, Returned,
};
use mailgate_types::language::Language;

/// A provider's response (RFC 6749 §4.1.2).
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes parameters that are parsed by hand")]
pub(crate) struct CallbackParameters {
    /// The state of the authorization; valid once, for ten minutes.
    state: String,
    /// The authorization code.
    code: Option<String>,
    /// The error code, instead of an authorization code.
    error: Option<String>,
    /// The error in the provider's words.
    error_description: Option<String>,
}

/// The redirect URI: register this address with your OAuth clients. It works once, in the browser in which the user
/// pressed the button. If the connect session or the app has a `callback_url`, the response
/// redirects the user there with these query parameters added: `status=success`, `credential_id`, `user_key`,
/// `user_id` (if the link had one), `email`, `plugin`; or `status=error`, `error` (a stable code),
/// `error_description`, `plugin`, `user_id`.
#[utoipa::path(
    get,
    path = "/oauth/callback",
    operation_id = "oauth_callback",
    tag = "Connect",
    params(CallbackParameters),
    responses(
        (status = 302, description = "Redirects to the `callback_url`, or to a page that shows the result, on success and failure", headers(("Location" = String, description = "With the parameters above"))),
        (status = 400, body = String, content_type = "text/html", description = "`invalid_callback`: not a provider's response"),
        (status = 403, body = String, content_type = "text/html", description = "`another_browser`: the user started in another browser"),
        (status = 410, body = String, content_type = "text/html", description = "`link_expired`: the state was already used, is too old, or its link was replaced"),
        (status = 429, body = String, content_type = "text/html", description = "`rate_limited`"),
        (status = 500, description = "`internal_error`", content((String = "text/html"), (crate::http::problem::ProblemBody = "application/problem+json"))),
        (status = 503, body = String, content_type = "text/html", description = "`unavailable`"),
    )
)]
pub(crate) async fn oauth_callback(
    State(state): State<AppState>,
    ClientAddress(address): ClientAddress,
    RawQuery(query): RawQuery,
    visitor: Visitor,
    headers: HeaderMap,
) -> Result<Response, PageProblem> {
    let query = QueryParameters::parse(query.as_deref());
    let ended = end(&state, &query, address, &headers).await;
    ended.map_err(|problem| {
        let begun = query.once("state").ok().flatten();
        let language = begun.and_then(|begun| state.mailboxes.language_of(begun));
        // Its address holds the authorization code.
        problem.to(visitor.begun_in(language).once())
    })
}

async fn end(
    state: &AppState,
    query: &QueryParameters,
    address: IpAddr,
    headers: &HeaderMap,
) -> Result<Response, PageProblem> {
    state.visits.from(address)?;
    let (oauth_state, answer) = read(query).ok_or_else(|| {
        PageProblem::new(StatusCode::BAD_REQUEST, "invalid_callback", |notices| {
            &notices.invalid_callback
        })
    })?;
    let browser = Browser::of(headers, &state.base_url).map(|browser| browser.digest());
    let kept = pending::of(headers, &state.base_url, oauth_state);
    let returned = Returned {
        state: oauth_state,
        pending: kept.as_deref(),
        browser: browser.as_deref(),
    };
    let completed = state.mailboxes.complete(returned, answer, address);
    match completed.await {
        Ok(completed) => {
            let mut response = answered(state, completed, browser)?;
            for cookie in pending::forget(headers, &state.base_url, oauth_state) {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            Ok(response)
        }
        Err(CompleteError::AnotherBrowser) => Err(PageProblem::new(
            StatusCode::FORBIDDEN,
            "another_browser",
            |notices| &notices.another_browser,
        )),
        Err(CompleteError::LinkDead) => Err(PageProblem::new(
            StatusCode::GONE,
            "link_expired",
            |notices| &notices.link_dead,
        )),
        Err(CompleteError::Database(error)) => Err(PageProblem::database(&error)),
        Err(error) => Err(PageProblem::internal(&error)),
    }
}

/// `None` if it isn't a provider's response: no state, or a parameter twice (RFC 6749 §3.1).
fn read(query: &QueryParameters) -> Option<(&str, ProviderAnswer)> {
    let get = |name| {
        let value = query.once(name).ok()?;
        Some(value.filter(|value| !value.is_empty()))
    };
    let state = get("state")??;
    let (code, error, description) = (get("code")?, get("error")?, get("error_description")?);
    let answer = match (code, error) {
        (Some(code), None) => ProviderAnswer::Code(code.to_owned()),
        (_, error) => ProviderAnswer::Refused {
            error: error.unwrap_or_default().to_owned(),
            description: description.unwrap_or_default().to_owned(),
        },
    };
    Some((state, answer))
}

fn answered(
    state: &AppState,
    completed: Completed,
    browser: Option<String>,
) -> Result<Response, PageProblem> {
    let Completed { app, link, result } = completed;
    let english = messages(Language::English);
    let provider = state.mailboxes.provider_settings(link.plugin);
    let label = provider.map_or(english.the_provider, |settings| &settings.label);
    let result = result.map_err(|error| Failure::new(&error, &app.name, label));
    match &result {
        Ok(_) => {
            let plugin = link.plugin.as_str();
            metrics::counter!("mailgate_mailboxes_connected_total", "plugin" => plugin)
                .increment(1);
        }
        Err(failure) => failure.count(link.plugin),
    }
    if let Some(url) = app_url(&app, &link, &result) {
        return Ok(redirect(StatusCode::FOUND, url.as_str()));
    }
    let shown = Shown {
        app: ShownApp::from(&app),
        result: result.map(|connected| connected.email),
        pushable_key: app.pushable_key,
        link,
        browser,
    };
    let page = shown.address(&state.seal_keys, &state.base_url);
    let page = page.map_err(|error| PageProblem::internal(&error))?;
    Ok(redirect(StatusCode::FOUND, &page))
}

/// The app's own URL, or the session's, with the result added to its query.
fn app_url(
    app: &PublicApp,
    link: &ConnectLink,
    result: &Result<Connected, Failure>,
) -> Option<Url> {
    let own = link
        .origin
        .session()
        .and_then(|session| session.callback_url.as_deref());
    let mut url = Url::parse(own.unwrap_or(&app.callback_url)).ok()?;
    {
        let mut query = url.query_pairs_mut();
        match result {
            Ok(connected) => {
                query
                    .append_pair("status", "success")
                    .append_pair("credential_id", &connected.credential.to_string())
                    .append_pair("user_key", &connected.user_key.to_string())
                    .append_pair("email", &connected.email);
            }
            Err(failure) => {
                query
                    .append_pair("status", "error")
                    .append_pair("error", &failure.error)
                    .append_pair("error_description", &failure.text);
            }
        }
        query.append_pair("plugin", link.plugin.as_str());
        if let Some(user_id) = link.origin.user_id() {
            query.append_pair("user_id", user_id);
        }
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailgate_domain::mailboxes::{ConnectError, LinkOrigin};
    use mailgate_types::ids::AppId;
    use mailgate_types::plugin::Plugin;

    #[test]
    fn the_apps_own_query_and_fragment_stay() {
        let declined = || Failure::new(&ConnectError::NoAddress, "A & B", "C#D");
        let text: String =
            url::form_urlencoded::byte_serialize(declined().text.as_bytes()).collect();
        let link = ConnectLink {
            plugin: Plugin::B,
            origin: LinkOrigin::Bare {
                user_id: Some("ü&x=1#".to_owned()),
                login_hint: None,
            },
            language: None,
        };
        let tail = format!(
            "status=error&error=no_address&error_description={text}&plugin=plugin_b\
             &user_id=%C3%BC%26x%3D1%23"
        );
        for (callback_url, expected) in [
            (
                "https://app.example",
                format!("https://app.example/?{tail}"),
            ),
            (
                "https://app.example/a?",
                format!("https://app.example/a?{tail}"),
            ),
            (
                "https://app.example/a?b=c%20d&status=old#/there?x=y",
                format!("https://app.example/a?b=c%20d&status=old&{tail}#/there?x=y"),
            ),
        ] {
            let app = PublicApp {
                id: AppId(uuid::Uuid::nil()),
                name: String::new(),
                pushable_key: String::new(),
                logo_url: String::new(),
                multiuser: false,
                require_connect_session: false,
                callback_url: callback_url.to_owned(),
                connect_sessions_from: None,
                is_suspended: false,
            };
            let url = app_url(&app, &link, &Err(declined()));
            assert_eq!(url.map(String::from), Some(expected), "{callback_url}");
        }
    }

    #[test]
    fn answers_of_providers() {
        let kind = |query: &str| {
            let query = QueryParameters::parse(Some(query));
            read(&query).map(|(state, answer)| {
                let answer = match answer {
                    ProviderAnswer::Code(code) => code,
                    ProviderAnswer::Refused { error, description } => {
                        format!("{error}: {description}")
                    }
                };
                format!("{state} {answer}")
            })
        };
        for (query, expected) in [
            ("state=s&code=c", Some("s c")),
            ("state=s&code=c&iss=x&scope=a+b", Some("s c")),
            ("state=s&code=c&error=e", Some("s e: ")),
            ("state=s&error=e&error_description=d", Some("s e: d")),
            ("state=s", Some("s : ")),
            ("state=s&code=", Some("s : ")),
            ("", None),
            ("code=c", None),
            ("state=&code=c", None),
            ("state=s&state=s&code=c", None),
            ("state=s&code=c&code=c", None),
        ] {
            assert_eq!(kind(query).as_deref(), expected, "{query}");
        }
    }
}
