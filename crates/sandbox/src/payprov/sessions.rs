//! `/v1/checkout/sessions` (in mode `setup`), `/v1/setup_intents` and `/v1/billing_portal/sessions`; their pages are in
//! `pages`.

use serde_json::{Value, json};
use url::Url;

use super::customers::Card;
use super::ledger::{Ledger, new_id, shown};
use super::objects::{CheckoutSession, PaymentMethod, PortalSession, SetupIntent};
use super::parameters::Parameters;
use super::refusal::Refusal;

/// Lifetime of a checkout page, in seconds.
const CHECKOUT: i64 = 24 * 60 * 60;

/// The first version in which the parameter for payment method types has its new name.
const ALLOWED_TYPES_SINCE: &str = "2026-09-30";

/// The placeholder for the session's id in a URL.
const SESSION_ID: &str = "{CHECKOUT_SESSION_ID}";

fn web_address(parameters: &mut Parameters, name: &str) -> Result<String, Refusal> {
    let text = parameters.required(name)?;
    check_address(name, &text)?;
    Ok(text)
}

fn check_address(name: &str, text: &str) -> Result<(), Refusal> {
    let is_web = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if Url::parse(text).is_ok_and(is_web) {
        Ok(())
    } else {
        Err(Refusal::parameter(name, "url_invalid", "Not a valid URL"))
    }
}

impl Ledger {
    pub(super) fn create_checkout_session(
        &mut self,
        parameters: &mut Parameters,
        now: i64,
    ) -> Result<Value, Refusal> {
        let mode = parameters.required("mode")?;
        let customer = parameters.required("customer")?;
        let success_url = web_address(parameters, "success_url")?;
        let cancel_url = parameters.text("cancel_url");
        let currency = parameters.text("currency");
        // This version doesn't know the other name.
        let has_new_name = *parameters.version >= *ALLOWED_TYPES_SINCE;
        let name = if has_new_name {
            "allowed_payment_method_types"
        } else {
            "payment_method_types"
        };
        let kinds = parameters.within(name);
        let intent_metadata = parameters.within("setup_intent_data[metadata]");
        let metadata = parameters.metadata();
        parameters.text("locale");
        parameters.done()?;
        if mode != "setup" {
            let text = "Invalid mode: this stand-in has setup only";
            return Err(Refusal::parameter("mode", "parameter_invalid_enum", text));
        }
        if let Some(cancel_url) = &cancel_url {
            check_address("cancel_url", cancel_url)?;
        }
        if currency.is_none() && kinds.is_empty() {
            let text = format!(
                "Missing required param: currency. It is required in setup mode when {name} is not set."
            );
            return Err(Refusal::parameter("currency", "parameter_missing", text));
        }
        self.known_customer(&customer)?;
        let intent = SetupIntent {
            id: new_id("seti"),
            object: "setup_intent".to_owned(),
            created: now,
            livemode: false,
            customer: Some(customer.clone()),
            status: "requires_payment_method".to_owned(),
            usage: "off_session".to_owned(),
            payment_method: None,
            metadata: intent_metadata,
        };
        let id = new_id("cs");
        let session = CheckoutSession {
            object: "checkout.session".to_owned(),
            created: now,
            expires_at: now + CHECKOUT,
            livemode: false,
            mode,
            customer,
            currency,
            setup_intent: intent.id.clone(),
            status: "open".to_owned(),
            payment_status: "no_payment_required".to_owned(),
            success_url,
            cancel_url,
            url: Some(format!("{}/checkout/{id}", self.address)),
            metadata,
            id,
        };
        let shown = json!(session);
        self.setup_intents.insert(intent.id.clone(), intent);
        self.checkout_sessions.insert(session.id.clone(), session);
        Ok(shown)
    }

    pub(super) fn show_checkout_session(
        &self,
        id: &str,
        parameters: &Parameters,
    ) -> Result<Value, Refusal> {
        shown(
            &self.checkout_sessions,
            id,
            parameters,
            ("checkout.session", "id"),
        )
    }

    pub(super) fn show_setup_intent(
        &self,
        id: &str,
        parameters: &Parameters,
    ) -> Result<Value, Refusal> {
        shown(
            &self.setup_intents,
            id,
            parameters,
            ("setupintent", "intent"),
        )
    }

    /// A session with a page that can still be used.
    pub(super) fn open_checkout(&self, id: &str, now: i64) -> Option<&CheckoutSession> {
        self.checkout_sessions
            .get(id)
            .filter(|session| session.status == "open" && now < session.expires_at)
    }

    /// Accepts a card that was entered on a session's page: it then belongs to the customer, but is not the default
    /// until it is set as such. Returns the URL to redirect the browser to.
    pub(super) fn complete_checkout(&mut self, id: &str, card: Card, now: i64) -> Option<String> {
        let customer = self.open_checkout(id, now)?.customer.clone();
        let method = PaymentMethod::new(card, Some(&customer), now);
        let method_id = method.id.clone();
        self.attach(method, now);
        let session = self.checkout_sessions.get_mut(id)?;
        "complete".clone_into(&mut session.status);
        session.url = None;
        let (shown, intent) = (json!(session), session.setup_intent.clone());
        let success = session.success_url.replace(SESSION_ID, id);
        if let Some(intent) = self.setup_intents.get_mut(&intent) {
            "succeeded".clone_into(&mut intent.status);
            intent.payment_method = Some(method_id);
            let shown = json!(intent);
            self.happened("setup_intent.succeeded", shown, None, now);
        }
        self.happened("checkout.session.completed", shown, None, now);
        Some(success)
    }

    pub(super) fn create_portal_session(
        &mut self,
        parameters: &mut Parameters,
        now: i64,
    ) -> Result<Value, Refusal> {
        let customer = parameters.required("customer")?;
        let return_url = web_address(parameters, "return_url")?;
        parameters.text("locale");
        parameters.done()?;
        self.known_customer(&customer)?;
        let id = new_id("bps");
        let session = PortalSession {
            object: "billing_portal.session".to_owned(),
            created: now,
            livemode: false,
            customer,
            return_url,
            url: format!("{}/portal/{id}", self.address),
            id,
        };
        let shown = json!(session);
        self.portal_sessions.insert(session.id.clone(), session);
        Ok(shown)
    }

    /// Enters a card on the portal, where it immediately becomes the default.
    pub(super) fn change_card(&mut self, customer: &str, card: Card, now: i64) {
        let method = PaymentMethod::new(card, Some(customer), now);
        let id = method.id.clone();
        self.attach(method, now);
        if let Some(found) = self.customers.get_mut(customer) {
            found.invoice_settings.default_payment_method = Some(id);
            let shown = json!(found);
            self.happened("customer.updated", shown, None, now);
        }
    }
}
