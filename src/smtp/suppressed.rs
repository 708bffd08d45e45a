//! The reply to a message to suppressed recipients.

use mailgate_smtp::protocol::reply::Reply;

/// Maximum number of recipients named.
const NAMED: usize = 3;

/// The reply at the end of the message.
pub(super) fn reply(recipients: &[String]) -> Reply {
    let named = recipients.iter().take(NAMED).map(String::as_str);
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match recipients.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!("Not sent: mail to {named}{more} has bounced in the last 30 days");
    Reply::new(550, "5.1.1", &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_named() {
        let recipients: Vec<String> = (0..5).map(|number| format!("{number}@x.example")).collect();
        let lines = |count: usize| reply(&recipients[..count]).lines().join(" ");
        assert_eq!(
            lines(1),
            "Not sent: mail to 0@x.example has bounced in the last 30 days"
        );
        assert!(lines(5).contains("2@x.example and 2 more"), "{}", lines(5));
    }
}
