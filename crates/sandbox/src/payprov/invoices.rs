//! `/v1/invoices`.

use serde_json::{Value, json};

use super::ledger::Ledger;
use super::lifecycle::PaymentOutcome;
use super::objects::InvoiceStatus;
use super::parameters::Parameters;
use super::refusal::Refusal;

impl Ledger {
    pub(super) fn show_invoice(
        &mut self,
        id: &str,
        parameters: &Parameters,
    ) -> Result<Value, Refusal> {
        parameters.done()?;
        Ok(json!(self.invoice(id)?))
    }

    /// Newest first.
    pub(super) fn list_invoices(&self, parameters: &mut Parameters) -> Result<Vec<Value>, Refusal> {
        let customer = parameters.text("customer");
        let subscription = parameters.text("subscription");
        let status = parameters.choice(
            "status",
            &[
                ("draft", "draft"),
                ("open", "open"),
                ("paid", "paid"),
                ("uncollectible", "uncollectible"),
                ("void", "void"),
            ],
        )?;
        let fits = |wanted: &Option<String>, found: &String| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        let invoices = self.invoices.values().rev();
        Ok(invoices
            .filter(|invoice| fits(&customer, &invoice.customer))
            .filter(|invoice| fits(&subscription, &invoice.subscription))
            .filter(|invoice| status.is_none_or(|status| status == invoice.status.as_str()))
            .map(|invoice| json!(invoice))
            .collect())
    }

    pub(super) fn pay_invoice(
        &mut self,
        id: &str,
        parameters: &mut Parameters,
        now: i64,
    ) -> Result<Value, Refusal> {
        let method = parameters.text("payment_method");
        let out_of_band = parameters.flag("paid_out_of_band")?.unwrap_or(false);
        parameters.choice("off_session", &[("true", ()), ("false", ())])?;
        parameters.done()?;
        let invoice = self.invoice(id)?.clone();
        match invoice.status {
            InvoiceStatus::Open => {}
            InvoiceStatus::Paid => {
                let text = "Invoice is already paid";
                return Err(Refusal::parameter("invoice", "invoice_already_paid", text));
            }
            InvoiceStatus::Void => {
                let text = "Only open or uncollectible invoices can be paid.";
                return Err(Refusal::parameter("invoice", "invoice_not_editable", text));
            }
        }
        if let Some(method) = &method {
            self.payment_method_of(&invoice.customer, "payment_method", method)?;
        }
        let has_card = method.is_some() || self.payment_method_for(&invoice.subscription).is_some();
        if !has_card && !out_of_band && invoice.amount_remaining > 0 {
            let text = "There is no default_payment_method set on this Customer or Invoice. Please set a default_payment_method.";
            return Err(Refusal::parameter(
                "payment_method",
                "missing_payment_method",
                text,
            ));
        }
        let outcome = out_of_band.then_some(PaymentOutcome::Paid);
        match self.attempt(id, method.as_deref(), outcome, now) {
            PaymentOutcome::Paid => Ok(json!(self.invoice(id)?)),
            PaymentOutcome::Declined(code) => Err(Refusal::card(code, "Your card was declined.")),
            PaymentOutcome::ActionRequired => Err(Refusal::card(
                "invoice_payment_intent_requires_action",
                "This payment requires additional user action before it can be completed successfully.",
            )),
        }
    }
}
