//! The audit log: a page of it, in words, with its filters.

mod group;
mod known;
mod words;

use serde::Deserialize;

use super::api_secrets::SecretRow;
use crate::PortalState;
use crate::page::frame::query;
use crate::page::sentence::Sentence;
use crate::page::session::Session;
use crate::page::words::Moment;
use group::Group;
use known::Known;
use mailgate_domain::reports::{AuditFilter, StoredEntry};
use mailgate_types::audit::Actor;
use mailgate_types::ids::{ApiSecretId, AuditEntryId};

/// Entries per page.
const ENTRIES: usize = 20;

/// The filters, and where the page begins. Unknown words filter nothing.
#[derive(Default, Deserialize)]
pub(crate) struct TrailQuery {
    #[serde(default)]
    group: String,
    #[serde(default)]
    actor: String,
    #[serde(default)]
    before: String,
}

impl TrailQuery {
    /// Whether the log itself was asked for, rather than the settings with the newest entries of all.
    pub(super) fn is_given(&self) -> bool {
        [&self.group, &self.actor, &self.before]
            .iter()
            .any(|given| !given.is_empty())
    }

    fn filter(&self) -> AuditFilter {
        AuditFilter {
            actions: Group::of(&self.group).map_or_else(Vec::new, Group::actions),
            actor: (Actor::ALL.into_iter()).find(|actor| actor.as_str() == self.actor),
            older_than: self.before.parse().ok(),
            ..AuditFilter::default()
        }
    }

    fn older_than(&self, entry: AuditEntryId) -> String {
        let before = entry.to_string();
        let parameters = [
            ("group", self.group.as_str()),
            ("actor", &self.actor),
            ("before", &before),
        ];
        let given = parameters
            .into_iter()
            .filter(|(_, value)| !value.is_empty());
        query(&given.collect::<Vec<_>>())
    }
}

/// An option of a filter.
pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) name: &'static str,
    pub(super) is_chosen: bool,
}

/// An entry in the table.
pub(super) struct Entry {
    pub(super) at: Moment,
    pub(super) sentence: Sentence,
    /// The names of the action and its target in the REST API.
    pub(super) names: String,
    pub(super) actor: String,
    pub(super) address: String,
    /// The app's name, and its page; if it no longer exists, its slug.
    pub(super) app: String,
    pub(super) app_path: String,
}

impl Entry {
    fn new(known: &Known<'_>) -> Self {
        let entry = known.entry;
        let at = AuditEntryId(entry.id).moment().unwrap_or_default();
        let (app_path, app) = known.app().unwrap_or_else(|| {
            let slug = entry.app_slug.clone();
            (String::new(), slug.unwrap_or_default())
        });
        Self {
            at: Moment::new(at),
            sentence: known.sentence(),
            names: match &entry.target {
                Some(target) => format!("{} {target}", entry.action),
                None => entry.action.clone(),
            },
            actor: by(entry, known.secrets),
            address: entry.address.clone().unwrap_or_default(),
            app,
            app_path,
        }
    }
}

/// A page of the log.
pub(super) struct Trail {
    pub(super) groups: Vec<Choice>,
    pub(super) actors: Vec<Choice>,
    pub(super) entries: Vec<Entry>,
    /// Whether these are the newest of all.
    pub(super) is_newest: bool,
    /// The query of the older entries.
    pub(super) older: Option<String>,
    /// How far a search without a match went.
    pub(super) searched_until: Option<Moment>,
}

impl Trail {
    pub(super) async fn load(
        state: &PortalState,
        session: &Session,
        asked: &TrailQuery,
        secrets: &[SecretRow],
    ) -> Result<Self, sqlx::Error> {
        let (filter, reports) = (asked.filter(), &state.reports);
        let page = reports.audit(session.id(), &filter, ENTRIES, 0).await?;
        let objects = reports.audit_objects(session.id(), &page.entries).await?;
        let entries: Vec<Entry> = (page.entries.iter())
            .map(|entry| {
                Entry::new(&Known {
                    entry,
                    objects: &objects,
                    secrets,
                })
            })
            .collect();
        let searched = page.next.filter(|_| entries.is_empty());
        Ok(Self {
            groups: Vec::from(Group::ALL.map(|group| {
                let (value, name) = group.words();
                Choice {
                    value,
                    name,
                    is_chosen: asked.group == value,
                }
            })),
            actors: Vec::from(Actor::ALL.map(|actor| Choice {
                value: actor.as_str(),
                name: name(actor),
                is_chosen: filter.actor == Some(actor),
            })),
            is_newest: !asked.is_given(),
            older: page.next.map(|entry| asked.older_than(entry)),
            searched_until: searched.and_then(AuditEntryId::moment).map(Moment::new),
            entries,
        })
    }
}

const fn name(actor: Actor) -> &'static str {
    match actor {
        Actor::Subscriber => "Your account",
        Actor::User => "User",
        Actor::Provider => "Mail provider",
        Actor::Operator => "Operator",
    }
}

/// Who made a change; an additional API secret by its name while it exists.
fn by(entry: &StoredEntry, secrets: &[SecretRow]) -> String {
    if let Some(id) = entry.api_secret_id {
        let id = ApiSecretId(id).to_string();
        let secret = secrets.iter().find(|secret| secret.id == id);
        return format!("API secret {}", secret.map_or(&id, |secret| &secret.name));
    }
    let mut all = Actor::ALL.into_iter();
    let known = all.find(|actor| actor.as_str() == entry.actor);
    known.map_or_else(|| entry.actor.clone(), |actor| name(actor).to_owned())
}
