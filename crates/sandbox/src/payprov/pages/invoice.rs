//! `/payprov/invoices/{id}`: an invoice, and a button that pays it: where payment links lead.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::{Look, amount, button, customer_name, go_to, missing, moment, page};
use crate::payprov::PaymentProvider;
use crate::payprov::ledger::Ledger;
use crate::payprov::lifecycle::PaymentOutcome;
use crate::payprov::objects::InvoiceStatus;
use mailgate_server::page::escaped;

/// `GET /payprov/invoices/{id}`.
pub(in crate::payprov) async fn show(
    State(provider): State<PaymentProvider>,
    Path(id): Path<String>,
) -> Response {
    provider.look().await;
    match provider.read(|ledger| body(ledger, &id)) {
        Some(body) => page(StatusCode::OK, "Invoice", &body),
        None => missing("There is no such invoice."),
    }
}

fn body(ledger: &Ledger, id: &str) -> Option<String> {
    let invoice = ledger.invoices.get(id)?;
    let pay = if invoice.status == InvoiceStatus::Open {
        let to = format!("/payprov/invoices/{id}");
        button(&to, "action", "pay", "Confirm and pay", Look::Main)
    } else {
        String::new()
    };
    Some(format!(
        "<div class=\"narrow\"><div class=\"card\"><dl><dt>Number</dt><dd>{number}</dd><dt>For</dt><dd><bdi>{name}</bdi></dd>\
         <dt>Amount</dt><dd>{amount}</dd><dt>Status</dt><dd>{status}</dd><dt>Date</dt><dd>{date}</dd></dl></div>{pay}</div>",
        number = escaped(&invoice.number),
        name = escaped(&customer_name(ledger, &invoice.customer)),
        amount = amount(invoice.amount_due, &invoice.currency),
        status = invoice.status.as_str(),
        date = moment(invoice.created),
    ))
}

/// `POST /payprov/invoices/{id}`: pays it, with a card that works and that nobody keeps.
pub(in crate::payprov) async fn pay(
    State(provider): State<PaymentProvider>,
    Path(id): Path<String>,
) -> Response {
    let found = provider
        .change(|ledger, now| {
            let status = ledger.invoices.get(&id)?.status;
            if status == InvoiceStatus::Open {
                ledger.attempt(&id, None, Some(PaymentOutcome::Paid), now);
            }
            Some(())
        })
        .await;
    match found {
        Some(()) => go_to(&format!("/payprov/invoices/{id}")),
        None => missing("There is no such invoice."),
    }
}
