//! The demo that `mailgate dev` begins with: a subscriber, an app, and a mailbox of the sandbox,
//! connected the way every mailbox is.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::home::{Home, HomeError};
use super::provider::SandboxProvider;
use crate::accounts::{AppCredentials, CreateError, ShowError};
use crate::daemon::Daemon;
use crate::mailboxes::{ConnectError, Connected, NewConnection};
use crate::types::ids::{AppId, SubscriberId};
use crate::types::plugin::Plugin;
use crate::types::secrets::{NoRandomness, random_bytes};

/// Where the demo's ids lie in the folder of the state.
const FILE: &str = "demo.json";

/// The demo's mailbox.
const MAILBOX: &str = "ada@sandbox.example";

/// How long the sandbox may take for a page.
const PAGE: std::time::Duration = std::time::Duration::from_secs(10);

/// The demo can't be made.
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
    /// The way through the provider's pages.
    #[error("the demo's mailbox can't be connected: {0}")]
    Authorize(String),
    /// What the database said.
    #[error("the demo can't be stored: {0}")]
    Database(#[from] sqlx::Error),
    /// No verifier could be drawn.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// All that a newcomer needs.
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

/// Finds the demo of an earlier start, or makes it.
pub(super) async fn ensure(
    home: &Home,
    daemon: &Daemon,
    provider: &SandboxProvider,
) -> Result<Demo, DemoError> {
    let known = home
        .read(FILE)?
        .and_then(|text| serde_json::from_str::<Ids>(&text).ok());
    let found = match known {
        Some(ids) => daemon.accounts.app_credentials(AppId(ids.app)).await?,
        None => None,
    };
    let app = match found {
        Some(app) => app,
        None => create(home, daemon).await?,
    };
    let connected = daemon
        .mailboxes
        .for_user(app.app, None, Some(Plugin::A))
        .await?;
    let mailbox = match connected {
        Some(mailbox) => Connected {
            credential: mailbox.id,
            user_key: mailbox.user_key,
            email: mailbox.email,
        },
        None => connect(app.app, daemon, provider).await?,
    };
    Ok(Demo {
        app,
        mailbox,
        plugin: Plugin::A,
    })
}

async fn create(home: &Home, daemon: &Daemon) -> Result<AppCredentials, DemoError> {
    let mut transaction = daemon.pool.begin().await?;
    let accounts = &daemon.accounts;
    let subscriber = accounts
        .create_subscriber(&mut transaction, "Demo", "demo@sandbox.example")
        .await?;
    let app = accounts
        .create_app(&mut transaction, subscriber.id, "Demo")
        .await?;
    let ids = Ids {
        subscriber: subscriber.id.0,
        app: app.id.0,
    };
    transaction.commit().await?;
    home.write(FILE, &serde_json::to_string(&ids).unwrap_or_default())?;
    Ok(AppCredentials {
        subscriber: SubscriberId(ids.subscriber),
        api_secret: subscriber.api_secret,
        app: app.id,
        slug: app.slug,
        pushable_key: app.pushable_key,
        send_key: app.send_key,
    })
}

/// Walks through the provider's authorization as a browser would, with PKCE (RFC 7636) and a
/// `login_hint`, so that nobody has to press a button.
async fn connect(
    app: AppId,
    daemon: &Daemon,
    provider: &SandboxProvider,
) -> Result<Connected, DemoError> {
    let code_verifier = URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
    let code_challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(code_verifier.as_bytes()));
    let state = URL_SAFE_NO_PAD.encode(random_bytes::<16>()?);
    let redirect_uri = format!("http://{}/oauth/callback", daemon.http_address);
    let settings = daemon
        .mailboxes
        .provider_settings(Plugin::A)
        .ok_or(ConnectError::PluginOff(Plugin::A))?;
    let failed = |why: &dyn std::fmt::Display| DemoError::Authorize(why.to_string());
    let browser = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(PAGE)
        .build()
        .map_err(|error| failed(&error))?;
    let response = browser
        .get(&settings.authorize_url)
        .query(&[
            ("response_type", "code"),
            ("client_id", &settings.client_id),
            ("redirect_uri", &redirect_uri),
            ("scope", &settings.scopes.join(" ")),
            ("state", &state),
            ("code_challenge", &code_challenge),
            ("code_challenge_method", "S256"),
            ("login_hint", MAILBOX),
        ])
        .send()
        .await
        .map_err(|error| failed(&error))?;
    let answer = response
        .headers()
        .get("location")
        .and_then(|location| location.to_str().ok())
        .and_then(|location| url::Url::parse(location).ok())
        .ok_or_else(|| failed(&format!("{} answers {}", provider.url(), response.status())))?;
    let parameter = |name: &str| {
        answer
            .query_pairs()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    if parameter("state").as_deref() != Some(&state) {
        return Err(failed(&"the answer belongs to another question"));
    }
    let code = parameter("code")
        .ok_or_else(|| failed(&parameter("error").unwrap_or_else(|| "no code came".to_owned())))?;
    let connected = daemon
        .mailboxes
        .connect(&NewConnection {
            app,
            user_id: None,
            plugin: Plugin::A,
            code: &code,
            redirect_uri: &redirect_uri,
            code_verifier: &code_verifier,
        })
        .await?;
    Ok(connected)
}

impl Demo {
    /// The secrets in clear, for the newcomer they belong to.
    pub(super) fn api_secret(&self) -> &str {
        self.app.api_secret.expose()
    }
}
