//! The fuzz target of the payment provider's responses.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{PayprovError, refusal};
use crate::answer::fuzzing::{answer, is_told, moment};
use crate::payprov::objects::{
    Customer, Event, HostedPage, Invoice, List, PaymentMethod, Subscription, is_id,
};
use crate::payprov::signature::Signature;
use mailgate_types::fuzzing::Input;

/// Any response, wherever one is expected, and a signature over any body.
pub fn payprov_answers(data: &[u8]) {
    let mut input = Input::new(data);
    let now = moment(&mut input);
    let should_retry = [None, Some(true), Some(false)][usize::from(input.byte()) % 3];
    let header = input;
    let answer = answer(&mut input, now);
    let body = answer.body.clone();
    if !(200..300).contains(&answer.status) {
        let refusal = refusal(answer, should_retry);
        assert!(is_told(&refusal.to_string()), "{refusal}");
        let waits = matches!(refusal, PayprovError::Unavailable { .. });
        assert!(should_retry.is_none_or(|should| should == waits));
    }
    let _ = (read::<Customer>(&body), read::<List<Customer>>(&body));
    let _ = (
        read::<HostedPage>(&body),
        read::<List<PaymentMethod>>(&body),
    );
    let subscriptions = read::<List<Subscription>>(&body).map(|list| list.data);
    let subscriptions = subscriptions.into_iter().flatten();
    for subscription in subscriptions.chain(read::<Subscription>(&body)) {
        let item = subscription.item("price_1").is_some();
        assert_eq!(item, !subscription.items.data.is_empty());
        let _ = (
            subscription.customer_id(),
            subscription.current_period_end(),
        );
    }
    let invoices = read::<List<Invoice>>(&body).map(|list| list.data);
    for invoice in invoices.into_iter().flatten().chain(read::<Invoice>(&body)) {
        let _ = (invoice.subscription_id(), invoice.is_open());
    }
    if let Some(event) = read::<Event>(&body) {
        let ids = [
            event.data.id("id"),
            event.data.id("customer"),
            event.data.invoice_subscription(),
        ];
        assert!(ids.into_iter().flatten().all(is_id));
    }
    // Only the provider can sign.
    let secret = SecretString::from("whsec_fuzz");
    let header = String::from_utf8_lossy(header.rest());
    let is_signed = Signature::read(Some(&header), now)
        .is_ok_and(|signature| signature.verify(&secret, data).is_ok());
    assert!(!is_signed);
}

fn read<T: DeserializeOwned>(body: &Value) -> Option<T> {
    serde_json::from_value(body.clone()).ok()
}
