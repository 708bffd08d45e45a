//! Receives the provider's webhook events. An event is acknowledged once its signature is verified and it is
//! stored, and processed afterwards.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use super::{Billing, BillingError};
use mailgate_providers::payprov::objects::{Event, is_id};
use mailgate_providers::payprov::signature::{Signature, SignatureError};
use mailgate_storage::payprov_events::{self, StoredEvent};
use mailgate_storage::subscribers::billing::find_by_customer;

/// Longest event type, in bytes.
const KIND_LENGTH: usize = 100;

/// The event types that are acted on.
pub(super) const CREATED: &str = "customer.subscription.created";
pub(super) const UPDATED: &str = "customer.subscription.updated";
pub(super) const DELETED: &str = "customer.subscription.deleted";
pub(super) const TRIAL_WILL_END: &str = "customer.subscription.trial_will_end";
pub(super) const PAYMENT_FAILED: &str = "invoice.payment_failed";
pub(super) const CHECKOUT_COMPLETED: &str = "checkout.session.completed";
pub(super) const SETUP_SUCCEEDED: &str = "setup_intent.succeeded";
pub(super) const PAYMENT_ACTION_REQUIRED: &str = "invoice.payment_action_required";

/// Why an event is rejected; nothing of it is stored.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// No payment provider is configured.
    #[error("nothing is billed: payprov.secret_key is empty")]
    NotConfigured,
    /// The signature is not the provider's.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// Not JSON.
    #[error("the body isn't valid JSON")]
    NotJson,
    /// JSON of another shape.
    #[error("the body isn't an event: it needs an id, a type and a data.object")]
    NotAnEvent,
    /// The database failed.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

impl Billing {
    /// Checks whether an event with this signature may be the provider's, as far as that can be determined before its
    /// body has been read.
    ///
    /// # Errors
    ///
    /// [`ReceiveError::NotConfigured`] and [`ReceiveError::Signature`].
    pub fn expects(&self, signature: Option<&str>) -> Result<(), ReceiveError> {
        let payprov = self
            .payprov()
            .map_err(|_: BillingError| ReceiveError::NotConfigured)?;
        if payprov.webhook_secret.is_some() {
            Signature::read(signature, self.clock.now())?;
        }
        Ok(())
    }

    /// Receives an event, if it is the provider's. A repeated event is acknowledged again and changes nothing; an event
    /// of a type that isn't acted on is not stored.
    ///
    /// # Errors
    ///
    /// [`ReceiveError`]; the provider retries then.
    pub async fn receive(&self, signature: Option<&str>, body: &[u8]) -> Result<(), ReceiveError> {
        let payprov = self
            .payprov()
            .map_err(|_: BillingError| ReceiveError::NotConfigured)?;
        let now = self.clock.now();
        if let Some(secret) = &payprov.webhook_secret {
            Signature::read(signature, now)?.verify(secret, body)?;
        }
        let event = read(body)?;
        let is_verified = payprov.webhook_secret.is_some();
        if !self.matters(&event, is_verified).await? {
            metrics::counter!("mailgate_payprov_events_total", "new" => "ignored").increment(1);
            tracing::debug!(
                event_id = event.id,
                kind = event.kind,
                "an event that nothing follows from"
            );
            return Ok(());
        }
        let is_new = {
            let mut connection = self.pool.acquire().await?;
            payprov_events::insert(&mut connection, &event, now).await?
        };
        metrics::counter!("mailgate_payprov_events_total", "new" => if is_new { "yes" } else { "no" })
            .increment(1);
        tracing::info!(
            event_id = event.id,
            kind = event.kind,
            is_new,
            "an event of the payment provider"
        );
        if is_new {
            self.wake();
        }
        Ok(())
    }

    /// Whether an event can have any effect. An unverified one must name a known customer; the next fetch gets the
    /// state of a customer that is still being created.
    async fn matters(&self, event: &StoredEvent, is_verified: bool) -> Result<bool, sqlx::Error> {
        let is_handled = matches!(
            event.kind.as_str(),
            CREATED
                | UPDATED
                | DELETED
                | TRIAL_WILL_END
                | PAYMENT_FAILED
                | PAYMENT_ACTION_REQUIRED
                | CHECKOUT_COMPLETED
                | SETUP_SUCCEEDED
        );
        let Some(customer) = event.customer_id.as_deref().filter(|_| is_handled) else {
            return Ok(false);
        };
        if is_verified {
            return Ok(true);
        }
        let mut connection = self.pool.acquire().await?;
        let known = find_by_customer(&mut connection, customer).await?;
        Ok(known.is_some())
    }
}

