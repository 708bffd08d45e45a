//! The connect link: an end user chooses a provider, and is sent there.

use std::fmt::Write as _;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Doors;
use super::connect_pages::{PageProblem, framed, link_query, name, redirect};
use super::page::escaped;
use super::query::QueryParameters;
use crate::mailboxes::{BeginError, ConnectLink, PublicApp};
use crate::types::plugin::Plugin;
use crate::types::secrets::PushableKey;

/// Longest name of an app's own for a user, in characters.
const USER_ID_LENGTH: usize = 255;

/// Longest expected account, in characters: RFC 5321 §4.5.3.1 allows 64 + 1 + 255 for an address.
const LOGIN_HINT_LENGTH: usize = 320;

/// What a connect link may say.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes what is read by hand")]
pub(super) struct LinkParameters {
    /// The provider. Without it the user chooses on a page.
    #[param(value_type = Option<String>, pattern = "^plugin_[ab]$", example = "plugin_a")]
    plugin: Option<String>,
    /// Your own name for the end user: required when the app is multiuser. It comes back to your
    /// `callback_url`, and `POST /send` takes it.
    #[param(value_type = Option<String>, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    user_id: Option<String>,
    /// The account that the user is expected to choose, for the provider's page.
    #[param(value_type = Option<String>, max_length = 320, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    login_hint: Option<String>,
}

/// The link for your end users: they connect a mailbox. Open it in a browser. With `plugin` the answer
/// sends the user to the provider at once; without, it is a page with a button for each provider.
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
        (status = 200, body = String, content_type = "text/html", description = "A page to choose a provider on"),
        (status = 302, description = "To the provider; the user is to be back within ten minutes", headers(("Location" = String, description = "The provider's page"))),
        (status = 404, body = String, content_type = "text/html", description = "`link_not_found`: the pushable key is not in use, or was renewed"),
        (status = 422, body = String, content_type = "text/html", description = "`invalid_request`: a parameter is wrong, twice there, or missing; `plugin_off`: this provider is not set up"),
        (status = 500, description = "`internal_error`", content((String = "text/html"), (super::problem::ProblemBody = "application/problem+json"))),
        (status = 503, body = String, content_type = "text/html", description = "`unavailable`; `not_set_up`: the operator has set up no provider"),
    )
)]
pub(super) async fn connect(
    State(doors): State<Doors>,
    pushable_key: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, PageProblem> {
    let pushable_key = pushable_key
        .ok()
        .and_then(|Path(key)| PushableKey::parse(&key))
        .ok_or_else(no_such_link)?;
    let query = QueryParameters::parse(query.as_deref());
    let asked = Asked::read(&query).map_err(|text| wrong(&text))?;
    let app = doors
        .mailboxes
        .linked_app(&pushable_key)
        .await
        .map_err(|error| PageProblem::database(&error))?
        .ok_or_else(no_such_link)?;
    if doors.mailboxes.providers().next().is_none() {
        return Err(not_set_up());
    }
    if app.multiuser && asked.user_id.is_none() {
        return Err(wrong(
            "The app has several users, and this link doesn't say whose mailbox it is for: the parameter user_id is missing.",
        ));
    }
    match asked.plugin {
        None => Ok(chooser(&doors, &app, &asked)),
        Some(plugin) => begin(&doors, &app, &asked.link(plugin)).await,
    }
}

/// What the link says.
struct Asked<'a> {
    plugin: Option<Plugin>,
    user_id: Option<&'a str>,
    login_hint: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn read(query: &'a QueryParameters) -> Result<Self, String> {
        let plugin = query.once("plugin")?.map(str::parse).transpose();
        Ok(Self {
            plugin: plugin.map_err(|error| format!("The parameter plugin {error}."))?,
            user_id: query.text("user_id", USER_ID_LENGTH)?,
            login_hint: query.text("login_hint", LOGIN_HINT_LENGTH)?,
        })
    }

    fn link(&self, plugin: Plugin) -> ConnectLink {
        ConnectLink {
            plugin,
            user_id: self.user_id.map(str::to_owned),
            login_hint: self.login_hint.map(str::to_owned),
        }
    }
}

async fn begin(
    doors: &Doors,
    app: &PublicApp,
    link: &ConnectLink,
) -> Result<Response, PageProblem> {
    let redirect_uri = format!("{}/oauth/callback", doors.base_url);
    match doors.mailboxes.begin(app, link, &redirect_uri).await {
        Ok(url) => Ok(redirect(&url)),
        Err(BeginError::Gone) => Err(no_such_link()),
        Err(BeginError::PluginOff(plugin)) => Err(PageProblem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "plugin_off",
            "This provider is not available",
            format!(
                "The link asks for {plugin}, which is not set up here. Ask the app that sent you here for another link."
            ),
        )),
        Err(BeginError::Database(error)) => Err(PageProblem::database(&error)),
        Err(error) => Err(PageProblem::internal(&error)),
    }
}

/// A button for each provider. They are links, so that they work without scripts and forms.
fn chooser(doors: &Doors, app: &PublicApp, asked: &Asked<'_>) -> Response {
    let mut body = format!(
        "<p>{} would like to send email from your mailbox. Choose where it is; you will be asked there \
         whether you agree.</p><nav aria-label=\"Providers\">",
        name(&app.name)
    );
    for provider in doors.mailboxes.providers() {
        let plugin = provider.plugin;
        // Writing to a String can't fail.
        let _ = write!(
            body,
            "<a class=\"button\" id=\"connect-{plugin}\" href=\"?{}\">Connect {}</a>",
            escaped(&link_query(&asked.link(plugin))),
            escaped(&provider.label)
        );
    }
    body.push_str("</nav>");
    framed(StatusCode::OK, "Connect your mailbox", app, &body)
}

fn no_such_link() -> PageProblem {
    PageProblem::new(
        StatusCode::NOT_FOUND,
        "link_not_found",
        "This link doesn't work",
        "It may have been replaced by a new one, or cut off on its way to you. Ask the app that sent you here for a new link.",
    )
}

fn wrong(text: &str) -> PageProblem {
    PageProblem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "invalid_request",
        "This link has a mistake in it",
        format!("{text} Ask the app that sent you here for another link."),
    )
}

fn not_set_up() -> PageProblem {
    PageProblem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "not_set_up",
        "No mailbox can be connected yet",
        "The email gateway is not set up: its operator has turned on no mail provider. Tell the app that sent you here.",
    )
}
