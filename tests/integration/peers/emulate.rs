//! Gmail's and Microsoft's API shapes, by npm `emulate`: OAuth of both, Gmail's `messages/send` with
//! the mail kept, and Microsoft's profile (it has no `sendMail`).
//!
//! It is about shapes only. An unknown token is taken for [`ACCOUNT`]'s, and scopes aren't checked. A
//! redirect URI counts by its origin and path. Mail goes nowhere but into the sender's sent mail; an
//! upload must be UTF-8 (other bytes become U+FFFD), while `raw` keeps every byte. `Bcc` stays in
//! what is kept. After 4999 requests in an hour with one token (or with none) all are answered 403.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::header::LOCATION;
use serde_json::{Value, json};
use url::Url;

use super::process::{Household, OwnProcessGroup as _};
use crate::support::patience::PATIENCE;
use crate::support::ports;

/// A user of both services; Gmail has a `testuser@gmail.com` beside.
pub const ACCOUNT: &str = "ada@provider.test";

/// A token of [`ACCOUNT`] that needs no authorization, for looking at what is kept.
const READER_TOKEN: &str = "reads-back-for-the-tests";

/// Longest that it may take to answer one request.
const LIMIT: Duration = PATIENCE;

/// The application that both services know.
#[derive(Debug, Clone, Copy)]
pub struct OAuthClient<'a> {
    pub id: &'a str,
    pub secret: &'a str,
    pub redirect_uri: &'a str,
}

/// Where one of the services is.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_field_names,
    reason = "named as in a plugin's configuration"
)]
pub struct Service {
    /// `http://127.0.0.1:PORT`, before `/gmail/v1` and `/upload/gmail/v1`, or `/v1.0`.
    pub base_url: String,
    pub authorize_url: String,
    pub token_url: String,
    pub revoke_url: String,
    pub userinfo_url: String,
}

/// Both services, running until this is dropped or the test process ends.
pub struct Emulate {
    pub google: Service,
    pub microsoft: Service,
    http: reqwest::Client,
    _household: Household,
}

impl Emulate {
    pub async fn start(client: OAuthClient<'_>) -> Self {
        // Fails when another test installed it before; either way it is there.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let household = Household::new();
        let ports: [u16; 2] = ports::reserve();
        let [google, microsoft] = ports.map(|port| format!("http://127.0.0.1:{port}"));
        let seed_file = household.folder().join("emulate.json");
        let service = |port: u16, base_url: &str| {
            json!({
                "port": port,
                "baseUrl": base_url,
                "users": [{"email": ACCOUNT, "name": "Ada Provider"}],
                "oauth_clients": [{
                    "client_id": client.id,
                    "client_secret": client.secret,
                    "name": "Mailgate",
                    "redirect_uris": [client.redirect_uri],
                }],
            })
        };
        let seed = json!({
            "tokens": {READER_TOKEN: {"login": ACCOUNT}},
            "google": service(ports[0], &google),
            "microsoft": service(ports[1], &microsoft),
        });
        fs::write(&seed_file, seed.to_string()).unwrap();
        let program = super::node_packages().join("emulate/dist/index.js");
        household.add(
            "emulate",
            Command::new(super::node())
                .arg(program)
                .args(["start", "--host", "127.0.0.1"])
                .args(["--service", "google,microsoft"])
                .args(["--port", &ports[0].to_string()])
                .arg("--seed")
                .arg(seed_file)
                .current_dir(household.folder())
                .process_group_of_its_own(),
        );
        household.wait_for_ports("emulate", &ports).await;
        Self {
            google: Service {
                authorize_url: format!("{google}/o/oauth2/v2/auth"),
                token_url: format!("{google}/oauth2/token"),
                revoke_url: format!("{google}/oauth2/revoke"),
                userinfo_url: format!("{google}/oauth2/v2/userinfo"),
                base_url: google,
            },
            microsoft: Service {
                authorize_url: format!("{microsoft}/oauth2/v2.0/authorize"),
                token_url: format!("{microsoft}/oauth2/v2.0/token"),
                revoke_url: format!("{microsoft}/oauth2/v2.0/revoke"),
                userinfo_url: format!("{microsoft}/oidc/userinfo"),
                base_url: microsoft,
            },
            http: reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                // Tests on runtimes of their own may share it, and a connection belongs to one.
                .pool_max_idle_per_host(0)
                .timeout(LIMIT)
                .build()
                .unwrap(),
            _household: household,
        }
    }

