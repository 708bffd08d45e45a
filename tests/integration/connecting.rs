//! End users connect their mailboxes: the link, the provider, the way back, and what is told of it.

mod account;
mod audited;
mod browser;
mod button;
mod disconnect;
mod failures;
mod fair;
mod former;
mod languages;
mod pages;
mod pending;
mod plans;
mod provider;
mod revoked;
mod rules;
mod sessions;
mod strangers;
mod suspended;
mod token_answers;
mod visits;
mod vouched;
mod way;

use std::collections::BTreeMap;
use std::sync::Mutex;

use mailgate_domain::accounts::{AppFields, CreatedApp};
use mailgate_types::ids::CredentialId;
use mailgate_types::seal::SealKeys;
use reqwest::RequestBuilder;
use reqwest::header::{COOKIE, HeaderMap, LOCATION, SET_COOKIE};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use url::Url;

use crate::support::caller::Caller;
use crate::support::gateway::{Gateway, OPERATOR, SEAL_KEY};

/// What the browser of these tests shows: it was here before.
pub const BROWSER: &str = "mailgate_browser=bWFpbGdhdGUncyBicm93c2VyIG9mIHRoZXNlIHRlc3Q";

/// What that browser keeps of authorizations under way, by their states.
static PENDING: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// The `state` in an address.
fn state_in(url: &Url) -> Option<String> {
    let mut pairs = url.query_pairs();
    let (_, state) = pairs.find(|(name, _)| name == "state")?;
    Some(state.into_owned())
}

/// Keeps the cookies that came with the way to a provider.
pub fn keep_cookies(headers: &HeaderMap) {
    let location = headers.get(LOCATION).and_then(|it| it.to_str().ok());
    let Some(state) = location.and_then(|it| state_in(&it.parse().ok()?)) else {
        return;
    };
    let cookies = headers.get_all(SET_COOKIE).iter();
    let pairs = cookies.map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap());
    let pairs = pairs.filter(|pair| pair.contains("mailgate_pending_") && !pair.ends_with('='));
    let pairs = pairs.collect::<Vec<_>>().join("; ");
    if !pairs.is_empty() {
        PENDING.lock().unwrap().insert(state, pairs);
    }
}

/// The `Cookie` of that browser at an address.
pub fn cookies_at(url: &str) -> String {
    let pending = PENDING.lock().unwrap();
    let state = url.parse().ok().and_then(|url| state_in(&url));
    match state.and_then(|state| pending.get(&state)) {
        Some(pairs) => format!("{BROWSER}; {pairs}"),
        None => BROWSER.to_owned(),
    }
}

/// What a browser is shown.
struct Visit {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Visit {
    /// Opens an address; redirects are not followed.
    async fn to(url: impl Into<String>) -> Self {
        let url = url.into();
        let cookies = cookies_at(&url);
        Self::by(browser().get(url).header(COOKIE, cookies)).await
    }

    /// Presses the button of the page at this address.
    async fn press(url: impl Into<String>) -> Self {
        let visit = Self::by(browser().post(url.into()).header(COOKIE, BROWSER)).await;
        assert_ne!(visit.status, 302, "a POST is answered with 303");
        keep_cookies(&visit.headers);
        visit
    }

    /// What a request is answered.
    async fn by(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.text().await.unwrap(),
        }
    }

    /// Where a redirect leads.
    fn location(&self) -> Url {
        assert!(matches!(self.status, 302 | 303), "{}", self.body);
        let location = self.headers[LOCATION].to_str().unwrap();
        location.parse().unwrap()
    }

    /// A parameter of the address that a redirect leads to.
    fn parameter(&self, name: &str) -> Option<String> {
        let location = self.location();
        let mut pairs = location.query_pairs();
        let value = pairs.find(|(found, _)| found == name)?.1;
        Some(value.into_owned())
    }

    /// The gateway's own page that a way ends at, where it does.
    async fn end(self) -> Self {
        let location = self.headers.get(LOCATION);
        let location = location.map(|location| location.to_str().unwrap());
        match location {
            Some(page) if page.contains("/connect/result?") => Self::to(page).await,
            _ => self,
        }
    }

    fn title(&self) -> &str {
        let (_, rest) = self.body.split_once("<h1>").expect("a title");
        rest.split("</h1>").next().unwrap()
    }

    /// A page of the gateway's own about a failure.
    #[track_caller]
    fn is_failure(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{}", self.body);
        self.is_page();
        let code = format!("<code>{code}</code>");
        assert!(self.body.contains(&code), "{code}: {}", self.body);
        // What only developers understand stands where users don't see it.
        let shown = self.shown().replace(&code, "");
        for name in [
            "plugin_",
            "user_id",
            "login_hint",
            "connect-sessions",
            "parameter",
        ] {
            assert!(!shown.contains(name), "{name}: {shown}");
        }
    }

