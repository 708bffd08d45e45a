//! `/payprov/checkout/{id}`: where a subscriber enters a card. There are no numbers to type: each kind of card has a
//! button.

use askama::Template;
use axum::Form;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::{customer_name, go_to, missing, page};
use crate::payprov::PaymentProvider;
use crate::payprov::customers::Card;

/// The cards that can be entered here and on the portal, with the values that the buttons post.
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

const DECLINED: &str = "The card was declined. Try another one.";

#[derive(Template)]
#[template(path = "payprov/checkout.html")]
struct Checkout<'a> {
    name: String,
    fault: Option<&'static str>,
    to: String,
    back: Option<&'a str>,
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
    shown(&provider, &id, None)
}

fn shown(provider: &PaymentProvider, id: &str, fault: Option<&'static str>) -> Response {
    let now = provider.now();
    let shown = provider.read(|ledger| {
        let session = ledger.open_checkout(id, now)?;
        let content = Checkout {
            name: customer_name(ledger, &session.customer),
            fault,
            to: format!("/payprov/checkout/{id}"),
            back: session.cancel_url.as_deref(),
        };
        Some(page(StatusCode::OK, "Save a card", content))
    });
    shown.unwrap_or_else(|| {
        missing(
            "This page has already been used or has expired. Start again from the previous page.",
        )
    })
}

/// `POST /payprov/checkout/{id}`: a card.
pub(in crate::payprov) async fn enter(
    State(provider): State<PaymentProvider>,
    Path(id): Path<String>,
    Form(entered): Form<Entered>,
) -> Response {
    let card = CARDS.iter().find(|(word, _, _)| *word == entered.card);
    let Some((_, _, Some(card))) = card else {
        return shown(&provider, &id, Some(DECLINED));
    };
    let done = provider
        .change(|ledger, now| ledger.complete_checkout(&id, *card, now))
        .await;
    match done {
        Some(address) => go_to(&address),
        None => shown(&provider, &id, None),
    }
}
