//! The fuzz target of the payment provider's events.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use super::{KIND_LENGTH, read};
use mailgate_providers::payprov::objects::is_id;

/// Whatever the body, only ids and a name are stored.
pub fn billing_events(data: &[u8]) {
    let Ok(event) = read(data) else { return };
    let ids = [
        &event.customer_id,
        &event.subscription_id,
        &event.invoice_id,
    ];
    assert!(ids.into_iter().flatten().all(|id| is_id(id)));
    assert!(is_id(&event.id) && (1..=KIND_LENGTH).contains(&event.kind.len()));
    assert!(event.kind.is_ascii() && event.attempts == 0);
}