    /// What stands in the page but for addresses and comments.
    fn shown(&self) -> String {
        let (_, body) = self.body.split_once("<main>").unwrap_or_default();
        let mut pieces = body.split("<!--");
        let mut shown = pieces.next().unwrap_or_default().to_owned();
        shown.extend(
            pieces
                .filter_map(|piece| piece.split_once("-->"))
                .map(|(_, it)| it),
        );
        let links = ["href=\"", "action=\"", "id=\""];
        for link in links {
            let mut pieces = shown.split(link).map(str::to_owned).collect::<Vec<_>>();
            for piece in pieces.iter_mut().skip(1) {
                *piece = piece
                    .split_once('"')
                    .map(|(_, it)| it.to_owned())
                    .unwrap_or_default();
            }
            shown = pieces.concat();
        }
        shown
    }

    /// What every page of the gateway's own has.
    #[track_caller]
    fn is_page(&self) {
        self.is_page_in("en");
    }

    /// The same in a language.
    #[track_caller]
    fn is_page_in(&self, language: &str) {
        assert_eq!(self.headers["content-language"], language);
        assert_eq!(self.headers["vary"], "accept-language");
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(self.headers[name], value, "{name}");
        }
        let has_forms = self.body.contains("<form");
        let referrer = if has_forms {
            "same-origin"
        } else {
            "no-referrer"
        };
        assert_eq!(self.headers["referrer-policy"], referrer);
        let policy = self.headers["content-security-policy"].to_str().unwrap();
        for directive in [
            "default-src 'none'",
            "style-src 'sha256-",
            if has_forms {
                "form-action 'self' http: https:"
            } else {
                "form-action 'none'"
            },
            "base-uri 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(directive), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for part in [
            &format!("<html lang=\"{language}\">"),
            "<meta name=\"viewport\"",
            "color-scheme:light dark",
            "<main>",
            "<h1>",
        ] {
            assert!(self.body.contains(part), "{part}: {}", self.body);
        }
        for part in ["<script", " style=", "javascript:"] {
            assert!(!self.body.contains(part), "{part}: {}", self.body);
        }
    }
}

/// An app's connect link with these parameters.
fn link(gateway: &Gateway, app: &CreatedApp, parameters: &[(&str, &str)]) -> Url {
    let address = format!(
        "{}/connect/{}",
        gateway.daemon.base_url,
        app.pushable_key.expose()
    );
    if parameters.is_empty() {
        return address.parse().unwrap();
    }
    Url::parse_with_params(&address, parameters).unwrap()
}

/// A browser without cookies.
fn browser() -> reqwest::Client {
    let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    builder.no_proxy().build().unwrap()
}

/// From the link through the provider to where the user comes back.
async fn until_callback(gateway: &Gateway, app: &CreatedApp, parameters: &[(&str, &str)]) -> Url {
    let begun = Visit::press(link(gateway, app, parameters)).await;
    let granted = Visit::to(begun.location()).await;
    granted.location()
}

/// The whole way.
async fn walk(gateway: &Gateway, app: &CreatedApp, parameters: &[(&str, &str)]) -> Visit {
    complete(until_callback(gateway, app, parameters).await).await
}

/// From where the user comes back to the end.
async fn complete(callback: Url) -> Visit {
    Visit::to(callback).await.end().await
}

/// The token of a connect session that the app's owner asks for.
async fn session(gateway: &Gateway, app: &CreatedApp, body: Value) -> String {
    let owner = Caller::owner(gateway).await;
    let path = format!("/apps/{}/connect-sessions", app.pushable_key.expose());
    let session = owner.post(&path, &body).await.success(201);
    let url: Url = session["url"].as_str().unwrap().parse().unwrap();
    let mut pairs = url.query_pairs();
    let (_, token) = pairs.find(|(name, _)| name == "session").unwrap();
    token.into_owned()
}

/// The whole way by a connect session of the gateway's own app, to a mailbox at `plugin_a`.
async fn connect_by_session(gateway: &Gateway, email: &str) -> Visit {
    let asked = json!({ "plugin": "plugin_a", "login_hint": email });
    let token = session(gateway, &gateway.app, asked).await;
    let parameters = [("plugin", "plugin_a"), ("session", token.as_str())];
    walk(gateway, &gateway.app, &parameters).await
}

/// The whole way to a mailbox at `plugin_a` and the page at its end.
async fn connect(gateway: &Gateway, app: &CreatedApp, email: &str) -> Visit {
    walk(
        gateway,
        app,
        &[("plugin", "plugin_a"), ("login_hint", email)],
    )
    .await
}

