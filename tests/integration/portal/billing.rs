//! Billing in the portal: from the trial to a card, a failed payment, and the end; and without its provider.

use mailgate_sandbox::payprov::{Action, Fault, FaultKind, PaymentProvider};

use super::visitor::Visitor;
use crate::billing::Billed;
use crate::support::gateway::Gateway;

#[tokio::test]
async fn without_a_provider_nothing_is_billed() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let page = visitor.get("/portal/billing").await;
    assert!(
        page.text.contains("Nothing is billed on this gateway"),
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

/// The payment provider answers nobody, until its faults are cleared.
fn go_down(payments: &PaymentProvider) {
    let fault = Fault {
        kind: FaultKind::Down,
        method: None,
        path: None,
        times: 0,
    };
    assert!(payments.add_fault(fault));
}

async fn cancel(visitor: &Visitor) {
    let page = visitor.get("/portal/billing/cancel").await;
    assert!(page.text.contains("Keep subscription"), "{}", page.text);
    let page = visitor.post("/portal/billing/cancel", &[]).await;
    assert_eq!(
        page.location(),
        "/portal/billing?done=subscription-cancelled"
    );
    let page = visitor.get("/portal/billing").await;
    page.says(&[
        "Ends soon",
        "The subscription is cancelled: sending stops on <time",
        ">Undo in the customer portal</button>",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_payment_is_on_every_page_until_it_is_paid() {
    let billed = Billed::start().await;
    let visitor = Visitor::signed_in(&billed.gateway).await;
    let page = visitor.get("/portal/billing").await;
    page.says(&[
        ">Trial</span>",
        "Trial ends ",
        " (14 days left). Add a card to keep sending.",
        "1 mailbox × €5.00 = €5.00 per month",
        "No card is saved.",
        "No invoices yet.",
        "owner@example.com",
    ]);
    assert_eq!(page.text.matches("class=\"primary\"").count(), 1);
    assert!(!page.text.contains("class=\"banner\""));
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
    let page = visitor.get("/portal/billing?payment=updated").await;
    page.says(&[
        "Card saved: the paid plan starts by itself then, with a payment of €5.00.",
        "Visa ending in 4242",
        "Expires 12/2099",
        "Replace card",
    ]);
    assert!(!page.text.contains("Add a card"), "{}", page.text);
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
    ] {
        let page = visitor.get(path).await.text;
        let banner =
            "Sending is stopped: payment failed. <a href=\"/portal/billing\">Pay €5.00</a>";
        assert!(page.contains(banner), "{path}: {page}");
    }
    let page = visitor.get("/portal/billing").await;
    page.says(&[
        "Past due",
        "Sending is stopped: the payment of €5.00 failed on <time",
        ">Pay €5.00</button>",
        // Other pages have a banner above their content.
        "standing banner\"",
        "SANDBOX-0002",
        ">Open</span>",
        "rel=\"noreferrer\"",
    ]);
    // It isn't there now, and what isn't there is no remedy.
    assert!(!page.text.contains("customer portal"), "{}", page.text);
    assert_eq!(page.text.matches("class=\"primary\"").count(), 1);
    assert_eq!(
        visitor.post("/portal/billing/cancel", &[]).await.status,
        409
    );

    billed.enter_card("works").await;
    let page = visitor.get("/portal/billing?payment=updated").await;
    page.says(&["Card saved. Pay €5.00 to resume sending."]);
    assert!(!page.text.contains("Add a card"), "{}", page.text);
    let page = visitor.post("/portal/billing/pay", &[]).await;
    assert_eq!(page.status, 303, "{}", page.text);
    billed.comes_to("active").await;
    let page = visitor.get("/portal/billing").await;
    page.says(&["Next payment: €5.00 on <time", ">Paid</span>"]);
    assert!(!page.text.contains(">Open</span>"));
    assert!(
        !visitor
            .get("/portal")
            .await
            .text
            .contains("class=\"banner\"")
    );

    cancel(&visitor).await;
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
    go_down(payments);
    let page = visitor.get("/portal/billing").await;
    assert_eq!(page.status, 200);
    page.says(&[
        "reached at the moment",
        "Last known status, from",
        ">Trial</span>",
        "1 mailbox × €5.00 = €5.00 per month",
        "The invoices can't be shown at the moment.",
    ]);
    let page = visitor.post("/portal/billing/card", &[]).await;
    assert_eq!(page.status, 503, "{}", page.text);
    payments.clear_faults();
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_subscription_is_restarted_with_a_card() {
    let billed = Billed::start().await;
    let visitor = Visitor::signed_in(&billed.gateway).await;
    billed.act(Action::Delete).await;
    billed.comes_to("canceled").await;
    let page = visitor.get("/portal/billing").await;
    let words = "Sending is stopped: the subscription has ended. Add a card, then restart it.";
    assert!(page.text.contains(words), "{}", page.text);
    assert_eq!(page.text.matches("Add a card</button>").count(), 1);
    assert!(!page.text.contains("customer portal"), "{}", page.text);

    billed.enter_card("works").await;
    let page = visitor.get("/portal/billing?payment=updated").await;
    page.says(&[
        "Card saved. Restart the subscription to resume sending.",
        ">Restart for €5.00</button>",
        "Visa ending in 4242",
    ]);
    let page = visitor.post("/portal/billing/pay", &[]).await;
    assert_eq!(page.location(), "/portal/billing?done=paid");
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_is_stored_and_other_pages_ask_nobody() {
    let billed = Billed::start().await;
    let visitor = Visitor::signed_in(&billed.gateway).await;
    billed.enter_card("declined_later").await;
    billed.comes_to("active").await;
    billed.act(Action::EndTrial).await;
    billed.comes_to("past_due").await;
    billed.act(Action::GiveUp).await;
    billed.comes_to("unpaid").await;
    let payments = &billed.gateway.sandbox.payments;
    go_down(payments);
    let page = visitor.get("/portal/mailboxes").await;
    assert!(page.text.contains(">Pay €5.00</a>"), "{}", page.text);
    let page = visitor.get("/portal/billing").await;
    page.says(&[
        "Unpaid",
        "Sending is stopped: the payment of €5.00 failed on <time",
        ">Pay €5.00</button>",
        "Visa ending in 0341",
    ]);
    payments.clear_faults();

    // Only the list of what is open can't be fetched.
    let list = || Fault {
        kind: FaultKind::Unauthorized,
        method: None,
        path: Some("/v1/invoices?".to_owned()),
        times: 0,
    };
    assert!(payments.add_fault(list()));
    for page in ["/portal/billing", "/portal/mailboxes"] {
        let page = visitor.get(page).await;
        assert!(page.text.contains("Pay €5.00</"), "{}", page.text);
    }
    payments.clear_faults();

    // What was stored is of another shape, and nothing of invoices can be fetched.
    sqlx::query("UPDATE subscribers SET payprov_details = '\"odd\"'")
        .execute(&mut billed.gateway.database().await)
        .await
        .unwrap();
    assert!(
        visitor
            .get("/portal/mailboxes")
            .await
            .text
            .contains("Sending is stopped")
    );
    assert!(payments.add_fault(list()));
    let page = visitor.get("/portal/billing").await;
    assert_eq!(page.status, 200);
    assert!(
        page.text
            .contains("The invoices can't be shown at the moment.")
    );
    billed.stop().await;
}
