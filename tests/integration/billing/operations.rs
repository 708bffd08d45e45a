//! Every operation in every state, and while the provider is away or refuses.

use mailgate_sandbox::payprov::{Action, Fault, FaultKind};
use serde_json::{Value, json};

use super::Billed;
use crate::support::gateway::Gateway;

const ADDRESS: &str = "https://portal.example/billing";

impl Billed {
    /// What an operation answers: the status, and the problem's code where it is one.
    async fn answer(&self, path: &str) -> (u16, String) {
        let (method, body) = match path {
            "status" | "subscription" => ("GET", None),
            "checkout-setup" => ("POST", Some(json!({ "portal_url": ADDRESS }))),
            "portal" => ("POST", Some(json!({ "return_url": ADDRESS }))),
            _ => ("POST", None),
        };
        let (status, body) = self.call(method, &format!("/payprov/{path}"), body).await;
        (status, body["code"].as_str().unwrap_or_default().to_owned())
    }

    async fn all_answer(&self, expected: [(&str, u16, &str); 6]) {
        for (path, status, code) in expected {
            assert_eq!(self.answer(path).await, (status, code.to_owned()), "{path}");
        }
    }

    async fn stands(&self, status: &str, good: bool) {
        self.comes_to(status).await;
        assert_eq!(
            self.get("/payprov/status").await["allowed"],
            good,
            "{status}"
        );
        let live = self.get("/payprov/subscription").await;
        assert_eq!(live["has_payprov"], true);
        assert_eq!(live["subscription"]["status"], status);
        let (page, refused) = if good {
            (200, "")
        } else {
            (409, "subscription_not_active")
        };
        for (path, status, code) in [
            ("checkout-setup", 200, ""),
            ("portal", page, refused),
            ("cancel-subscription", page, refused),
        ] {
            assert_eq!(self.answer(path).await, (status, code.to_owned()), "{path}");
        }
        if good {
            assert_eq!(self.answer("cancel-subscription").await.0, 200, "again");
            self.act(Action::Resume).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state() {
    let billed = Billed::start().await;
    let nothing = |status: &str| (200, json!({ "reactivated": false, "status": status }));
    let active: (u16, Value) = (200, json!({ "reactivated": true, "status": "active" }));
    billed.stands("trialing", true).await;
    assert_eq!(billed.reactivate().await, nothing("trialing"));
    billed.enter_card("works").await;
    billed.stands("active", true).await;
    assert_eq!(billed.reactivate().await, nothing("active"));
    billed.act(Action::PaymentFails).await;
    billed.stands("past_due", false).await;
    assert_eq!(billed.reactivate().await, active);
    billed.act(Action::PaymentFails).await;
    billed.act(Action::GiveUp).await;
    billed.stands("unpaid", false).await;
    assert_eq!(billed.reactivate().await, active);
    billed.act(Action::Delete).await;
    billed.stands("canceled", false).await;
    assert_eq!(billed.reactivate().await, active);
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_provider_is_away_or_refuses() {
    let billed = Billed::start().await;
    let payments = &billed.gateway.sandbox.payments;
    for (kind, status, code) in [
        (FaultKind::Down, 503, "payprov_unavailable"),
        (FaultKind::RateLimited, 503, "payprov_unavailable"),
        (FaultKind::Unauthorized, 502, "payprov_refused"),
    ] {
        let fault = Fault {
            kind,
            method: None,
            path: None,
            times: 0,
        };
        assert!(payments.add_fault(fault));
        billed
            .all_answer([
                ("status", 200, ""),
                ("subscription", status, code),
                ("checkout-setup", status, code),
                ("portal", status, code),
                ("cancel-subscription", status, code),
                ("reactivate", status, code),
            ])
            .await;
        payments.clear_faults();
    }
    // Whoever comes again finds nothing in the way.
    assert_eq!(billed.answer("reactivate").await, (200, String::new()));
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_provider_knows_of_a_subscriber() {
    // Nothing listens there.
    let nowhere = Gateway::builder().set("PAYPROV__BASE_URL", "http://127.0.0.1:1");
    let billed = Billed::of(nowhere).await;
    let standing = billed.get("/payprov/status").await;
    assert_eq!(
        standing,
        json!({ "allowed": true, "status": "trialing", "show_banner": false })
    );
    let live = billed.get("/payprov/subscription").await;
    assert_eq!(live, json!({ "has_payprov": false, "subscription": null }));
    billed
        .all_answer([
            ("status", 200, ""),
            ("subscription", 200, ""),
            ("checkout-setup", 503, "payprov_unavailable"),
            ("portal", 409, "no_subscription"),
            ("cancel-subscription", 409, "no_subscription"),
            ("reactivate", 409, "no_subscription"),
        ])
        .await;
    assert_eq!(billed.gateway.send_to("bob@example.com").await.0, 200);
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_to_come_back_to_are_checked() {
    let billed = Billed::start().await;
    for address in [
        json!(null),
        json!(7),
        json!(""),
        json!("/billing"),
        json!("http://portal.example/"),
        json!("https://user@portal.example/"),
        json!("javascript:alert(1)"),
    ] {
        for (path, field) in [("checkout-setup", "portal_url"), ("portal", "return_url")] {
            let (status, body) = billed
                .post(&format!("/payprov/{path}"), json!({ field: address }))
                .await;
            assert_eq!(status, 422, "{address}");
            assert_eq!(body["errors"][0]["field"], field, "{body}");
        }
    }
    billed.stop().await;
}
