//! An app's additional send keys: listed on its page, created with their value shown once, deleted.

use std::borrow::Cow;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use crate::PortalState;
use crate::page::fields::{Fields, Sent, value, values};
use crate::page::frame::{Frame, Section};
use crate::page::key_form::{DeleteKeyPage, NewKeyPage, checked_end, checked_name, status};
use crate::page::owned_app::OwnedApp;
use crate::page::problem::PortalProblem;
use crate::page::session::Guest;
use crate::page::words::Moment;
use crate::page::wrong::Wrong;
use crate::page::{page, see};
use crate::settings::secret::{Proof, check};
use mailgate_domain::accounts::{
    MOST_MAILBOXES_OF_A_KEY, MOST_SEND_KEYS, NewSendKey, SendKeyError, SendKeyRow,
};
use mailgate_types::ids::{CredentialId, SendKeyId};
use mailgate_types::networks::{MOST_NETWORKS, Network, Networks};

/// A key in the table.
pub(crate) struct KeyRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) created_at: Moment,
    pub(crate) last_used_at: Option<Moment>,
    pub(crate) expires_at: Option<Moment>,
    /// The addresses that may use it.
    pub(crate) allowed: String,
    /// The mailboxes that it may send from.
    pub(crate) mailboxes: String,
}

impl KeyRow {
    fn new(key: SendKeyRow) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name,
            created_at: Moment::new(key.created_at),
            last_used_at: key.last_used_at.map(Moment::new),
            expires_at: key.expires_at.map(Moment::new),
            allowed: match key.allowed_addresses.as_slice() {
                [] => "anywhere".to_owned(),
                networks => networks.join(", "),
            },
            mailboxes: match key.credential_ids.len() {
                0 => "all".to_owned(),
                count => format!("{count} chosen"),
            },
        }
    }
}

/// The additional keys of an app; `None` if they can't be loaded.
pub(crate) async fn rows(state: &PortalState, owned: &OwnedApp) -> Option<Vec<KeyRow>> {
    let keys = state.accounts.send_keys(owned.app.id).await;
    let keys = keys
        .inspect_err(|error| tracing::warn!(%error, "send keys can't be shown in the portal"))
        .ok()?;
    let additional = keys.into_iter().filter(|key| !key.is_main);
    Some(additional.map(|shown| KeyRow::new(shown.key)).collect())
}

/// A mailbox in the form.
struct Choice {
    id: String,
    email: String,
    checked: bool,
}

/// The form of a new key.
#[derive(Template)]
#[template(path = "send_key_form.html")]
struct FormPage {
    frame: Frame,
    path: String,
    name: String,
    last_day: String,
    allowed_addresses: String,
    choices: Vec<Choice>,
    is_fresh: bool,
    wrong: Wrong,
}

async fn form(
    state: &PortalState,
    owned: &OwnedApp,
    fields: &Fields,
    wrong: Wrong,
) -> Result<Response, PortalProblem> {
    let (subscriber, slug) = (&owned.session.subscriber, &owned.app.slug);
    let chosen: Vec<&str> = values(fields, "credential_ids").collect();
    let users = state.mailboxes.users(owned.app.id).await?;
    let connected = users.into_iter().filter(|user| user.disconnected.is_none());
    let choices = connected.take(MOST_MAILBOXES_OF_A_KEY).map(|user| {
        let id = user.id.to_string();
        Choice {
            checked: chosen.contains(&id.as_str()),
            id,
            email: user.email,
        }
    });
    let title = "Add send key";
    let body = FormPage {
        frame: Frame::load(state, subscriber, Section::Apps, title, Some(slug)).await,
        path: owned.path(),
        name: value(fields, "name").to_owned(),
        last_day: value(fields, "last_day").to_owned(),
        allowed_addresses: value(fields, "allowed_addresses").to_owned(),
        choices: choices.collect(),
        is_fresh: owned.session.is_fresh(state.clock.now()),
        wrong,
    };
    Ok(page(status(&body.wrong), &body))
}

/// Shows the form.
pub(crate) async fn show_new(
    owned: OwnedApp,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    form(&state, &owned, &Vec::new(), Wrong::default()).await
}

