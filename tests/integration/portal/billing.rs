//! Billing in the portal: from the trial to a card, a failed payment, and the end; and without its provider.

use mailgate_sandbox::payprov::{Action, Fault, FaultKind};

use super::visitor::Visitor;
use crate::billing::Billed;
use crate::support::gateway::Gateway;

#[tokio::test]
async fn without_a_provider_nothing_is_billed() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let page = visitor.get("/portal/billing").await;
    assert!(
        page.text.contains("Nothing is billed here"),
        "{}",
        page.text
    );
    assert!(!page.text.contains("Add a card"), "{}", page.text);
    assert!(!page.text.contains(">Billing</a>"), "{}", page.text);
    for action in ["card", "visit", "pay", "cancel"] {
        let page = visitor
            .post(&format!("/portal/billing/{action}"), &[])
            .await;
        assert_eq!(page.status, 409, "{action}");
        assert!(page.text.contains("Back to billing"), "{}", page.text);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_payment_is_on_every_page_until_it_is_paid() {
    let billed = Billed::start().await;
    let visitor = Visitor::signed_in(&billed.gateway).await;
    let page = visitor.get("/portal/billing").await;
    for words in ["Trial", "The trial ends", "Billed mailboxes"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    assert!(!page.text.contains("Your subscription needs attention"));
    assert!(page.text.contains(">Billing</a>"), "{}", page.text);
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains("form-action 'self' http: https:"),
        "{policy}"
    );

    let page = visitor.post("/portal/billing/card", &[]).await;
    assert_eq!(page.status, 303, "{}", page.text);
    let url = billed.gateway.sandbox.payments.url();
    assert!(page.location().starts_with(url), "{}", page.location());
    let page = visitor.post("/portal/billing/visit", &[]).await;
    assert_eq!(page.status, 303, "{}", page.text);

    billed.enter_card("works").await;
    billed.comes_to("active").await;
    billed.act(Action::EndTrial).await;
    billed.act(Action::PaymentFails).await;
    billed.comes_to("past_due").await;
    for path in [
        "/portal",
        "/portal/apps",
        "/portal/mailboxes",
        "/portal/messages",
        "/portal/webhooks",
        "/portal/webhooks/new",
        "/portal/settings",
        "/portal/billing",
    ] {
        let page = visitor.get(path).await.text;
        assert!(page.contains("Your subscription needs attention"), "{path}");
        assert!(page.contains("href=\"/portal/billing\""), "{path}");
    }
    let page = visitor.get("/portal/billing").await;
    assert!(page.text.contains("Past due") && page.text.contains("Pay open invoices"));
    assert_eq!(
        visitor.post("/portal/billing/cancel", &[]).await.status,
        409
    );

    billed.enter_card("works").await;
    let page = visitor.get("/portal/billing?payment=updated").await;
    assert!(page.text.contains("Your card is saved"), "{}", page.text);
    let page = visitor.post("/portal/billing/pay", &[]).await;
    assert_eq!(page.status, 303, "{}", page.text);
    billed.comes_to("active").await;
    let page = visitor.get("/portal/billing").await;
    assert!(page.text.contains("Next invoice"), "{}", page.text);
    assert!(!page.text.contains("Your subscription needs attention"));

    let page = visitor.get("/portal/billing/cancel").await;
    assert!(page.text.contains("Keep subscription"), "{}", page.text);
    let page = visitor.post("/portal/billing/cancel", &[]).await;
    assert_eq!(
        page.location(),
        "/portal/billing?done=subscription-cancelled"
    );
    let page = visitor.get("/portal/billing").await;
    assert!(page.text.contains("Ends soon"), "{}", page.text);
    let written: Vec<String> = sqlx::query_scalar(
        "SELECT action FROM audit_entries WHERE address = '127.0.0.1' AND action NOT LIKE 'portal.signed%' ORDER BY id",
    )
    .fetch_all(&mut billed.gateway.database().await)
    .await
    .unwrap();
    for action in ["checkout", "portal", "reactivated", "canceled"] {
        assert!(
            written.iter().any(|it| it.contains(action)),
            "{action}: {written:?}"
        );
    }
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_provider_the_last_known_status_is_shown() {
    let billed = Billed::start().await;
    let visitor = Visitor::signed_in(&billed.gateway).await;
    assert_eq!(visitor.get("/portal/billing").await.status, 200);
    let payments = &billed.gateway.sandbox.payments;
    let fault = Fault {
        kind: FaultKind::Down,
        method: None,
        path: None,
        times: 0,
    };
    assert!(payments.add_fault(fault));
    let page = visitor.get("/portal/billing").await;
    assert_eq!(page.status, 200);
    for words in ["reached at the moment", "Last known status, from", "Trial"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let page = visitor.post("/portal/billing/card", &[]).await;
    assert_eq!(page.status, 503, "{}", page.text);
    payments.clear_faults();
    billed.stop().await;
}
