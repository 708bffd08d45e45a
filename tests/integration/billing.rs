//! Billing: a gateway that is billed by the sandbox's payment provider, by an independent one, and by one
//! that is away.

mod deleted;
mod ended;
mod lifecycle;
mod localstripe;
mod operations;
mod orders;
mod quantity;
mod renewed;
mod several;
mod webhook;

use chrono::TimeDelta;
use mailgate_sandbox::payprov::{Action, DeliveryMode, SECRET_KEY};
use serde_json::{Value, json};

use crate::support::gateway::{Builder, Gateway};
use crate::support::payprov_proxy::PayprovProxy;

/// A gateway, its subscriber, and a browser that follows nothing.
pub struct Billed {
    pub gateway: Gateway,
    api_secret: String,
    browser: reqwest::Client,
}

impl Billed {
    /// With a subscription that the provider has made.
    pub async fn start() -> Self {
        let billed = Self::of(Gateway::builder()).await;
        billed.provisioned().await;
        billed
    }

    /// As [`Billed::start`], with a proxy between the gateway and the provider.
    pub async fn behind_proxy() -> (PayprovProxy, Self) {
        let proxy = PayprovProxy::start(false).await;
        let builder = Gateway::builder().set("PAYPROV__BASE_URL", &proxy.url);
        let billed = Self::of(builder).await;
        proxy.forward_to(billed.gateway.sandbox.payments.url());
        billed.gateway.clock.advance(TimeDelta::minutes(5));
        billed.provisioned().await;
        (proxy, billed)
    }

    /// Whatever the provider does.
    pub async fn of(builder: Builder) -> Self {
        let gateway = builder.billed().start().await;
        Self::around(gateway).await
    }

    pub async fn around(gateway: Gateway) -> Self {
        let accounts = &gateway.daemon.accounts;
        let credentials = accounts.app_credentials(gateway.app.id).await.unwrap();
        let api_secret = credentials.unwrap().api_secret.expose().to_owned();
        Self {
            gateway,
            api_secret,
            browser: reqwest::Client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .unwrap(),
        }
    }

    /// Waits for the subscription and for its quantity.
    pub async fn provisioned(&self) {
        self.gateway
            .eventually("the subscription", async |_| {
                self.quantity().await == Some(1) && self.jobs().await == 0
            })
            .await;
    }

    pub async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let url = format!("{}{path}", self.gateway.daemon.base_url);
        let mut request = self
            .browser
            .request(method.parse().unwrap(), url)
            .header("x-api-secret", &self.api_secret);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap())
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("POST", path, Some(body)).await
    }

    pub async fn reactivate(&self) -> (u16, Value) {
        self.call("POST", "/payprov/reactivate", None).await
    }

    /// The local status.
    pub async fn status(&self) -> Option<String> {
        let body = self.get("/payprov/status").await;
        body["status"].as_str().map(str::to_owned)
    }

    pub async fn comes_to(&self, status: &str) {
        self.gateway
            .eventually(status, async |gateway| {
                let is_there = self.status().await.as_deref() == Some(status);
                if !is_there {
                    // What failed once, as on a busy machine, comes again when its time has come.
                    gateway.clock.advance(TimeDelta::seconds(1));
                }
                is_there
            })
            .await;
    }

    /// What the provider answers to whoever has its key.
    pub async fn ask(&self, path: &str) -> Value {
        let url = format!("{}/v1/{path}", self.gateway.sandbox.payments.url());
        let request = self.browser.get(url).bearer_auth(SECRET_KEY);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.json().await.unwrap()
    }

    /// The provider's subscriptions, the newest first.
    pub async fn subscriptions(&self) -> Vec<Value> {
        let list = self.ask("subscriptions?status=all&limit=100").await;
        list["data"].as_array().unwrap().clone()
    }

    /// How many of them haven't ended.
    pub async fn living(&self) -> usize {
        let subscriptions = self.subscriptions().await;
        let living = subscriptions.iter().filter(|it| it["status"] != "canceled");
        living.count()
    }

    /// The id of the newest one.
    pub async fn subscription(&self) -> String {
        let subscriptions = self.subscriptions().await;
        subscriptions[0]["id"].as_str().unwrap().to_owned()
    }

    /// What the provider bills for.
    pub async fn quantity(&self) -> Option<i64> {
        let subscriptions = self.subscriptions().await;
        subscriptions.first()?["items"]["data"][0]["quantity"].as_i64()
    }

    pub async fn act(&self, action: Action) {
        let subscription = self.subscription().await;
        let payments = &self.gateway.sandbox.payments;
        assert!(payments.act(&subscription, action).await, "{action:?}");
    }

    /// No event comes any more unless a test delivers it.
    pub fn by_hand(&self) {
        let payments = &self.gateway.sandbox.payments;
        payments.set_delivery(DeliveryMode::ByHand);
    }

    /// Enters a card on the provider's page; answers where that leads to.
    pub async fn enter_card(&self, card: &str) -> String {
        let request = json!({ "portal_url": "https://portal.example/billing?tab=1#card" });
        let (status, body) = self.post("/payprov/checkout-setup", request).await;
        assert_eq!(status, 200, "{body}");
        let page = body["url"].as_str().unwrap();
        let request = self.browser.post(page).form(&[("card", card)]);
        let response = request.send().await.unwrap();
        assert!(response.status().is_redirection(), "{}", response.status());
        let location = response.headers()["location"].to_str().unwrap();
        location.to_owned()
    }

    /// A number that the database counts.
    pub async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query)
            .fetch_one(&mut self.gateway.database().await)
            .await
            .unwrap()
    }

    pub async fn jobs(&self) -> i64 {
        self.count("SELECT count(*) FROM billing_jobs").await
    }

    /// Events that nobody has looked into.
    pub async fn waiting(&self) -> i64 {
        self.count("SELECT count(*) FROM payprov_events WHERE state = 'waiting'")
            .await
    }

    pub async fn notices(&self, kind: &str) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM billing_notices WHERE kind = $1")
            .bind(kind)
            .fetch_one(&mut self.gateway.database().await)
            .await
            .unwrap()
    }

    pub async fn stop(self) {
        self.gateway.stop().await;
    }
}
