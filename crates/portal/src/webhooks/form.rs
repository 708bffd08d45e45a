//! Creating and changing a webhook configuration.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::secret::{SecretPage, refused};
use crate::PortalState;
use crate::page::fields::{Asked, Common, Fields, Sent, value, values};
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::{page, see};
use crate::webhooks::{find, path};
use mailgate_domain::accounts::NamedApp;
use mailgate_domain::webhooks::{NewConfiguration, WebhookConfigChange};
use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, WebhookConfigId};
use mailgate_types::web_address::check_webhook_address;

/// An event in the form.
struct Choice {
    name: &'static str,
    checked: bool,
}

/// The page.
#[derive(Template)]
#[template(path = "webhook_form.html")]
struct FormPage {
    frame: Frame,
    action: String,
    /// The page to return to without saving.
    back: String,
    is_new: bool,
    apps: Vec<NamedApp>,
    /// The selected app isn't among them.
    is_unknown: bool,
    app: String,
    url: String,
    choices: Vec<Choice>,
    /// When the form was made, in microseconds.
    made: String,
    wrong_app: &'static str,
    wrong_url: String,
    wrong_events: &'static str,
}

/// The submitted values, and their errors.
#[derive(Default)]
struct Filled {
    app: String,
    url: String,
    events: Vec<EventName>,
    /// When the form was made; empty: now.
    made: String,
    wrong_app: &'static str,
    wrong_url: String,
    wrong_events: &'static str,
}

impl Filled {
    fn read(state: &PortalState, fields: &Fields) -> Self {
        let url = value(fields, "url").to_owned();
        let is_chosen =
            |event: &EventName| values(fields, "events").any(|name| name == event.as_str());
        let events: Vec<_> = EventName::ALL.into_iter().filter(is_chosen).collect();
        let wrong_url = match check_webhook_address(&url, state.allow_private) {
            Ok(()) => String::new(),
            Err(error) => format!("The URL {error}."),
        };
        Self {
            app: value(fields, "app").to_owned(),
            made: value(fields, "made").to_owned(),
            wrong_url,
            wrong_events: if events.is_empty() {
                "Choose at least one event."
            } else {
                ""
            },
            url,
            events,
            wrong_app: "",
        }
    }

    fn is_right(&self) -> bool {
        self.wrong_app.is_empty() && self.wrong_url.is_empty() && self.wrong_events.is_empty()
    }
}

async fn form(
    state: &PortalState,
    session: &Session,
    filled: Filled,
    changed: Option<String>,
) -> Response {
    let status = if filled.is_right() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let title = if changed.is_some() {
        "Edit webhook"
    } else {
        "Add webhook"
    };
    let given = Some(filled.app.as_str()).filter(|app| !app.is_empty());
    let section = Section::Webhooks;
    let mut frame = Frame::load(state, &session.subscriber, section, title, given).await;
    let mut apps = Vec::new();
    let mut is_unknown = false;
    if let Some(inside) = &mut frame.inside {
        apps.clone_from(&inside.apps);
        // The switcher uses slugs. If nothing was selected there, the field holds a key.
        let named = |app: &&NamedApp| app.slug == filled.app || app.pushable_key == filled.app;
        let chosen = apps.iter().find(named);
        is_unknown = given.is_some() && chosen.is_none();
        if filled.app.contains('_') {
            inside.app = None;
        }
    }
    let choices = EventName::ALL.map(|event| Choice {
        name: event.as_str(),
        checked: filled.events.contains(&event),
    });
    let back = changed.clone();
    let now = state.clock.now().timestamp_micros().to_string();
    let body = FormPage {
        frame,
        is_new: changed.is_none(),
        action: changed.map_or_else(
            || "/portal/webhooks/new".to_owned(),
            |path| format!("{path}/edit"),
        ),
        back: back.unwrap_or_else(|| "/portal/webhooks".to_owned()),
        apps,
        is_unknown,
        app: filled.app,
        url: filled.url,
        choices: choices.into(),
        made: Some(filled.made)
            .filter(|made| !made.is_empty())
            .unwrap_or(now),
        wrong_app: filled.wrong_app,
        wrong_url: filled.wrong_url,
        wrong_events: filled.wrong_events,
    };
    page(status, &body)
}

