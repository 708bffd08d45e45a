//! The provider by itself.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod lifecycle;
mod shapes;

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use tower::ServiceExt;

use super::*;
use mailgate_types::clock::MovedClock;

struct World {
    provider: PaymentProvider,
    clock: Arc<MovedClock>,
}

fn world() -> World {
    world_in(None)
}

fn world_in(file: Option<PathBuf>) -> World {
    drop(rustls::crypto::ring::default_provider().install_default());
    let clock = Arc::new(MovedClock::default());
    let provider = PaymentProvider::open(Settings {
        address: "http://127.0.0.1:8025/payprov".to_owned(),
        secret_key: SecretString::from(SECRET_KEY),
        webhook_secret: SecretString::from(WEBHOOK_SECRET),
        file,
        clock: clock.clone(),
    });
    World {
        provider: provider.unwrap(),
        clock,
    }
}

type Answer = (u16, serde_json::Value);

impl World {
    async fn call(&self, method: &str, path: &str, form: &[(&str, &str)]) -> Answer {
        self.call_with(
            method,
            path,
            form,
            &[("authorization", "Bearer sk_test_sandbox")],
        )
        .await
    }

    async fn call_with(
        &self,
        method: &str,
        path: &str,
        form: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let (query, body) = if method == "GET" {
            (format!("?{form}"), String::new())
        } else {
            (String::new(), form)
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/payprov/v1/{path}{query}"))
            .header("content-length", body.len());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let response = self.provider.router().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn good(&self, method: &str, path: &str, form: &[(&str, &str)]) -> serde_json::Value {
        let (status, answer) = self.call(method, path, form).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    async fn customer(&self) -> String {
        let form = [
            ("email", "a@b.example"),
            ("name", "A"),
            ("metadata[k]", "v"),
        ];
        let customer = self.good("POST", "customers", &form).await;
        customer["id"].as_str().unwrap().to_owned()
    }

    /// A subscription for one mailbox; with a trial, or paid immediately with a card.
    async fn subscription(&self, customer: &str, trial_days: Option<&str>) -> String {
        let mut form = vec![
            ("customer", customer),
            ("items[0][price]", subscriptions::PRICE),
            ("items[0][quantity]", "1"),
        ];
        if let Some(days) = trial_days {
            form.extend([
                ("trial_period_days", days),
                (
                    "trial_settings[end_behavior][missing_payment_method]",
                    "cancel",
                ),
            ]);
        }
        let subscription = self.good("POST", "subscriptions", &form).await;
        subscription["id"].as_str().unwrap().to_owned()
    }

    async fn card(&self, customer: &str, card: &str) -> String {
        let path = format!("payment_methods/{card}/attach");
        let method = self.good("POST", &path, &[("customer", customer)]).await;
        let id = method["id"].as_str().unwrap().to_owned();
        let form = [("invoice_settings[default_payment_method]", id.as_str())];
        self.good("POST", &format!("customers/{customer}"), &form)
            .await;
        id
    }

    async fn status(&self, subscription: &str) -> String {
        let path = format!("subscriptions/{subscription}");
        let found = self.good("GET", &path, &[]).await;
        found["status"].as_str().unwrap().to_owned()
    }

    async fn open_invoices(&self, customer: &str) -> Vec<serde_json::Value> {
        let form = [("customer", customer), ("status", "open")];
        let list = self.good("GET", "invoices", &form).await;
        list["data"].as_array().unwrap().clone()
    }

    /// The types of the events so far, oldest first.
    fn events(&self) -> Vec<String> {
        self.provider.read(|ledger| {
            ledger
                .events
                .iter()
                .map(|event| event.kind.clone())
                .collect()
        })
    }

    fn events_since(&self, count: usize) -> Vec<String> {
        self.events().split_off(count)
    }
}

#[tokio::test]
async fn a_restart_forgets_nothing() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("sandbox").join("payments.json");
    let first = world_in(Some(file.clone()));
    let customer = first.customer().await;
    let id = first.subscription(&customer, Some("14")).await;
    let again = world_in(Some(file.clone()));
    assert_eq!(again.status(&id).await, "trialing");
    assert_eq!(
        again.provider.waiting_events(),
        first.provider.waiting_events()
    );
    std::fs::write(&file, "{").unwrap();
    let settings = again.provider.shared.settings.clone();
    assert!(
        PaymentProvider::open(settings).is_err(),
        "what it can't read it doesn't write over"
    );
}
