//! The demo that `mailgate dev` creates: a subscriber, an app, and a sandbox mailbox, connected like any other.

use std::sync::Arc;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::home::{Home, HomeError};
use crate::daemon::Daemon;
use mailgate_domain::accounts::{
    Accounts, AppCredentials, AppFields, CreateError, MintError, ShowError,
};
use mailgate_domain::mailboxes::{
    Chosen, ConnectError, Connected, Mailboxes, NewConnection, Wanted,
};
use mailgate_sandbox::authorize::AuthorizeError;
use mailgate_sandbox::provider::SandboxProvider;
use mailgate_server::http::connectable;
use mailgate_types::audit::Author;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::AppId;
use mailgate_types::plugin::Plugin;

/// The file with the demo's ids, in the state folder.
const FILE: &str = "demo.json";

/// The demo's mailbox.
const MAILBOX: &str = "ada@sandbox.example";

/// Why the demo can't be created.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// Its file.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Its subscriber or app.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// Its keys.
    #[error(transparent)]
    Show(#[from] ShowError),
    /// Its mailbox.
    #[error("the demo's mailbox can't be connected: {0}")]
    Connect(#[from] ConnectError),
    /// Its sign-in link.
    #[error("the demo can't be signed in: {0}")]
    Mint(#[from] MintError),
    /// The database failed.
    #[error("the demo can't be read: {0}")]
    Database(#[from] sqlx::Error),
    /// The authorization at the provider.
    #[error("the demo's mailbox can't be connected: {0}")]
    Authorize(#[from] AuthorizeError),
}

/// Everything that a newcomer needs.
#[derive(Debug)]
pub(super) struct Demo {
    pub(super) app: AppCredentials,
    pub(super) mailbox: Connected,
    pub(super) plugin: Plugin,
}

#[derive(Serialize, Deserialize)]
struct Ids {
    subscriber: Uuid,
    app: Uuid,
}

/// How long the printed sign-in link is valid.
const PORTAL_LINK: TimeDelta = TimeDelta::days(1);

/// A one-time sign-in link to the portal, or its plain address while the links of earlier runs are still valid. `None`
/// without a portal.
pub(super) async fn portal_url(daemon: &Daemon, demo: &Demo) -> Result<Option<String>, DemoError> {
    if !daemon.has_portal {
        return Ok(None);
    }
    let portal = format!("{}/portal", daemon.base_url);
    let minted =
        daemon
            .accounts
            .mint_portal_link(demo.app.subscriber, PORTAL_LINK, Author::operator(None));
    match minted.await {
        Ok((token, _)) => Ok(Some(format!("{portal}/sign-in/{}", token.expose()))),
        Err(MintError::TooMany) => Ok(Some(portal)),
        Err(error) => Err(error.into()),
    }
}

/// Finds the demo of an earlier run, or creates it: now, or by the clock of its past.
pub(super) async fn ensure(
    home: &Home,
    daemon: &Daemon,
    provider: &SandboxProvider,
    past: Option<SharedClock>,
) -> Result<Demo, DemoError> {
    let (accounts, mailboxes) = match past {
        Some(clock) => (
            daemon.accounts.by_clock(Arc::clone(&clock)),
            daemon.mailboxes.by_clock(clock),
        ),
        None => (daemon.accounts.clone(), daemon.mailboxes.clone()),
    };
    let known = home
        .read(FILE)?
        .and_then(|text| serde_json::from_str::<Ids>(&text).ok());
    let found = match known {
        Some(ids) => accounts.app_credentials(AppId(ids.app)).await?,
        None => None,
    };
    let app = match found {
        Some(app) => app,
        None => create(home, &accounts).await?,
    };
    let wanted = Wanted {
        app: app.app,
        user: None,
        plugin: Some(Plugin::A),
        address_lookup: None,
        only: None,
    };
    let connected = mailboxes.choose(&wanted).await?;
    let mailbox = if let Some(Chosen { mailbox, .. }) = connected {
        Connected {
            credential: mailbox.id,
            user_key: mailbox.user_key,
            email: mailbox.email,
        }
    } else {
        let gateway = connectable(daemon.http_address).to_string();
        connect(app.app, &mailboxes, &gateway, provider).await?
    };
    Ok(Demo {
        app,
        mailbox,
        plugin: Plugin::A,
    })
}

async fn create(home: &Home, accounts: &Accounts) -> Result<AppCredentials, DemoError> {
    let created = accounts
        .create_subscriber_with_app("Demo", "demo@sandbox.example", &AppFields::named("Demo"))
        .await?;
    let ids = Ids {
        subscriber: created.subscriber.0,
        app: created.app.0,
    };
    home.write(FILE, &serde_json::to_string(&ids).unwrap_or_default())?;
    Ok(created)
}

async fn connect(
    app: AppId,
    mailboxes: &Mailboxes,
    gateway: &str,
    provider: &SandboxProvider,
) -> Result<Connected, DemoError> {
    let redirect_uri = format!("http://{gateway}/oauth/callback");
    let granted = provider.authorize(&redirect_uri, MAILBOX).await?;
    let connected = mailboxes
        .connect(&NewConnection {
            app,
            user_id: None,
            plugin: Plugin::A,
            code: &granted.code,
            redirect_uri: &redirect_uri,
            code_verifier: &granted.code_verifier,
        })
        .await?;
    Ok(connected)
}

impl Demo {
    /// The API secret in plaintext.
    pub(super) fn api_secret(&self) -> &str {
        self.app.api_secret.expose()
    }
}
