//! A subscriber's way, by REST and by the provider's pages as a browser would use them: trial, failed payment,
//! card, reactivation.

use chrono::TimeDelta;
use mail_parser::MessageParser;
use mailgate_sandbox::payprov::Action;
use serde_json::{Value, json};

use crate::support::gateway::Gateway;

/// The subscriber's key.
pub async fn api_secret(gateway: &Gateway) -> String {
    let credentials = gateway
        .daemon
        .accounts
        .app_credentials(gateway.app.id)
        .await;
    let credentials = credentials.unwrap().expect("the app is there");
    credentials.api_secret.expose().to_owned()
}

async fn call(gateway: &Gateway, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let url = format!("{}{path}", gateway.daemon.base_url);
    let mut request = gateway
        .http
        .request(method.parse().unwrap(), url)
        .header("x-api-secret", api_secret(gateway).await);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

pub(super) async fn is_now(gateway: &Gateway, status: &str) {
    gateway
        .eventually(&format!("the status {status}"), async |gateway| {
            let (_, answer) = call(gateway, "GET", "/payprov/status", None).await;
            answer["status"] == status
        })
        .await;
}

/// The one subscription that the provider has for the gateway's subscriber and that goes on.
pub(super) async fn subscription(gateway: &Gateway) -> String {
    let mut found = String::new();
    gateway
        .eventually("a subscription", async |gateway| {
            let known = gateway.sandbox.payments.snapshot();
            let ids = known["subscriptions"].as_object().unwrap();
            let going = ids
                .iter()
                .filter(|(_, subscription)| subscription["status"] != "canceled");
            let going: Vec<&String> = going.map(|(id, _)| id).collect();
            let [id] = going.as_slice() else { return false };
            found.clone_from(id);
            true
        })
        .await;
    found
}

async fn quantity(gateway: &Gateway, expected: u64) {
    gateway
        .eventually(&format!("the quantity {expected}"), async |gateway| {
            let known = gateway.sandbox.payments.snapshot();
            let subscriptions = known["subscriptions"].as_object().unwrap();
            let mut quantities = subscriptions
                .values()
                .filter(|subscription| subscription["status"] != "canceled")
                .map(|subscription| subscription["items"][0]["quantity"].as_u64());
            quantities.all(|quantity| quantity == Some(expected))
        })
        .await;
}

/// The newest notice in the inbox, once there are so many.
async fn notice(gateway: &Gateway, count: usize) -> (String, String, String) {
    gateway
        .eventually(&format!("{count} notices"), async |gateway| {
            notices(gateway).len() == count
        })
        .await;
    let newest = &notices(gateway)[0];
    let raw = gateway.sandbox.inbox.raw(newest).await.unwrap().unwrap();
    let parsed = MessageParser::new().parse(&raw).unwrap();
    (
        parsed.subject().unwrap().to_owned(),
        parsed.body_text(0).unwrap().into_owned(),
        parsed.body_html(0).unwrap().into_owned(),
    )
}

fn notices(gateway: &Gateway) -> Vec<String> {
    let arrived = gateway.sandbox.inbox.list(100);
    let arrived = arrived
        .iter()
        .filter(|message| message.mailbox == "mailgate@sandbox.example");
    arrived.map(|message| message.id.clone()).collect()
}

/// Chooses a card on the checkout page; answers where the browser goes.
async fn enter_card(gateway: &Gateway, card: &str) -> String {
    let portal = json!({ "portal_url": "https://portal.example/billing?tab=1" });
    let (status, answer) = call(gateway, "POST", "/payprov/checkout-setup", Some(portal)).await;
    assert_eq!(status, 200, "{answer}");
    choose_card(answer["url"].as_str().unwrap(), card).await
}

/// Chooses a card on a checkout page; answers where the browser goes.
pub async fn choose_card(url: &str, card: &str) -> String {
    let browser = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let page = browser.get(url).send().await.unwrap().text().await.unwrap();
    // The form of the page itself, as a browser would send it.
    let wanted = format!("name=\"card\" value=\"{card}\"");
    let form = page
        .split("<form ")
        .find(|form| form.contains(&wanted))
        .expect("the button");
    let action = form
        .split("action=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let to = url::Url::parse(url).unwrap().join(action).unwrap();
    let done = browser
        .post(to)
        .header("sec-fetch-site", "same-origin")
        .form(&[("card", card)])
        .send()
        .await
        .unwrap();
    assert_eq!(done.status(), 303);
    done.headers()["location"].to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn from_the_trial_over_a_failed_payment_to_active() {
    let gateway = Gateway::builder().billed().start().await;
    is_now(&gateway, "trialing").await;
    quantity(&gateway, 1).await;
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    let id = subscription(&gateway).await;
    let (_, live) = call(&gateway, "GET", "/payprov/subscription", None).await;
    assert_eq!(
        live["subscription"]["payprov_subscription_id"],
        id.as_str(),
        "{live}"
    );

    let payments = &gateway.sandbox.payments;
    assert!(payments.act(&id, Action::PaymentFails).await);
    is_now(&gateway, "past_due").await;
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 402, "{answer}");
    let (subject, text, html) = notice(&gateway, 1).await;
    assert!(subject.starts_with("Payment failed"), "{subject}");
    assert!(
        text.contains("5.00 EUR") && html.contains("5.00 EUR"),
        "{text}"
    );

    let back = enter_card(&gateway, "works").await;
    let back = url::Url::parse(&back).unwrap();
    assert!(
        back.query_pairs()
            .any(|(name, value)| name == "payment" && value == "updated")
    );
    let (status, answer) = call(&gateway, "POST", "/payprov/reactivate", None).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        (&answer["reactivated"], &answer["status"]),
        (&json!(true), &json!("active"))
    );
    is_now(&gateway, "active").await;
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);

    // The bank wants a confirmation: the mail has the link, and the page it leads to takes it.
    assert!(payments.act(&id, Action::PaymentNeedsAction).await);
    is_now(&gateway, "past_due").await;
    let (subject, text, _) = notice(&gateway, 2).await;
    assert!(subject.starts_with("Please confirm"), "{subject}");
    let link = text
        .split_whitespace()
        .find(|word| word.starts_with(payments.url()))
        .expect("a link");
    let paid = gateway
        .http
        .post(link)
        .form(&[("action", "pay")])
        .send()
        .await
        .unwrap();
    assert_eq!(paid.status(), 200);
    is_now(&gateway, "active").await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_is_reminded_of_ends_and_is_begun_anew() {
    let gateway = Gateway::builder().billed().start().await;
    is_now(&gateway, "trialing").await;
    quantity(&gateway, 1).await;
    let first = subscription(&gateway).await;
    gateway
        .clock
        .advance(TimeDelta::days(11) + TimeDelta::hours(1));
    let (subject, text, _) = notice(&gateway, 1).await;
    assert!(subject.starts_with("The trial of"), "{subject}");
    assert!(text.contains("no payment method"), "{text}");
    gateway.clock.advance(TimeDelta::days(3));
    is_now(&gateway, "canceled").await;
    assert_eq!(gateway.send_to("bob@example.com").await.0, 402);

    enter_card(&gateway, "works").await;
    let (status, answer) = call(&gateway, "POST", "/payprov/reactivate", None).await;
    assert_eq!(status, 200, "{answer}");
    is_now(&gateway, "active").await;
    assert_ne!(subscription(&gateway).await, first, "a new one");
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);

    let (status, answer) = call(&gateway, "POST", "/payprov/cancel-subscription", None).await;
    assert_eq!(
        (status, &answer["cancel_at_period_end"]),
        (200, &json!(true)),
        "{answer}"
    );
    is_now(&gateway, "active").await;
    gateway.clock.advance(TimeDelta::days(32));
    is_now(&gateway, "canceled").await;
    gateway.stop().await;
}
