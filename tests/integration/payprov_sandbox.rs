//! The sandbox's payment provider by itself, over real sockets: signed events, things that go wrong on
//! purpose, pages. And a gateway that it bills: from the trial over a failed payment to what is paid again.

mod alone;
mod browser;
pub mod walk;

use std::sync::Arc;

use mailgate_sandbox::payprov::{PaymentProvider, SECRET_KEY, Settings, WEBHOOK_SECRET};
use mailgate_types::clock::MovedClock;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A provider without a gateway.
struct Alone {
    provider: PaymentProvider,
    /// Where it is, without `/payprov`.
    origin: String,
    clock: Arc<MovedClock>,
    http: reqwest::Client,
    shutdown: mailgate_server::shutdown::Shutdown,
    _server: JoinSet<()>,
}

impl Alone {
    async fn start() -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let clock = Arc::new(MovedClock::default());
        let provider = PaymentProvider::open(Settings {
            address: format!("{origin}/payprov"),
            secret_key: SECRET_KEY.into(),
            webhook_secret: WEBHOOK_SECRET.into(),
            file: None,
            clock: clock.clone(),
        })
        .unwrap();
        let shutdown = mailgate_server::shutdown::Shutdown::default();
        provider.spawn(&shutdown);
        let mut server = JoinSet::new();
        let router = provider.router();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            provider,
            origin,
            clock,
            http,
            shutdown,
            _server: server,
        }
    }

    /// A call of the API.
    fn call(&self, method: &str, path: &str, form: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let url = format!("{}/payprov/v1/{path}", self.origin);
        let request = self
            .http
            .request(method.parse().unwrap(), url)
            .bearer_auth(SECRET_KEY);
        if method == "GET" {
            request.query(form)
        } else {
            request.form(form)
        }
    }

    async fn good(&self, method: &str, path: &str, form: &[(&str, &str)]) -> Value {
        let response = self.call(method, path, form).send().await.unwrap();
        let status = response.status();
        let answer: Value = response.json().await.unwrap();
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    /// The ids of a customer and its subscription with a trial.
    async fn subscriber(&self) -> (String, String) {
        let form = [("email", "owner@example.com"), ("name", "<b>ACME</b>")];
        let customer = self.good("POST", "customers", &form).await;
        let customer = customer["id"].as_str().unwrap().to_owned();
        let form = [
            ("customer", customer.as_str()),
            ("items[0][price]", "price_sandbox_mailbox"),
            ("trial_period_days", "14"),
            (
                "trial_settings[end_behavior][missing_payment_method]",
                "cancel",
            ),
        ];
        let subscription = self.good("POST", "subscriptions", &form).await;
        (customer, subscription["id"].as_str().unwrap().to_owned())
    }

    async fn steer(&self, method: &str, path: &str, command: Value) -> u16 {
        let url = format!("{}/payprov/steering/{path}", self.origin);
        let request = self.http.request(method.parse().unwrap(), url);
        let response = request.json(&command).send().await.unwrap();
        response.status().as_u16()
    }

    async fn stop(self) {
        self.shutdown.finish().await.unwrap();
    }
}
