//! The frame of every page: the navigation, the app switcher, and the banners.

use url::form_urlencoded::Serializer;

use crate::PortalState;
use mailgate_domain::accounts::{NamedApp, Subscriber};

/// Apps in the switcher, besides the selected one.
const APPS: i64 = 100;

/// The portal's default name.
const NAME: &str = "Mailgate";

/// A section of the portal, in the order of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Apps,
    Mailboxes,
    Messages,
    Webhooks,
    Billing,
    Settings,
}

impl Section {
    /// All of them.
    const ALL: [Self; 7] = [
        Self::Overview,
        Self::Apps,
        Self::Mailboxes,
        Self::Messages,
        Self::Webhooks,
        Self::Billing,
        Self::Settings,
    ];

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
    /// Whether billing needs attention.
    pub(crate) show_banner: bool,
}

impl Frame {
    /// For a page without a signed-in user.
    pub(crate) fn outside(state: &PortalState, title: impl Into<String>) -> Self {
        let name = Some(&state.settings.name).filter(|name| !name.is_empty());
        Self {
            title: title.into(),
            name: name.map_or(NAME, |name| name).to_owned(),
            support_url: state.settings.support_url.clone(),
            inside: None,
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
        let (apps, standing) = tokio::join!(
            state.accounts.named_apps(subscriber.id, APPS, app),
            state.billing.standing(subscriber.id),
        );
        Self {
            inside: Some(Inside {
                section,
                label: subscriber.label.clone(),
                apps: apps.unwrap_or_default(),
                app: app.map(ToOwned::to_owned),
                is_billed: state.billing.is_configured(),
                suspension: (subscriber.suspension.as_ref())
                    .map(|suspension| suspension.reason.clone()),
                show_banner: standing.is_ok_and(|standing| standing.show_banner),
            }),
            ..Self::outside(state, title)
        }
    }
}

impl Inside {
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
