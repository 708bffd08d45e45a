//! The OAuth half of the provider: starting `tests/peers/oidc-provider.mjs`, and being its browser.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::Tokens;
use super::process::{Household, OwnProcessGroup as _};
use crate::support::patience::PATIENCE;

pub const CLIENT_ID: &str = "mailgate-tests";
pub const CLIENT_SECRET: &str = "mailgate-tests-secret";

/// The mail server, as a client that may introspect tokens.
const RESOURCE_ID: &str = "mail-server";
const RESOURCE_SECRET: &str = "mail-server-secret";

/// Longest that it may take to start and to answer one request.
const LIMIT: Duration = PATIENCE;

/// More redirects than a login and a consent take.
const REDIRECTS: usize = 20;

/// Any text of 43 to 128 characters will do (RFC 7636, section 4.1).
const CODE_VERIFIER: &str = "a-code-verifier-that-is-always-the-same-in-these-tests";

pub struct OidcProvider {
    pub issuer: String,
    http: reqwest::Client,
    // The program ends when this closes.
    _stdin: ChildStdin,
}

impl OidcProvider {
    pub async fn start(
        household: &Household,
        redirect_uri: &str,
        access_token_lifetime: Duration,
    ) -> Self {
        let output = fs::File::create(household.folder().join("oidc-provider.output")).unwrap();
        let mut child = Command::new(super::node())
            .arg(super::sources().join("oidc-provider.mjs"))
            .arg("0")
            .env("CLIENT_ID", CLIENT_ID)
            .env("CLIENT_SECRET", CLIENT_SECRET)
            .env("REDIRECT_URIS", redirect_uri)
            .env("RESOURCE_ID", RESOURCE_ID)
            .env("RESOURCE_SECRET", RESOURCE_SECRET)
            .env(
                "ACCESS_TOKEN_SECONDS",
                access_token_lifetime.as_secs().to_string(),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(output)
            .process_group_of_its_own()
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = child.stdout.take().unwrap();
        household.adopt("oidc-provider", child);

        let first_line = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).unwrap();
            line
        });
        let line = tokio::time::timeout(LIMIT, first_line)
            .await
            .unwrap_or_else(|_| panic!("oidc-provider isn't ready\n{}", household.logs()))
            .unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("oidc-provider failed\n{}", household.logs()));
        Self {
            issuer: format!("http://127.0.0.1:{}", ready["port"]),
            http: reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                // Tests on runtimes of their own may share it, and a connection belongs to one.
                .pool_max_idle_per_host(0)
                .timeout(LIMIT)
                .build()
                .unwrap(),
            _stdin: stdin,
        }
    }

    pub fn token_url(&self) -> String {
        format!("{}/token", self.issuer)
    }

    /// With the user name and password of the mail server in it.
    pub fn introspection_url(&self) -> String {
        let address = self.issuer.strip_prefix("http://").unwrap();
        format!("http://{RESOURCE_ID}:{RESOURCE_SECRET}@{address}/token/introspection")
    }

    pub async fn authorize(&self, authorize_url: &str, redirect_uri: &str) -> String {
        let mut cookies = BTreeMap::new();
        let mut here = Url::parse(authorize_url).unwrap();
        for _ in 0..REDIRECTS {
            let shown: Vec<String> = cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let response = self
                .http
                .get(here.clone())
                .header(COOKIE, shown.join("; "))
                .send()
                .await
                .unwrap();
            for cookie in response.headers().get_all(SET_COOKIE) {
                let pair = cookie.to_str().unwrap().split(';').next().unwrap();
                let (name, value) = pair.split_once('=').unwrap();
                if value.is_empty() {
                    cookies.remove(name);
                } else {
                    cookies.insert(name.to_owned(), value.to_owned());
                }
            }
            let Some(location) = response.headers().get(LOCATION) else {
                let status = response.status();
                let body = response.text().await.unwrap();
                panic!("no redirect from {here}, but {status}: {body}");
            };
            let location = here.join(location.to_str().unwrap()).unwrap();
            if location.as_str().starts_with(redirect_uri) {
                return location.into();
            }
            here = location;
        }
        panic!("more than {REDIRECTS} redirects from {authorize_url}");
    }

    pub async fn grant(&self, account: &str, redirect_uri: &str) -> Tokens {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(CODE_VERIFIER));
        let request = Url::parse_with_params(
            &format!("{}/auth", self.issuer),
            [
                ("response_type", "code"),
                ("client_id", CLIENT_ID),
                ("redirect_uri", redirect_uri),
                ("scope", super::SCOPES),
                ("prompt", "consent"),
                ("login_hint", account),
                ("code_challenge", &challenge),
                ("code_challenge_method", "S256"),
                ("state", "granted-by-a-test"),
            ],
        )
        .unwrap();
        let callback = self.authorize(request.as_str(), redirect_uri).await;
        let callback = Url::parse(&callback).unwrap();
        let code = callback
            .query_pairs()
            .find(|(name, _)| name == "code")
            .unwrap_or_else(|| panic!("no code for {account}: {callback}"))
            .1;
        let response = self
            .http
            .post(self.token_url())
            .form(&[
                ("grant_type", "authorization_code"),
                ("code", &code),
                ("redirect_uri", redirect_uri),
                ("client_id", CLIENT_ID),
                ("client_secret", CLIENT_SECRET),
                ("code_verifier", CODE_VERIFIER),
            ])
            .send()
            .await
            .unwrap();
        let body = response.text().await.unwrap();
        serde_json::from_str(&body)
            .unwrap_or_else(|error| panic!("no tokens for {account} ({error}): {body}"))
    }

    pub async fn withdraw(&self, account: &str) {
        let url = Url::parse_with_params(
            &format!("{}/test/withdraw", self.issuer),
            [("account", account)],
        );
        let answer = self.answer(self.http.post(url.unwrap())).await;
        assert_ne!(answer["withdrawn"], 0, "{account} has granted nothing");
    }

    pub async fn refreshes(&self) -> u64 {
        let url = format!("{}/test/refreshes", self.issuer);
        let answer = self.answer(self.http.get(url)).await;
        answer["refreshes"].as_u64().unwrap()
    }

    pub async fn lapse_access_tokens(&self) {
        let url = format!("{}/test/lapse", self.issuer);
        self.answer(self.http.post(url)).await;
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> serde_json::Value {
        let response = request.send().await.unwrap().error_for_status().unwrap();
        response.json().await.unwrap()
    }
}