/// Shows the form for a new one.
pub(crate) async fn show_new(
    session: Session,
    State(state): State<PortalState>,
    Asked(common): Asked<Common>,
) -> Response {
    let filled = Filled {
        app: common.app().unwrap_or_default().to_owned(),
        events: EventName::ALL.to_vec(),
        ..Filled::default()
    };
    form(&state, &session, filled, None).await
}

/// Creates one, and shows its secret once: no page that can be requested again holds it, so the response to the POST
/// does. Resubmitting the form, for example by reloading the response, adds nothing.
pub(crate) async fn create(
    session: Session,
    State(state): State<PortalState>,
    Sent(fields): Sent<Fields>,
) -> Result<Response, PortalProblem> {
    let mut filled = Filled::read(&state, &fields);
    let app = state.accounts.own_app(session.id(), &filled.app);
    let app = app.await?;
    if app.is_none() {
        filled.wrong_app = "Choose an app.";
    }
    let Some(app) = app.filter(|_| filled.is_right()) else {
        return Ok(form(&state, &session, filled, None).await);
    };
    if let Ok(made) = filled.made.parse::<i64>() {
        let known = state.webhooks.configurations(app.id).await;
        let known = known.map_err(|error| refused(&error))?;
        let mut added =
            (known.iter()).filter(|known| known.config.created_at.timestamp_micros() >= made);
        if let Some(before) = added.find(|known| known.config.url == filled.url) {
            let path = format!("/portal/webhooks/{}?done=added-before", before.config.id);
            return Ok(see(&path));
        }
    }
    let new = NewConfiguration {
        url: filled.url,
        events: filled.events,
        secret: None,
        is_active: true,
    };
    let created = state
        .webhooks
        .create_configuration(app.id, new, session.author());
    let (config, secret) = created.await.map_err(|error| refused(&error))?;
    let back = format!("/portal/webhooks/{}", config.id);
    let body = SecretPage::created(&state, &session, secret.expose(), back).await;
    Ok(page(StatusCode::CREATED, &body))
}

/// A configuration; an app's own `webhook_url` is changed with the app.
pub(crate) async fn config(
    state: &PortalState,
    session: &Session,
    id: &str,
) -> Result<(AppId, WebhookConfigId, Known), PortalProblem> {
    let endpoint = find(state, session.id(), id).await?.endpoint;
    let config = endpoint.id.config(endpoint.app);
    let config = config.ok_or_else(PortalProblem::not_found)?;
    let path = path(&endpoint);
    let filled = Filled {
        app: endpoint.slug,
        url: endpoint.url,
        events: endpoint.events,
        ..Filled::default()
    };
    Ok((endpoint.app, config, Known { path, filled }))
}

/// The current configuration, and its page.
pub(crate) struct Known {
    pub(crate) path: String,
    filled: Filled,
}

/// Shows the form for an existing one.
pub(crate) async fn show_edit(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    let (_, _, known) = config(&state, &session, &id).await?;
    Ok(form(&state, &session, known.filled, Some(known.path)).await)
}

/// Changes one.
pub(crate) async fn edit(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
    Sent(fields): Sent<Fields>,
) -> Result<Response, PortalProblem> {
    let (app, id, known) = config(&state, &session, &id).await?;
    let filled = Filled {
        app: known.filled.app,
        ..Filled::read(&state, &fields)
    };
    if !filled.is_right() {
        return Ok(form(&state, &session, filled, Some(known.path)).await);
    }
    let change = WebhookConfigChange {
        url: Some(filled.url),
        events: Some(filled.events),
        is_active: None,
    };
    let changed = state
        .webhooks
        .change_configuration(app, id, &change, session.author());
    changed.await?.ok_or_else(PortalProblem::not_found)?;
    Ok(see(&format!("{}?done=saved", known.path)))
}
