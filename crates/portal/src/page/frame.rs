//! The frame of every page: the navigation, the app switcher, and the banners.

use sqlx::types::Uuid;
use url::form_urlencoded::Serializer;

use crate::PortalState;
use crate::billing::words::banner::{Banner, banner};
use mailgate_domain::accounts::{NamedApp, Subscriber};
use mailgate_types::ids::AppId;
use mailgate_types::secrets::SessionToken;

/// Apps in the switcher, besides the selected one.
const APPS: i64 = 100;

/// The portal's default name.
const NAME: &str = "Mailgate";

/// A section of the portal, in the order of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Messages,
    Mailboxes,
    Webhooks,
    Apps,
    Billing,
    Settings,
}

impl Section {
    /// All of them.
    const ALL: [Self; 7] = [
        Self::Overview,
        Self::Messages,
        Self::Mailboxes,
        Self::Webhooks,
        Self::Apps,
        Self::Billing,
        Self::Settings,
    ];

    /// The section of a path; of an unknown path, the first one.
    fn of(path: &str) -> Self {
        let is_at = |section: &Self| *section != Self::Overview && path.starts_with(section.path());
        Self::ALL.into_iter().find(is_at).unwrap_or(Self::Overview)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Apps => "Apps",
            Self::Mailboxes => "Mailboxes",
            Self::Messages => "Messages",
            Self::Webhooks => "Webhooks",
            Self::Billing => "Billing",
            Self::Settings => "Settings",
        }
    }

    /// Its icon, by its name in the sprite.
    pub(crate) fn icon(self) -> &'static str {
        match self {
            Self::Overview => "layout-dashboard",
            Self::Apps => "app-window",
            Self::Mailboxes => "inbox",
            Self::Messages => "send",
            Self::Webhooks => "webhook",
            Self::Billing => "credit-card",
            Self::Settings => "settings",
        }
    }

    /// Whether its pages show one app or all, by choice.
    pub(crate) fn is_by_app(self) -> bool {
        matches!(
            self,
            Self::Overview | Self::Mailboxes | Self::Messages | Self::Webhooks
        )
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Overview => "/portal",
            Self::Apps => "/portal/apps",
            Self::Mailboxes => "/portal/mailboxes",
            Self::Messages => "/portal/messages",
            Self::Webhooks => "/portal/webhooks",
            Self::Billing => "/portal/billing",
            Self::Settings => "/portal/settings",
        }
    }
}

/// A page's frame, for `frame.html`.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) title: String,
    /// The browser's title; empty: the page's.
    tab: String,
    /// The pages above this one, as names and paths.
    pub(crate) trail: Vec<(String, String)>,
    /// The operator's name.
    pub(crate) name: String,
    /// The operator's support page; empty: unknown.
    pub(crate) support_url: String,
    /// `None`: nobody is signed in, or it is unknown.
    pub(crate) inside: Option<Inside>,
}

/// The frame's parts for signed-in users.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) section: Section,
    /// Who is signed in.
    pub(crate) label: String,
    pub(crate) apps: Vec<NamedApp>,
    /// The slug of the selected app.
    pub(crate) app: Option<String>,
    /// Whether this gateway bills mailboxes.
    is_billed: bool,
    /// Why the operator has suspended the account, if so.
    pub(crate) suspension: Option<String>,
    /// What billing needs.
    pub(crate) banner: Option<Banner>,
}

impl Frame {
    /// For a page without a signed-in user.
    pub(crate) fn outside(state: &PortalState, title: impl Into<String>) -> Self {
        let name = Some(&state.settings.name).filter(|name| !name.is_empty());
        Self {
            title: title.into(),
            tab: String::new(),
            trail: Vec::new(),
            name: name.map_or(NAME, |name| name).to_owned(),
            support_url: state.settings.support_url.clone(),
            inside: None,
        }
    }

    /// Around invented content, as if somebody had signed in.
    pub(crate) fn example(state: &PortalState, title: &str) -> Self {
        let section = Section::Overview;
        let inside = Inside {
            section,
            label: "Example".to_owned(),
            apps: vec![NamedApp {
                id: AppId(Uuid::nil()),
                slug: "example".to_owned(),
                name: "Example app".to_owned(),
                pushable_key: String::new(),
            }],
            app: None,
            is_billed: true,
            suspension: Some("an invented reason".to_owned()),
            banner: None,
        };
        Self {
            trail: vec![(section.name().to_owned(), section.path().to_owned())],
            inside: Some(inside),
            ..Self::outside(state, title)
        }
    }

