//! `/payprov`: the subscribers, and what can be let happen to each.

use std::fmt::Write as _;

use axum::Form;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::{Look, button, go_to, invoices, missing, moment, page, subscription_facts};
use crate::payprov::PaymentProvider;
use crate::payprov::ledger::Ledger;
use crate::payprov::objects::{Customer, Status, Subscription};
use crate::payprov::steering::Action;
use mailgate_server::page::escaped;

/// How many subscribers are shown, newest first.
const SHOWN: usize = 100;

/// How many events are shown, newest first.
const SHOWN_EVENTS: usize = 20;

/// The buttons, with the word that each posts.
const BUTTONS: [(Action, &str, &str); 8] = [
    (
        Action::Remind,
        "remind",
        "Send the reminder that the trial ends",
    ),
    (Action::EndTrial, "end_trial", "End the trial now"),
    (
        Action::PaymentSucceeds,
        "payment_succeeds",
        "Charge the next payment now: it succeeds",
    ),
    (
        Action::PaymentFails,
        "payment_fails",
        "Charge the next payment now: it fails",
    ),
    (
        Action::PaymentNeedsAction,
        "payment_needs_action",
        "Charge the next payment now: its owner must confirm it",
    ),
    (
        Action::PayOpenInvoices,
        "pay_open_invoices",
        "Pay the open invoices",
    ),
    (
        Action::GiveUp,
        "give_up",
        "Give up: no further payment is tried",
    ),
    (Action::Delete, "delete", "Delete the subscription now"),
];

/// `GET /payprov`.
pub(in crate::payprov) async fn show(State(provider): State<PaymentProvider>) -> Response {
    provider.look().await;
    let body = provider.read(body);
    page(StatusCode::OK, "Sandbox payments", &body)
}

fn body(ledger: &Ledger) -> String {
    let mut body = String::from(
        "<p>This is the sandbox payment provider on your own machine: no money moves. Press a button, and the gateway \
         receives the events that the real one would send. <a href=\"/\">The mail that arrived</a> shows the notices to \
         the subscriber.</p>",
    );
    if ledger.customers.is_empty() {
        body.push_str("<p class=\"card\">There are no subscribers yet.</p>");
    }
    for customer in ledger.customers.values().rev().take(SHOWN) {
        // Writing to a String can't fail, here and below.
        let _ = write!(
            body,
            "<h2><bdi>{}</bdi></h2><p class=\"soft\">{} · <code>{}</code></p>",
            escaped(customer.name.as_deref().unwrap_or("(no name)")),
            escaped(customer.email.as_deref().unwrap_or("(no address)")),
            escaped(&customer.id),
        );
        body.push_str(&subscriptions(ledger, customer));
        let _ = write!(
            body,
            "<div class=\"card\">{}</div>",
            invoices(ledger, &customer.id)
        );
    }
    body.push_str(&events(ledger));
    body
}

fn subscriptions(ledger: &Ledger, customer: &Customer) -> String {
    let mut cards = String::new();
    let of_customer = |found: &&Subscription| found.customer == customer.id;
    for subscription in ledger.subscriptions.values().rev().filter(of_customer) {
        let facts = subscription_facts(ledger, subscription);
        let _ = write!(
            cards,
            "<div class=\"card\" id=\"{}\">{facts}",
            escaped(&subscription.id)
        );
        let to = format!("/payprov/subscriptions/{}", subscription.id);
        let is_free = subscription.amount() == 0;
        for (action, word, label) in BUTTONS {
            let can_fail = !matches!(action, Action::PaymentFails | Action::PaymentNeedsAction);
            if action.fits(subscription.status) && (can_fail || !is_free) {
                let look = match action {
                    Action::GiveUp | Action::Delete => Look::Danger,
                    _ => Look::Plain,
                };
                cards.push_str(&button(&to, "action", word, label, look));
            }
        }
        if is_free && !subscription.status.is_final() {
            cards
                .push_str("<p class=\"soft\">No mailbox is connected, so no payment can fail.</p>");
        }
        if subscription.status == Status::Trialing {
            cards.push_str(
                "<p class=\"soft\">Without a card, a trial that ends ends the subscription.</p>",
            );
        }
        cards.push_str("</div>");
    }
    cards
}

fn events(ledger: &Ledger) -> String {
    let mut list = String::from("<h2>What happened, newest first</h2><ul class=\"card\">");
    for event in ledger.events.iter().rev().take(SHOWN_EVENTS) {
        let state = if ledger.waiting.contains(&event.id) {
            "not delivered to the gateway yet"
        } else {
            "delivered"
        };
        let _ = write!(
            list,
            "<li><code>{kind}</code> <small>{date} · {state}</small></li>",
            kind = escaped(&event.kind),
            date = moment(event.created),
        );
    }
    if ledger.events.is_empty() {
        list.push_str("<li class=\"soft\">Nothing yet.</li>");
    }
    list.push_str("</ul>");
    list
}

#[derive(Debug, Deserialize)]
pub(in crate::payprov) struct Pressed {
    action: Action,
}

/// `POST /payprov/subscriptions/{id}`: a button.
pub(in crate::payprov) async fn act(
    State(provider): State<PaymentProvider>,
    Path(id): Path<String>,
    Form(pressed): Form<Pressed>,
) -> Response {
    if provider.act(&id, pressed.action).await {
        go_to("/payprov")
    } else {
        missing("There is no such subscription, or that can't happen to it any more.")
    }
}
