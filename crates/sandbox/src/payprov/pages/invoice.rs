//! `/payprov/invoices/{id}`: an invoice, and a button that pays it; the target of payment links.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::{customer_name, go_to, missing, page};
use crate::payprov::PaymentProvider;
use crate::payprov::lifecycle::PaymentOutcome;
use crate::payprov::objects::{Invoice, InvoiceStatus};

#[derive(Template)]
#[template(path = "payprov/invoice.html")]
struct InvoicePage<'a> {
    invoice: &'a Invoice,
    name: String,
    to: String,
}

/// `GET /payprov/invoices/{id}`.
pub(in crate::payprov) async fn show(
    State(provider): State<PaymentProvider>,
    Path(id): Path<String>,
) -> Response {
    provider.look().await;
    let shown = provider.read(|ledger| {
        let invoice = ledger.invoices.get(&id)?;
        let content = InvoicePage {
            invoice,
            name: customer_name(ledger, &invoice.customer),
            to: format!("/payprov/invoices/{id}"),
        };
        Some(page(StatusCode::OK, "Invoice", content))
    });
    shown.unwrap_or_else(|| missing("There is no such invoice."))
}

/// `POST /payprov/invoices/{id}`: pays it, with a working card that isn't saved.
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
