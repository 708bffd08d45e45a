//! `/payprov/portal/{id}`: where a subscriber manages the subscription.

use askama::Template;
use axum::Form;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::checkout::CARDS;
use super::{go_to, missing, page};
use crate::payprov::PaymentProvider;
use crate::payprov::ledger::Ledger;
use crate::payprov::objects::PortalSession;
use crate::payprov::steering::Action;

const DECLINED: &str = "The card was declined. The previous card stays in use.";

#[derive(Template)]
#[template(path = "payprov/portal.html")]
struct Portal<'a> {
    ledger: &'a Ledger,
    session: &'a PortalSession,
    fault: Option<&'static str>,
    to: String,
}

/// `GET /payprov/portal/{id}`.
pub(in crate::payprov) async fn show(
    State(provider): State<PaymentProvider>,
    Path(id): Path<String>,
) -> Response {
    provider.look().await;
    shown(&provider, &id, None)
}

fn shown(provider: &PaymentProvider, id: &str, fault: Option<&'static str>) -> Response {
    let shown = provider.read(|ledger| {
        let content = Portal {
            ledger,
            session: ledger.portal_sessions.get(id)?,
            fault,
            to: format!("/payprov/portal/{id}"),
        };
        Some(page(StatusCode::OK, "Your subscription", content))
    });
    shown.unwrap_or_else(|| missing("There is no such page."))
}

/// A button; exactly one of these is present.
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
        return shown(&provider, &id, Some(DECLINED));
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
