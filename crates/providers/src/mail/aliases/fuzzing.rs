//! Invariants of the stored addresses, whatever a provider reported.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use std::collections::HashSet;

use super::{MOST, kept};
use mailgate_types::email_address::EmailAddress;

/// Panics if there are too many, or one is invalid or the mailbox's own.
pub fn check_kept(reported: &[String]) {
    let Ok(own) = EmailAddress::parse("ada@example.com") else {
        return;
    };
    let addresses = kept(&own, reported);
    assert!(addresses.len() <= MOST);
    let lookups: HashSet<String> = addresses.iter().map(EmailAddress::lookup_key).collect();
    assert_eq!(lookups.len(), addresses.len());
    for address in &addresses {
        assert!(reported.iter().any(|reported| reported == address.as_str()));
        assert!(!address.same_mailbox(&own));
        assert!(!address.as_str().contains(char::is_control));
    }
}
