//! The log and the statistics as subscribers read them.

mod exports;
mod logs;
mod months;
mod random;
mod retention;
mod searching;
mod statistics;

use mailgate_types::plugin::Plugin;
use reqwest::Method;
use serde_json::Value;

use crate::support::gateway::{Gateway, create_app};

/// A subscriber that reads.
struct Reader<'a> {
    gateway: &'a Gateway,
    secret: String,
}

impl<'a> Reader<'a> {
    /// The one that owns the gateway's app.
    async fn owner(gateway: &'a Gateway) -> Self {
        Self::of(gateway, gateway.app.id).await
    }

    /// Another one, with an app of its own.
    async fn other(gateway: &'a Gateway) -> Self {
        let (_, app) = create_app(&gateway.daemon, "Other").await;
        Self::of(gateway, app.id).await
    }

    async fn of(gateway: &'a Gateway, app: mailgate_types::ids::AppId) -> Self {
        let credentials = gateway.daemon.accounts.app_credentials(app).await.unwrap();
        let secret = credentials.unwrap().api_secret.expose().to_owned();
        Self { gateway, secret }
    }

    async fn ask(&self, method: Method, path: &str) -> (u16, Value) {
        let url = format!("{}{path}", self.gateway.daemon.base_url);
        let request = self.gateway.http.request(method, url);
        let request = request.header("x-api-secret", &self.secret);
        let response = request.send().await.unwrap();
        (
            response.status().as_u16(),
            response.json().await.unwrap_or_default(),
        )
    }

    /// The body of a success.
    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Method::GET, path).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// The ids of a page of the log.
    async fn ids(&self, path: &str) -> Vec<String> {
        let page = self.get(path).await;
        let logs = page["logs"].as_array().unwrap().iter();
        logs.map(|log| log["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The fields that a 422 names.
    async fn wrong_fields(&self, path: &str) -> Vec<String> {
        let (status, body) = self.ask(Method::GET, path).await;
        assert_eq!(
            (status, body["code"].as_str()),
            (422, Some("invalid_request")),
            "{path}: {body}"
        );
        let errors = body["errors"].as_array().into_iter().flatten();
        errors
            .map(|error| error["field"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Sends to `to` through a mailbox of the second kind.
async fn connect_second(gateway: &Gateway) {
    gateway
        .connect(None, Plugin::B, "grace@sandbox.example")
        .await;
}

async fn send_second(gateway: &Gateway, to: &str) -> (u16, Value) {
    let fields = serde_json::json!({
        "to": to, "subject": "Hello", "body": "It works.", "plugin": "plugin_b",
    });
    gateway.send(fields).await
}