    /// For a subscriber's page, of one app or of all. Parts that can't be loaded are left out, so that the page stays
    /// usable.
    pub(crate) async fn load(
        state: &PortalState,
        subscriber: &Subscriber,
        section: Section,
        title: impl Into<String>,
        app: Option<&str>,
    ) -> Self {
        let (apps, attention) = tokio::join!(
            state.accounts.named_apps(subscriber.id, APPS, app),
            state.billing.attention(subscriber.id),
        );
        let inside = Inside {
            section,
            label: subscriber.label.clone(),
            apps: apps.unwrap_or_default(),
            app: app.map(ToOwned::to_owned),
            is_billed: state.billing.is_configured(),
            suspension: (subscriber.suspension.as_ref())
                .map(|suspension| suspension.reason.clone()),
            banner: (attention.ok().flatten()).map(|stored| banner(&stored, state.clock.now())),
        };
        let mut frame = Self::outside(state, title);
        if frame.title != section.name() {
            let path = inside.way(section.path());
            frame.trail.push((section.name().to_owned(), path));
        }
        Self {
            inside: Some(inside),
            ..frame
        }
    }

    /// Around a problem at this path. A signed-in reader keeps the navigation.
    pub(crate) async fn around(
        state: &PortalState,
        token: Option<SessionToken>,
        path: &str,
        title: &'static str,
    ) -> Self {
        let found = match &token {
            Some(token) => state.accounts.portal_session(token).await.ok().flatten(),
            None => None,
        };
        match found {
            Some(found) => {
                let section = Section::of(path);
                let mut frame = Self::load(state, &found.subscriber, section, title, None).await;
                frame.trail.clear();
                frame
            }
            None => Self::outside(state, title),
        }
    }

    /// Below a further page.
    pub(crate) fn below(mut self, name: impl Into<String>, path: impl Into<String>) -> Self {
        self.trail.push((name.into(), path.into()));
        self
    }

    /// The path of a page below a list, with the selected app, so that the way back keeps it.
    pub(crate) fn scoped(&self, path: impl AsRef<str>) -> String {
        match &self.inside {
            Some(inside) => inside.way(path.as_ref()),
            None => path.as_ref().to_owned(),
        }
    }

    /// With another title for the browser.
    pub(crate) fn in_tab(self, tab: impl Into<String>) -> Self {
        Self {
            tab: tab.into(),
            ..self
        }
    }

    /// Whether the title has an address, which isn't broken into lines.
    pub(crate) fn has_address(&self) -> bool {
        self.title.contains('@') || self.title.contains("://")
    }

    /// The browser's title.
    pub(crate) fn tab(&self) -> &str {
        if self.tab.is_empty() {
            &self.title
        } else {
            &self.tab
        }
    }

    /// Whether the subscription needs attention.
    pub(crate) fn is_alert(&self) -> bool {
        self.inside
            .as_ref()
            .is_some_and(|inside| inside.banner.is_some())
    }
}

impl Inside {
    /// The banner, but on the pages of billing, which say it themselves.
    pub(crate) fn shown_banner(&self) -> Option<&Banner> {
        self.banner
            .as_ref()
            .filter(|_| self.section != Section::Billing)
    }

    /// The sections in the navigation.
    pub(crate) fn sections(&self) -> impl Iterator<Item = Section> {
        let shows = |section: &Section| self.is_billed || *section != Section::Billing;
        Section::ALL.into_iter().filter(shows)
    }

    /// A path, with the selected app.
    pub(crate) fn way(&self, path: &str) -> String {
        match &self.app {
            Some(app) => format!("{path}?{}", query(&[("app", app)])),
            None => path.to_owned(),
        }
    }

    /// The selected app, if the subscriber has it.
    pub(crate) fn chosen_app(&self) -> Option<&NamedApp> {
        let slug = self.app.as_ref()?;
        self.apps.iter().find(|app| app.slug == *slug)
    }

    /// The name of the selected app.
    pub(crate) fn chosen(&self) -> &str {
        match (&self.app, self.chosen_app()) {
            (_, Some(app)) => &app.name,
            (Some(_), None) => "Unknown app",
            (None, None) => "All apps",
        }
    }
}

/// A query with these parameters.
pub(crate) fn query(parameters: &[(&str, &str)]) -> String {
    Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish()
}
