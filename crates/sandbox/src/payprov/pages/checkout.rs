//! `/payprov/checkout/{id}`: where a subscriber enters a card. There are no numbers to type: a button
//! stands for each kind of card.

use axum::Form;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::{Look, button, customer_name, go_to, missing, page};
use crate::payprov::PaymentProvider;
use crate::payprov::customers::Card;
use crate::payprov::ledger::Ledger;
use mailgate_server::page::escaped;

/// The cards that can be entered here and on the portal, with the words that the buttons post.
pub(super) const CARDS: [(&str, &str, Option<Card>); 4] = [
    ("works", "A card that works", Some(Card::Works)),
    ("declined", "A card that is declined", None),
    (
        "declined_later",
        "A card that is taken here and declined at each payment",
        Some(Card::DeclinedLater),
    ),
    (
        "asks_each_time",
        "A card whose payments must be confirmed",
        Some(Card::AsksEachTime),
    ),
];

const DECLINED: &str =
    "<p class=\"card\" role=\"alert\"><strong>The card was declined. Try another one.</strong></p>";

/// The buttons, the first one the usual.
pub(super) fn cards(to: &str) -> String {
    let buttons = CARDS.iter().map(|(word, label, _)| {
        let look = if *word == "works" {
            Look::Main
        } else {
            Look::Plain
        };
        button(to, "card", word, label, look)
    });
    buttons.collect()
}

/// A pressed button for a card.
#[derive(Debug, Deserialize)]
pub(in crate::payprov) struct Entered {
    card: String,
}

/// `GET /payprov/checkout/{id}`.
pub(in crate::payprov) async fn show(
    State(provider): State<PaymentProvider>,
    Path(id): Path<String>,
) -> Response {
    provider.look().await;
    shown(&provider, &id, "")
}

fn shown(provider: &PaymentProvider, id: &str, fault: &str) -> Response {
    let now = provider.now();
    match provider.read(|ledger| body(ledger, id, fault, now)) {
        Some(body) => page(StatusCode::OK, "Save a card", &body),
        None => missing(
            "This page has already been used or has expired. Start again from where you came.",
        ),
    }
}

fn body(ledger: &Ledger, id: &str, fault: &str, now: i64) -> Option<String> {
    let session = ledger.open_checkout(id, now)?;
    let back = session.cancel_url.as_ref().map_or_else(String::new, |url| {
        format!(
            "<p><a href=\"{}\">Back without a card</a></p>",
            escaped(url)
        )
    });
    Some(format!(
        "<div class=\"narrow\"><p>This is the sandbox payment provider on your own machine. Choose the card that \
         <bdi>{name}</bdi> pays with; nothing is charged.</p>{fault}{cards}{back}</div>",
        name = escaped(&customer_name(ledger, &session.customer)),
        cards = cards(&format!("/payprov/checkout/{id}")),
    ))
}

/// `POST /payprov/checkout/{id}`: a card.
pub(in crate::payprov) async fn enter(
    State(provider): State<PaymentProvider>,
    Path(id): Path<String>,
    Form(entered): Form<Entered>,
) -> Response {
    let card = CARDS.iter().find(|(word, _, _)| *word == entered.card);
    let Some((_, _, Some(card))) = card else {
        return shown(&provider, &id, DECLINED);
    };
    let done = provider
        .change(|ledger, now| ledger.complete_checkout(&id, *card, now))
        .await;
    match done {
        Some(address) => go_to(&address),
        None => shown(&provider, &id, ""),
    }
}
