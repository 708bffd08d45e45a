//! Against an independent payment provider: `localstripe` of `PyPI`, a process of its own with the real
//! signatures. It knows plans, not prices; the requests are put into its words on the way. A trial it
//! leaves incomplete.

use std::path::Path;
use std::process::Command;

use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};

use super::Billed;
use crate::peers::process::Household;
use crate::support::gateway::{Gateway, OPERATOR};
use crate::support::payprov_proxy::PayprovProxy;
use crate::support::{patience, ports};

const KEY: &str = "sk_test_local";
const SECRET: &str = "whsec_local";

struct Localstripe {
    url: String,
    http: reqwest::Client,
    _household: Household,
}

impl Localstripe {
    async fn start() -> Self {
        let program =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/python/bin/localstripe");
        assert!(
            program.is_file(),
            "{} is missing: run tests/peers/install",
            program.display()
        );
        let household = Household::new();
        let [port] = ports::reserve();
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--from-scratch"]);
        household.add("localstripe", &mut command);
        household.wait_for_ports("localstripe", &[port]).await;
        Self {
            url: format!("http://127.0.0.1:{port}"),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            _household: household,
        }
    }

    async fn ask(&self, method: &str, path: &str, form: &[(&str, &str)]) -> Value {
        let request = self
            .http
            .request(method.parse().unwrap(), format!("{}/v1/{path}", self.url))
            .bearer_auth(KEY);
        let request = if form.is_empty() {
            request
        } else {
            request.form(form)
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{method} {path}");
        response.json().await.unwrap()
    }

    async fn newest_subscription(&self) -> Value {
        let list = self
            .ask("GET", "subscriptions?status=all&limit=100", &[])
            .await;
        list["data"].as_array().unwrap().last().unwrap().clone()
    }

    async fn attach(&self, customer: &str, card: &str) {
        let path = format!("payment_methods/{card}/attach");
        self.ask("POST", &path, &[("customer", customer)]).await;
    }
}

async fn start(stripe: &Localstripe) -> Billed {
    drop(rustls::crypto::ring::default_provider().install_default());
    let plan = [
        ("id", "price_mailbox"),
        ("amount", "300"),
        ("currency", "eur"),
        ("interval", "month"),
        ("product[name]", "Mailbox"),
    ];
    stripe.ask("POST", "plans", &plan).await;
    let proxy = PayprovProxy::start(true).await;
    proxy.forward_to(&stripe.url);
    let gateway = Gateway::builder()
        .set("PAYPROV__BASE_URL", &proxy.url)
        .set("PAYPROV__SECRET_KEY", KEY)
        .set("PAYPROV__WEBHOOK_SECRET", SECRET)
        .set("PAYPROV__PRICE", "price_mailbox")
        .billed()
        .start()
        .await;
    let webhook = format!("http://{}/payprov/webhook", gateway.daemon.http_address);
    let response = stripe
        .http
        .post(format!("{}/_config/webhooks/mailgate", stripe.url))
        .json(&json!({ "url": webhook, "secret": SECRET }))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    Billed::around(gateway).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_independent_provider_bills_the_same() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let stripe = Localstripe::start().await;
    let billed = start(&stripe).await;
    billed.comes_to("past_due").await;
    let customer = billed.get("/me").await["payprov_customer_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let known = stripe
        .ask("GET", &format!("customers/{customer}"), &[])
        .await;
    assert_eq!(known["email"], "owner@example.com");
    let first = stripe.newest_subscription().await;
    assert_eq!(
        (&first["customer"], &first["trial_period_days"]),
        (&json!(customer), &json!(14))
    );

    // Three connected, two disconnected.
    let path = format!("/apps/{}", billed.gateway.app.pushable_key.expose());
    let (status, _) = billed
        .call("PUT", &path, Some(json!({ "multilink": true })))
        .await;
    assert_eq!(status, 200);
    let mut ids = Vec::new();
    for email in [
        "bea@sandbox.example",
        "cyd@sandbox.example",
        "dan@sandbox.example",
    ] {
        ids.push(
            billed
                .gateway
                .connect(None, Plugin::A, email)
                .await
                .credential,
        );
    }
    let quantity = async || {
        let subscription = stripe.newest_subscription().await;
        subscription["items"]["data"][0]["quantity"].as_i64()
    };
    billed
        .gateway
        .eventually("four", async |_| quantity().await == Some(4))
        .await;
    for id in &ids[..2] {
        let mailboxes = &billed.gateway.daemon.mailboxes;
        assert!(
            mailboxes
                .disconnect(billed.gateway.app.id, *id, OPERATOR)
                .await
                .unwrap()
        );
    }
    billed
        .gateway
        .eventually("two", async |_| quantity().await == Some(2))
        .await;

    // Ended there: told with a signature that is not of our making.
    let first = first["id"].as_str().unwrap();
    stripe
        .ask("DELETE", &format!("subscriptions/{first}"), &[])
        .await;
    billed.comes_to("canceled").await;
    let told = "SELECT count(*) FROM payprov_events WHERE state = 'applied'
                AND type IN ('customer.subscription.created', 'customer.subscription.deleted')";
    billed
        .gateway
        .eventually("both events", async |_| billed.count(told).await >= 1)
        .await;

    // A card that is taken and pays nothing, and one that pays the invoice which that left open.
    stripe.attach(&customer, "pm_card_chargeCustomerFail").await;
    let (status, body) = billed.reactivate().await;
    assert_eq!(
        (status, body["code"].as_str()),
        (402, Some("payment_declined")),
        "{body}"
    );
    // What it makes within one second has no order, and its clock is the machine's.
    let second = chrono::Utc::now().timestamp();
    patience::until("next second", async || {
        chrono::Utc::now().timestamp() > second
    })
    .await;
    stripe.attach(&customer, "pm_card_visa").await;
    let (status, body) = billed.reactivate().await;
    assert_eq!(
        (status, &body),
        (200, &json!({ "reactivated": true, "status": "active" }))
    );
    assert_eq!(quantity().await, Some(2));
    let second = stripe.newest_subscription().await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_ne!(second, first);

    let path = format!("invoices?subscription={second}");
    let invoices = stripe.ask("GET", &path, &[]).await;
    assert_eq!(invoices["data"][0]["status"], "paid");
    billed.stop().await;
}