fn read(state: &PortalState, fields: &Fields) -> Result<NewSendKey, Wrong> {
    let mut wrong = Wrong::default();
    let name = checked_name(fields, &mut wrong);
    let expires_at = checked_end(fields, state.clock.now(), &mut wrong);
    let texts = value(fields, "allowed_addresses");
    let texts = texts.split([' ', ',', '\r', '\n', '\t']);
    let networks: Result<Vec<Network>, _> = texts
        .filter(|text| !text.is_empty())
        .map(str::parse)
        .collect();
    let networks = networks.ok().filter(|all| all.len() <= MOST_NETWORKS);
    if networks.is_none() {
        let text =
            "Enter at most 50 IP addresses or CIDR ranges such as 192.0.2.0/24, one per line.";
        wrong.add("allowed_addresses", text);
    }
    let chosen = values(fields, "credential_ids");
    let mailboxes: Result<Vec<CredentialId>, _> = chosen.map(str::parse).collect();
    let mailboxes = mailboxes
        .ok()
        .filter(|all| all.len() <= MOST_MAILBOXES_OF_A_KEY);
    if mailboxes.is_none() {
        wrong.add("credential_ids", "Choose mailboxes of this app.");
    }
    match (networks, mailboxes) {
        (Some(networks), Some(mailboxes)) if wrong.is_empty() => Ok(NewSendKey {
            name,
            expires_at,
            allowed: networks.into_iter().collect::<Networks>(),
            mailboxes: mailboxes.into_iter().collect(),
        }),
        _ => Err(wrong),
    }
}

/// Creates a key, and shows its value once.
pub(crate) async fn create(
    owned: OwnedApp,
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Sent(fields): Sent<Fields>,
) -> Result<Response, PortalProblem> {
    let new = match read(&state, &fields) {
        Ok(new) => new,
        Err(wrong) => return form(&state, &owned, &fields, wrong).await,
    };
    let proof = Proof::of(value(&fields, "api_secret"));
    let checked = check(&state, &owned.session, &visitor, &proof).await;
    checked.map_err(|problem| problem.leading("Back to the app", owned.path()))?;
    let author = owned.session.author();
    let created = state.accounts.create_send_key(owned.app.id, new, author);
    let value = match created.await {
        Ok((_, value)) => value,
        Err(SendKeyError::ForeignMailboxes(_)) => {
            let wrong = Wrong::one("credential_ids", "Choose mailboxes of this app.");
            return form(&state, &owned, &fields, wrong).await;
        }
        Err(SendKeyError::TooMany) => {
            let text = format!(
                "The app already has {MOST_SEND_KEYS} additional send keys. Delete one first."
            );
            return form(&state, &owned, &fields, Wrong::one("name", text)).await;
        }
        Err(error) => return Err(failed(&error)),
    };
    let (subscriber, slug) = (&owned.session.subscriber, &owned.app.slug);
    let title = "New send key";
    let body = NewKeyPage {
        frame: Frame::load(&state, subscriber, Section::Apps, title, Some(slug)).await,
        noun: "key",
        hint: "Programs send it as X-Send-Key in POST /send, or use it as the SMTP password.",
        value: value.expose(),
        former: Some(format!("{}/renew/send-key", owned.path())),
        back: Cow::Owned(format!("{}#send-keys", owned.path())),
    };
    Ok(page(StatusCode::CREATED, &body))
}

/// The path parameters.
#[derive(Deserialize)]
pub(crate) struct OfKey {
    id: String,
}

impl OfKey {
    fn id(&self) -> Result<SendKeyId, PortalProblem> {
        self.id.parse().map_err(|_| PortalProblem::not_found())
    }
}

/// Shows the confirmation page for deleting a key.
pub(crate) async fn confirm_delete(
    owned: OwnedApp,
    Path(of): Path<OfKey>,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    let id = of.id()?;
    let keys = state.accounts.send_keys(owned.app.id).await?;
    let mut additional = keys.into_iter().filter(|key| !key.is_main);
    let key = additional.find(|shown| shown.key.id == id);
    let key = key.ok_or_else(PortalProblem::not_found)?.key;
    let (subscriber, slug) = (&owned.session.subscriber, &owned.app.slug);
    let title = "Delete this send key?";
    let body = DeleteKeyPage {
        frame: Frame::load(&state, subscriber, Section::Apps, title, Some(slug)).await,
        action: format!("{}/send-keys/{id}/delete", owned.path()),
        name: key.name,
        back: Cow::Owned(format!("{}#send-keys", owned.path())),
    };
    Ok(page(StatusCode::OK, &body))
}

/// Deletes a key.
pub(crate) async fn delete(
    owned: OwnedApp,
    Path(of): Path<OfKey>,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    let (accounts, author) = (&state.accounts, owned.session.author());
    let deleted = accounts.delete_send_key(owned.app.id, of.id()?, author);
    deleted.await.map_err(|error| failed(&error))?;
    Ok(see(&format!("{}?done=key-deleted", owned.path())))
}

fn failed(error: &SendKeyError) -> PortalProblem {
    match error {
        SendKeyError::AppGone | SendKeyError::NotFound | SendKeyError::Main => {
            PortalProblem::not_found()
        }
        SendKeyError::Database(error) => PortalProblem::database(error),
        error => PortalProblem::internal(error),
    }
}