async fn execute(gateway: &Gateway, statement: &'static str) {
    sqlx::query(statement)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

/// A further app of the gateway's subscriber.
async fn another_app(gateway: &Gateway, name: &str) -> CreatedApp {
    let (accounts, fields) = (&gateway.daemon.accounts, AppFields::named(name));
    let created = accounts.create_own_app(gateway.subscriber, &fields, OPERATOR);
    created.await.unwrap()
}

/// The `user.…` events of all apps that have a `webhook_url`, as `(name, data)`, oldest first.
async fn events(gateway: &Gateway) -> Vec<(String, Value)> {
    let rows: Vec<(String, String)> = sqlx::query_as(
        "SELECT event, body FROM webhook_messages WHERE event LIKE 'user.%'
             ORDER BY created_at, id",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap();
    rows.into_iter()
        .map(|(event, body)| {
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["event"], event);
            (event, body["data"].clone())
        })
        .collect()
}

/// `user.connected` as [`events`] has it.
fn connected(credential: &str, email: &str, plugin: &str) -> (String, Value) {
    let data = json!({ "credential_id": credential, "email": email, "plugin": plugin });
    ("user.connected".to_owned(), data)
}

/// `user.disconnected` as [`events`] has it.
fn disconnected(credential: &str, email: &str, plugin: &str, reason: &str) -> (String, Value) {
    let data = json!({
        "credential_id": credential, "email": email, "plugin": plugin, "reason": reason,
    });
    ("user.disconnected".to_owned(), data)
}

/// A row of `mailboxes`.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
struct Row {
    email: String,
    user_id: Option<String>,
    status: String,
    disconnect_reason: Option<String>,
    has_tokens: bool,
}

/// The mailboxes of an app, by their addresses.
async fn rows(gateway: &Gateway, app: &CreatedApp) -> Vec<Row> {
    sqlx::query_as(
        "SELECT email, user_id, status, disconnect_reason,
                refresh_token_sealed IS NOT NULL AND access_token_sealed IS NOT NULL AS has_tokens
         FROM mailboxes JOIN end_users USING (user_key)
         WHERE mailboxes.app_id = $1 ORDER BY email, user_id",
    )
    .bind(app.id.0)
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap()
}

/// The addresses of an app's active mailboxes.
async fn active(gateway: &Gateway, app: &CreatedApp) -> Vec<String> {
    let rows = rows(gateway, app).await;
    let active = rows.into_iter().filter(|row| row.status == "active");
    active.map(|row| row.email).collect()
}

/// A mailbox's access token, in clear.
async fn access_token(gateway: &Gateway, credential: CredentialId) -> String {
    let sealed: Vec<u8> =
        sqlx::query_scalar("SELECT access_token_sealed FROM mailboxes WHERE id = $1")
            .bind(credential.0)
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    let context = format!("mailboxes.access_token {}", credential.0);
    let opened = SealKeys::parse([SEAL_KEY])
        .unwrap()
        .unseal(&context, &sealed);
    opened.unwrap().expose_secret().to_owned()
}

/// How many grants live at the sandbox: it keeps a file of each.
pub fn grants(gateway: &Gateway) -> usize {
    owners_of_grants(gateway).len()
}

/// How many of them are of one account.
fn grants_of(gateway: &Gateway, account: &str) -> usize {
    let owners = owners_of_grants(gateway);
    let of_it = owners
        .iter()
        .filter(|owner| owner.eq_ignore_ascii_case(account));
    of_it.count()
}

fn owners_of_grants(gateway: &Gateway) -> Vec<String> {
    let folder = gateway.ca_file.parent().unwrap().join("grants");
    let paths = std::fs::read_dir(folder).unwrap();
    paths
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        // One may end between being listed and being read.
        .filter_map(|path| std::fs::read(path).ok())
        .map(|grant| {
            let grant: Value = serde_json::from_slice(&grant).unwrap();
            grant["mailbox"].as_str().unwrap().to_owned()
        })
        .collect()
}

/// Waits until an account has no grant any more.
async fn no_grant_of(gateway: &Gateway, account: &str) {
    gateway
        .eventually("the end of a grant", async |gateway| {
            grants_of(gateway, account) == 0
        })
        .await;
}

/// Waits until just so many grants are left.
async fn left_with(gateway: &Gateway, count: usize) {
    gateway
        .eventually("the end of a grant", async |gateway| {
            grants(gateway) == count
        })
        .await;
}

/// How many ways and sessions were used and have not lapsed.
async fn used_links(gateway: &Gateway) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM used_links")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}