    /// Opens an authorization request as a browser without scripts, and presses the button of
    /// `account` on the page that lists the users. Returns where that redirects to, which isn't
    /// opened.
    ///
    /// # Panics
    ///
    /// When there is no such page or user: an unknown client or redirect URI.
    pub async fn authorize(&self, authorize_url_with_query: &str, account: &str) -> String {
        let here = Url::parse(authorize_url_with_query).unwrap();
        let response = self.http.get(here.clone()).send().await.unwrap();
        let status = response.status();
        let page = response.text().await.unwrap();
        let form = forms(&page)
            .into_iter()
            .find(|form| form.fields.get("email").is_some_and(|it| it == account))
            .unwrap_or_else(|| panic!("no button for {account}, but {status}: {page}"));
        let action = here.join(&form.action).unwrap();
        let request = self.http.post(action).form(&form.fields);
        let response = request.send().await.unwrap();
        let Some(location) = response.headers().get(LOCATION) else {
            let status = response.status();
            let body = response.text().await.unwrap();
            panic!("no redirect for {account}, but {status}: {body}");
        };
        location.to_str().unwrap().to_owned()
    }

    /// The Gmail ids of [`ACCOUNT`]'s sent messages, newest first.
    pub async fn sent(&self) -> Vec<String> {
        let listed = self.gmail("messages?labelIds=SENT&maxResults=500").await;
        let messages = listed["messages"].as_array().unwrap();
        let id = |message: &Value| message["id"].as_str().unwrap().to_owned();
        messages.iter().map(id).collect()
    }

    /// A message in [`ACCOUNT`]'s Gmail as it was sent.
    pub async fn message(&self, id: &str) -> Vec<u8> {
        let message = self.gmail(&format!("messages/{id}?format=raw")).await;
        let raw = message["raw"].as_str().unwrap().trim_end_matches('=');
        URL_SAFE_NO_PAD.decode(raw).unwrap()
    }

    /// The values of that message's `To`, `Cc` and `Bcc` as Gmail's interface shows them.
    pub async fn recipients(&self, id: &str) -> Vec<String> {
        let message = self.gmail(&format!("messages/{id}?format=metadata")).await;
        let headers = message["payload"]["headers"].as_array().unwrap();
        let value = |name: &str| {
            let header = headers.iter().find(|header| header["name"] == name)?;
            Some(header["value"].as_str().unwrap().to_owned())
        };
        ["To", "Cc", "Bcc"].into_iter().filter_map(value).collect()
    }

    async fn gmail(&self, path: &str) -> Value {
        let url = format!("{}/gmail/v1/users/me/{path}", self.google.base_url);
        let request = self.http.get(url).bearer_auth(READER_TOKEN);
        let response = request.send().await.unwrap().error_for_status().unwrap();
        response.json().await.unwrap()
    }
}

/// A form of a page, with what it sends.
struct Form {
    action: String,
    fields: BTreeMap<String, String>,
}

/// The forms of a page that `emulate` made, whose attributes are all in double quotes.
fn forms(page: &str) -> Vec<Form> {
    let parts = page.split("<form ").skip(1);
    let forms = parts.map(|part| part.split("</form>").next().unwrap());
    forms
        .map(|form| {
            let inputs = form.split("<input ").skip(1);
            let inputs = inputs.map(|input| input.split('>').next().unwrap());
            Form {
                action: attribute(form, "action").unwrap(),
                fields: inputs
                    .filter_map(|input| {
                        Some((attribute(input, "name")?, attribute(input, "value")?))
                    })
                    .collect(),
            }
        })
        .collect()
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let characters = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
    ];
    let value = characters
        .iter()
        .fold(value.to_owned(), |value, (entity, it)| {
            value.replace(entity, it)
        });
    Some(value.replace("&amp;", "&"))
}
