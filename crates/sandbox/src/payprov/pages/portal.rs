//! `/payprov/portal/{id}`: where a subscriber looks after the subscription.

use std::fmt::Write as _;

use axum::Form;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::checkout::{CARDS, cards};
use super::{Look, button, customer_name, go_to, invoices, missing, page, subscription_facts};
use crate::payprov::PaymentProvider;
use crate::payprov::ledger::Ledger;
use crate::payprov::steering::Action;
use mailgate_server::page::escaped;

const DECLINED: &str = "<p class=\"card\" role=\"alert\"><strong>The card was declined. The former one stays.</strong></p>";

/// `GET /payprov/portal/{id}`.
pub(in crate::payprov) async fn show(
    State(provider): State<PaymentProvider>,
    Path(id): Path<String>,
) -> Response {
    provider.look().await;
    shown(&provider, &id, "")
}

fn shown(provider: &PaymentProvider, id: &str, fault: &str) -> Response {
    match provider.read(|ledger| body(ledger, id, fault)) {
        Some(body) => page(StatusCode::OK, "Your subscription", &body),
        None => missing("There is no such page."),
    }
}

fn body(ledger: &Ledger, id: &str, fault: &str) -> Option<String> {
    let session = ledger.portal_sessions.get(id)?;
    let to = format!("/payprov/portal/{id}");
    let mut body = format!(
        "<p>This is the sandbox payment provider on your own machine, with what <bdi>{}</bdi> has. \
         <a href=\"{}\">Back</a></p>{fault}",
        escaped(&customer_name(ledger, &session.customer)),
        escaped(&session.return_url),
    );
    let subscriptions = ledger.subscriptions.values().rev();
    for subscription in subscriptions.filter(|found| found.customer == session.customer) {
        let facts = subscription_facts(ledger, subscription);
        // Writing to a String can't fail.
        let _ = write!(body, "<div class=\"card\">{facts}");
        if Action::Resume.fits(subscription.status) {
            let (word, label, look) = if subscription.cancel_at_period_end {
                ("resume", "Keep the subscription after all", Look::Plain)
            } else {
                ("cancel", "Cancel at the end of the period", Look::Danger)
            };
            body.push_str(&button(&to, word, &subscription.id, label, look));
        }
        body.push_str("</div>");
    }
    let _ = write!(
        body,
        "<h2>Change the card</h2>{}<h2>Invoices</h2>{}",
        cards(&to),
        invoices(ledger, &session.customer)
    );
    Some(body)
}

/// A button: one of these is there.
#[derive(Debug, Deserialize)]
pub(in crate::payprov) struct Pressed {
    card: Option<String>,
    cancel: Option<String>,
    resume: Option<String>,
}

/// `POST /payprov/portal/{id}`.
pub(in crate::payprov) async fn act(
    State(provider): State<PaymentProvider>,
    Path(id): Path<String>,
    Form(pressed): Form<Pressed>,
) -> Response {
    let card = pressed
        .card
        .map(|card| CARDS.iter().find(|(word, _, _)| *word == card));
    if let Some(Some((_, _, None)) | None) = card {
        return shown(&provider, &id, DECLINED);
    }
    let done = provider
        .change(|ledger, now| {
            let customer = ledger.portal_sessions.get(&id)?.customer.clone();
            if let Some(Some((_, _, Some(card)))) = card {
                ledger.change_card(&customer, *card, now);
            }
            for (subscription, action) in [
                (&pressed.cancel, Action::CancelAtPeriodEnd),
                (&pressed.resume, Action::Resume),
            ] {
                let subscription = subscription.as_ref();
                let own = subscription.and_then(|id| ledger.subscriptions.get(id));
                let own = own.filter(|found| found.customer == customer);
                if let Some(found) = own.map(|found| found.id.clone()) {
                    ledger.act(&found, action, now);
                }
            }
            Some(())
        })
        .await;
    match done {
        Some(()) => go_to(&format!("/payprov/portal/{id}")),
        None => missing("There is no such page."),
    }
}
