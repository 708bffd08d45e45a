//! `/payprov`: the subscribers, and actions to simulate for each.

use askama::Template;
use axum::Form;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::{go_to, missing, page};
use crate::payprov::PaymentProvider;
use crate::payprov::ledger::Ledger;
use crate::payprov::objects::{Customer, Event, Status, Subscription};
use crate::payprov::steering::Action;

/// How many subscribers are shown, newest first.
const SHOWN: usize = 100;

/// How many events are shown, newest first.
const SHOWN_EVENTS: usize = 20;

/// The buttons, with the value that each posts.
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
        "Charge the next payment now: it needs confirmation",
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

#[derive(Template)]
#[template(path = "payprov/overview.html")]
struct Overview<'a> {
    ledger: &'a Ledger,
}

impl<'a> Overview<'a> {
    fn customers(&self) -> impl Iterator<Item = &'a Customer> {
        self.ledger.customers.values().rev().take(SHOWN)
    }

    fn events(&self) -> impl Iterator<Item = &'a Event> {
        self.ledger.events.iter().rev().take(SHOWN_EVENTS)
    }
}

/// A subscription's buttons: posted value, label and style.
fn buttons(of: &Subscription) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let (status, is_free) = (of.status, of.amount() == 0);
    let fitting = BUTTONS.into_iter().filter(move |(action, _, _)| {
        let can_fail = matches!(action, Action::PaymentFails | Action::PaymentNeedsAction);
        action.fits(status) && !(can_fail && is_free)
    });
    fitting.map(|(action, word, label)| match action {
        Action::GiveUp | Action::Delete => (word, label, "danger"),
        _ => (word, label, ""),
    })
}

/// `GET /payprov`.
pub(in crate::payprov) async fn show(State(provider): State<PaymentProvider>) -> Response {
    provider.look().await;
    provider.read(|ledger| page(StatusCode::OK, "Sandbox payments", Overview { ledger }))
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
        missing("There is no such subscription, or this action is no longer possible.")
    }
}
