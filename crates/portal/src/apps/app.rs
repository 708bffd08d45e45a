//! One app: its keys, code samples, connect links, refused messages, options, and its deletion.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::code::{PLACEHOLDER, Sample, Values};
use super::connect::{Link, LinkForm};
use super::form::AppForm;
use super::parts::{Refusal, Suppressed, refusals, suppressed};
use super::send_keys::{self, KeyRow};
use crate::PortalState;
use crate::page::fields::{Asked, Common};
use crate::page::frame::{Frame, Section};
use crate::page::owned_app::OwnedApp;
use crate::page::page;
use crate::page::problem::PortalProblem;
use crate::page::said::Said;
use crate::page::state::Submission;
use crate::page::words::{Moment, number};
use crate::page::wrong::Wrong;
use mailgate_domain::accounts::App;

/// A provider in the drop-down.
struct Provider {
    plugin: &'static str,
    label: String,
}

/// The page.
#[derive(Template)]
#[template(path = "app.html")]
pub(crate) struct AppPage {
    frame: Frame,
    pub(crate) said: Said,
    /// The tab that is shown.
    pub(crate) tab: &'static str,
    app: App,
    /// The path of this page.
    path: String,
    created_at: Moment,
    mailboxes: String,
    /// Whether secrets are shown without asking for the API secret again.
    is_fresh: bool,
    /// Empty until it is revealed.
    send_key: String,
    /// Empty until it is revealed.
    pub(crate) webhook_secret: String,
    /// Until when the previous secret also signs.
    pub(crate) previous_until: Option<Moment>,
    /// The additional send keys; `None`: they can't be shown at the moment.
    keys: Option<Vec<KeyRow>>,
    curl: String,
    samples: [Sample; 5],
    submission: Submission,
    providers: Vec<Provider>,
    pub(crate) link_form: LinkForm,
    pub(crate) link_wrong: Wrong,
    pub(crate) link: Option<Link>,
    /// `None`: they can't be shown at the moment.
    refusals: Option<Vec<Refusal>>,
    pub(crate) options: AppForm,
    pub(crate) wrong: Wrong,
    /// `None`: they can't be shown at the moment.
    suppressed: Option<Suppressed>,
}

impl AppPage {
    /// Loads the page's data. Parts that fail are left out.
    pub(crate) async fn load(state: &PortalState, owned: &OwnedApp) -> Self {
        // Boxed: it is large, and many handlers hold it.
        Box::pin(Self::read(state, owned)).await
    }

    async fn read(state: &PortalState, owned: &OwnedApp) -> Self {
        let OwnedApp { session, app } = owned;
        let subscriber = &session.subscriber;
        let chosen = Some(app.slug.as_str());
        let (frame, keys, refusals, suppressed) = tokio::join!(
            Frame::load(state, subscriber, Section::Apps, &app.name, chosen),
            send_keys::rows(state, owned),
            refusals(state, app.id),
            suppressed(state, app.id),
        );
        let providers = state.mailboxes.providers().map(|provider| Provider {
            plugin: provider.plugin.as_str(),
            label: provider.label.clone(),
        });
        let values = values(state, app, PLACEHOLDER);
        Self {
            frame,
            said: Said::default(),
            tab: "quickstart",
            path: owned.path(),
            created_at: Moment::new(app.created_at),
            mailboxes: number(app.users_count),
            is_fresh: session.is_fresh(state.clock.now()),
            send_key: String::new(),
            webhook_secret: String::new(),
            previous_until: None,
            keys,
            curl: values.curl(),
            samples: values.samples(),
            submission: state.submission.clone(),
            providers: providers.collect(),
            link_form: LinkForm::default(),
            link_wrong: Wrong::default(),
            link: None,
            refusals,
            options: AppForm::from(app),
            wrong: Wrong::default(),
            suppressed,
            app: app.clone(),
        }
    }

    /// Shows the send key, also in the code samples.
    pub(crate) fn with_send_key(self, state: &PortalState, send_key: &str) -> Self {
        let values = values(state, &self.app, send_key);
        Self {
            curl: values.curl(),
            samples: values.samples(),
            send_key: send_key.to_owned(),
            ..self
        }
    }
}

fn values<'a>(state: &'a PortalState, app: &'a App, send_key: &'a str) -> Values<'a> {
    Values {
        base_url: &state.base_url,
        pushable_key: &app.pushable_key,
        send_key,
    }
}

/// Shows the page.
pub(crate) async fn show(
    owned: OwnedApp,
    State(state): State<PortalState>,
    Asked(common): Asked<Common>,
) -> Result<Response, PortalProblem> {
    let mut body = AppPage::load(&state, &owned).await;
    body.said = common.said();
    body.tab = common.tab().unwrap_or(body.tab);
    Ok(page(StatusCode::OK, &body))
}
