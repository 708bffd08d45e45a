//! A connect link's parameters, and whether a mailbox may be connected with it.

use std::net::IpAddr;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::StatusCode;

use super::pages::PageProblem;
use crate::AppState;
use crate::http::query::QueryParameters;
use mailgate_domain::mailboxes::{
    ConnectLink, LinkOrigin, PublicApp, SessionError, USER_ID_LENGTH,
};
use mailgate_types::language::Language;
use mailgate_types::plugin::Plugin;
use mailgate_types::secrets::PushableKey;

/// Longest expected account, in characters: RFC 5321 §4.5.3.1 allows 64 + 1 + 255 for an address.
pub(crate) const LOGIN_HINT_LENGTH: usize = 320;

/// A link's parameters.
pub(crate) struct Asked {
    pub(crate) plugin: Option<Plugin>,
    origin: LinkOrigin,
}

impl Asked {
    /// `language` is the requested one.
    pub(crate) fn link(&self, plugin: Plugin, language: Option<Language>) -> ConnectLink {
        ConnectLink {
            plugin,
            origin: self.origin.clone(),
            language,
        }
    }
}

/// A link's app and parameters, if a mailbox may be connected with it.
pub(crate) async fn open(
    state: &AppState,
    pushable_key: Result<Path<String>, PathRejection>,
    query: &QueryParameters,
    address: IpAddr,
) -> Result<(PublicApp, Asked), PageProblem> {
    let pushable_key = pushable_key
        .ok()
        .and_then(|Path(key)| PushableKey::parse(&key))
        .ok_or_else(no_such_link)?;
    let (mut asked, token) = read(query).map_err(|hint| wrong(&hint))?;
    state.visits.from(address)?;
    let session = match token {
        Some(token) => {
            let session = state.mailboxes.read_session(&pushable_key, token);
            Some(session.ok_or_else(|| no_session(&SessionError::Invalid))?)
        }
        None => None,
    };
    let app = state
        .mailboxes
        .linked_app(&pushable_key)
        .await
        .map_err(|error| PageProblem::database(&error))?
        .ok_or_else(no_such_link)?;
    if app.is_suspended {
        return Err(suspended());
    }
    // Strangers who keep opening an app's bare links don't block users with a connect session.
    if session.is_none() {
        state.visits.of(app.id)?;
    }
    if state.mailboxes.providers().next().is_none() {
        return Err(not_set_up());
    }
    match session {
        Some(session) => {
            let checked = state.mailboxes.check_session(&app, &session).await;
            checked.map_err(|error| no_session(&error))?;
            if asked.plugin.is_some() && session.plugin.is_some() && asked.plugin != session.plugin
            {
                return Err(wrong("plugin differs from the connect session's"));
            }
            asked = Asked {
                plugin: asked.plugin.or(session.plugin),
                origin: LinkOrigin::Session(Box::new(session)),
            };
        }
        None if app.require_connect_session => return Err(session_required()),
        None => {}
    }
    if app.multiuser && asked.origin.user_id().is_none() {
        return Err(wrong("user_id is missing"));
    }
    let is_on = |plugin| state.mailboxes.provider_settings(plugin).is_some();
    match asked.plugin {
        Some(plugin) if !is_on(plugin) => Err(plugin_off(plugin)),
        _ => Ok((app, asked)),
    }
}

/// The query's parameters, and the connect session, still sealed.
fn read(query: &QueryParameters) -> Result<(Asked, Option<&str>), String> {
    let plugin = query.once("plugin")?.map(str::parse).transpose();
    let plugin = plugin.map_err(|error| format!("plugin {error}"))?;
    let user_id = query.text("user_id", USER_ID_LENGTH)?;
    let login_hint = query.text("login_hint", LOGIN_HINT_LENGTH)?;
    let session = query.once("session")?;
    if session.is_some() && (user_id.is_some() || login_hint.is_some()) {
        return Err(
            "user_id and login_hint must not be given with a session, which holds them".to_owned(),
        );
    }
    let origin = LinkOrigin::Bare {
        user_id: user_id.map(str::to_owned),
        login_hint: login_hint.map(str::to_owned),
    };
    Ok((Asked { plugin, origin }, session))
}

fn no_such_link() -> PageProblem {
    PageProblem::new(StatusCode::NOT_FOUND, "link_not_found", |notices| {
        &notices.no_such_link
    })
}

fn no_session(error: &SessionError) -> PageProblem {
    match error {
        SessionError::Invalid => PageProblem::new(StatusCode::GONE, "link_expired", |notices| {
            &notices.session_invalid
        }),
        SessionError::Used => PageProblem::new(StatusCode::GONE, "link_used", |notices| {
            &notices.session_used
        }),
        SessionError::Database(error) => PageProblem::database(error),
    }
}

fn session_required() -> PageProblem {
    PageProblem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "connect_session_required",
        |notices| &notices.session_required,
    )
    .for_developers(
        "the app's require_connect_session is true: get the link from POST /apps/{pushable_key}/connect-sessions",
    )
}

/// The operator has suspended the app's subscriber.
fn suspended() -> PageProblem {
    PageProblem::new(StatusCode::FORBIDDEN, "app_suspended", |notices| {
        &notices.app_suspended
    })
    .for_developers(
        "the operator of this gateway has suspended the app's account; GET /me says why",
    )
}

pub(crate) fn plugin_off(plugin: Plugin) -> PageProblem {
    PageProblem::new(StatusCode::UNPROCESSABLE_ENTITY, "plugin_off", |notices| {
        &notices.plugin_off
    })
    .for_developers(format!("{plugin} is not set up on this gateway"))
}

/// `hint` is the error, for the app's developer.
pub(crate) fn wrong(hint: &str) -> PageProblem {
    PageProblem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "invalid_request",
        |notices| &notices.wrong_link,
    )
    .for_developers(hint)
}

fn not_set_up() -> PageProblem {
    PageProblem::new(StatusCode::SERVICE_UNAVAILABLE, "not_set_up", |notices| {
        &notices.not_set_up
    })
}
