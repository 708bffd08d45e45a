//! Headers in which others than the author describe a message or name its sender. REST doesn't allow them; SMTP removes
//! the receivers' headers and checks the senders in the others.

/// Headers that a receiver's servers write, in lower case: check results and the message's path. In a message that is
/// only being submitted they can't be genuine (RFC 8601 §5, RFC 5321 §4.4).
const OF_RECEIVERS: [&str; 4] = [
    "authentication-results",
    "received-spf",
    "return-path",
    "delivered-to",
];

/// Prefixes of such headers: those of an authenticated received chain (RFC 8617).
const OF_RECEIVERS_PREFIX: &str = "arc-";

/// Headers besides From that name a sender, and that mail programs show (RFC 5322 §3.6.2, §3.6.6).
pub const OF_SENDERS: [&str; 3] = ["Sender", "Resent-From", "Resent-Sender"];

/// Whether only a receiver's servers write a header of this name.
#[must_use]
pub fn is_of_receivers(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    OF_RECEIVERS.contains(&lower.as_str()) || lower.starts_with(OF_RECEIVERS_PREFIX)
}

/// The header besides From that names a sender, if this is one.
#[must_use]
pub fn of_sender(name: &str) -> Option<&'static str> {
    let mut all = OF_SENDERS.into_iter();
    all.find(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_spelling() {
        for name in [
            "Authentication-Results",
            "RECEIVED-SPF",
            "return-path",
            "Delivered-To",
            "ARC-Seal",
            "arc-message-signature",
            "ARC-Authentication-Results",
        ] {
            assert!(is_of_receivers(name), "{name}");
            assert_eq!(of_sender(name), None, "{name}");
        }
        for name in [
            "Received",
            "X-Authentication-Results",
            "Archived-At",
            "From",
        ] {
            assert!(!is_of_receivers(name), "{name}");
            assert_eq!(of_sender(name), None, "{name}");
        }
        assert_eq!(of_sender("SENDER"), Some("Sender"));
        assert_eq!(of_sender("resent-from"), Some("Resent-From"));
    }
}