/// Whether an event type reports that a payment method was entered.
pub(super) fn is_of_card(kind: &str) -> bool {
    matches!(kind, CHECKOUT_COMPLETED | SETUP_SUCCEEDED)
}

fn read(body: &[u8]) -> Result<StoredEvent, ReceiveError> {
    let value: serde_json::Value =
        serde_json::from_slice(body).map_err(|_| ReceiveError::NotJson)?;
    let event: Event = serde_json::from_value(value).map_err(|_| ReceiveError::NotAnEvent)?;
    let is_kind = (1..=KIND_LENGTH).contains(&event.r#type.len())
        && event
            .r#type
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'));
    if !is_id(&event.id) || !is_kind {
        return Err(ReceiveError::NotAnEvent);
    }
    let id = |field: &str| event.data.id(field).map(str::to_owned);
    let (subscription_id, invoice_id) = if event.r#type.starts_with("invoice.") {
        let subscription = event.data.invoice_subscription().map(str::to_owned);
        (subscription, id("id"))
    } else if is_of_card(&event.r#type) {
        (None, None)
    } else {
        (id("id"), None)
    };
    Ok(StoredEvent {
        customer_id: id("customer"),
        subscription_id,
        invoice_id,
        id: event.id,
        kind: event.r#type,
        attempts: 0,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_kept_of_an_event() {
        let of_subscription = json!({ "id": "evt_1", "type": CREATED, "data": { "object": {
            "id": "sub_1", "customer": "cus_1" } } });
        let event = read(of_subscription.to_string().as_bytes()).unwrap();
        assert_eq!(event.customer_id.as_deref(), Some("cus_1"));
        assert_eq!(event.subscription_id.as_deref(), Some("sub_1"));
        assert_eq!(event.invoice_id, None);
        let of_invoice = json!({ "id": "evt_2", "type": PAYMENT_FAILED, "data": { "object": {
            "id": "in_1", "customer": { "id": "cus_1" }, "subscription": "sub_1" } } });
        let event = read(of_invoice.to_string().as_bytes()).unwrap();
        assert_eq!(event.customer_id.as_deref(), Some("cus_1"));
        assert_eq!(event.subscription_id.as_deref(), Some("sub_1"));
        assert_eq!(event.invoice_id.as_deref(), Some("in_1"));
        for kind in [CHECKOUT_COMPLETED, SETUP_SUCCEEDED] {
            let of_card = json!({ "id": "evt_3", "type": kind, "data": { "object": {
                "id": "cs_1", "customer": "cus_1" } } });
            let event = read(of_card.to_string().as_bytes()).unwrap();
            assert_eq!(event.customer_id.as_deref(), Some("cus_1"));
            assert_eq!((event.subscription_id, event.invoice_id), (None, None));
        }
    }

    #[test]
    fn what_is_no_event() {
        for (body, is_json) in [
            ("", false),
            ("evt_1", false),
            ("{\"id\":\"evt_1\"", false),
            ("[]", true),
            ("{}", true),
            (r#"{"id":"evt_1","type":"a","data":{}}"#, true),
            (r#"{"id":"evt_1","type":"a","data":{"object":7}}"#, true),
            (r#"{"id":"","type":"a","data":{"object":{}}}"#, true),
            (r#"{"id":"evt 1","type":"a","data":{"object":{}}}"#, true),
            (r#"{"id":"evt_1","type":"","data":{"object":{}}}"#, true),
            (
                r#"{"id":"evt_1","type":"a\u0000","data":{"object":{}}}"#,
                true,
            ),
        ] {
            let error = read(body.as_bytes()).unwrap_err();
            assert_eq!(matches!(error, ReceiveError::NotAnEvent), is_json, "{body}");
        }
        let odd = r#"{"id":"evt_1","type":"a.b","data":{"object":{"id":7,"customer":"../x"}}}"#;
        let event = read(odd.as_bytes()).unwrap();
        assert_eq!((event.customer_id, event.subscription_id), (None, None));
    }
}
