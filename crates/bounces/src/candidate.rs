//! Decides by its headers whether a message is worth fetching whole. False positives are fine: [`crate::read`] decides.

use mail_parser::MessageParser;

use mailgate_types::encoded_words::{decoded, joined};

use crate::fields::{parameters, value};

/// Headers that [`is_candidate`] uses, for readers that fetch headers by name.
pub const HEADERS: [&str; 6] = [
    "From",
    "Subject",
    "Auto-Submitted",
    "Return-Path",
    "Content-Type",
    "X-Failed-Recipients",
];

/// Types of reports about anything but deliveries.
const OTHER_REPORTS: [&str; 3] = ["disposition-notification", "feedback-report", "tlsrpt"];

/// Local parts of mail servers' own addresses, in lower case, without separators.
const DAEMONS: [&str; 9] = [
    "mailerdaemon",
    "postmaster",
    "maildaemon",
    "mdaemon",
    "maildelivery",
    "maildeliverysystem",
    "maildeliverysubsystem",
    "mailadministrator",
    "bounces",
];

/// The local part of Exchange's own address in each organization, and names that servers use for themselves.
const EXCHANGE: &str = "microsoftexchange";
const DAEMON_NAMES: [&str; 6] = [
    "mail delivery",
    "mailer-daemon",
    "mailer daemon",
    "postmaster",
    "microsoft outlook",
    "system administrator",
];

/// Phrases in the subjects of bounces.
const SUBJECTS: [&str; 22] = [
    "undeliver",
    "non-deliver",
    "nondeliver",
    "not delivered",
    "not be delivered",
    "delivery",
    "returned mail",
    "returned to sender",
    "return receipt",
    "failure notice",
    "failed message",
    "message failed",
    "mail error",
    "mail system error",
    "delayed",
    "could not send",
    "warning: message",
    "unzustellbar",
    "non remis",
    "no se puede entregar",
    "non recapitabile",
    "onbestelbaar",
];

/// Whether a message with this header may be a bounce.
#[must_use]
pub fn is_candidate(header: &[u8]) -> bool {
    if let Some((media_type, parameters)) =
        value(header, "content-type").map(|value| parameters(&value))
        && media_type == "multipart/report"
    {
        let about = |name: &str| {
            (parameters.iter())
                .any(|(its, value)| its == "report-type" && value.eq_ignore_ascii_case(name))
        };
        return !OTHER_REPORTS.into_iter().any(about);
    }
    if value(header, "x-failed-recipients").is_some() {
        return true;
    }
    is_from_daemon(header) || (is_automatic(header) && has_subject(header))
}

/// Whether the author is a mail server.
pub(crate) fn is_from_daemon(header: &[u8]) -> bool {
    let from = value(header, "from").unwrap_or_default();
    // A separate header, for a parser that supports fewer line ends and decodes each encoded word separately.
    let from = [b"from: ", joined(from.as_bytes()).as_ref(), b"\r\n\r\n"].concat();
    let Some(parsed) = MessageParser::new().parse_headers(&from) else {
        return false;
    };
    let Some(from) = parsed.from().and_then(mail_parser::Address::first) else {
        return false;
    };
    let name = from.name.as_deref().unwrap_or_default().to_lowercase();
    let address = from.address.as_deref().unwrap_or_default().to_lowercase();
    let local = address
        .rsplit_once('@')
        .map_or(&*address, |(local, _)| local);
    daemon(local) || DAEMON_NAMES.iter().any(|daemon| name.contains(daemon))
}

/// Whether this is the local part of a mail server's own address.
pub(crate) fn daemon(local: &str) -> bool {
    let letters = local.chars().filter(char::is_ascii_alphanumeric);
    let plain = letters.collect::<String>().to_ascii_lowercase();
    DAEMONS.contains(&plain.as_str()) || plain.starts_with(EXCHANGE)
}

/// Whether it must not be answered: its envelope sender is empty (RFC 5321 §4.5.5), or it is automatic (RFC 3834 §5).
pub(crate) fn is_automatic(header: &[u8]) -> bool {
    let is_null = |value: String| {
        value
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .eq("<>".chars())
    };
    let is_automatic = |value: String| !value.trim_start().to_ascii_lowercase().starts_with("no");
    value(header, "return-path").is_some_and(is_null)
        || value(header, "auto-submitted").is_some_and(is_automatic)
}

fn has_subject(header: &[u8]) -> bool {
    let subject = subject(header).to_lowercase();
    SUBJECTS.iter().any(|words| subject.contains(words))
}

/// The subject, decoded.
pub(crate) fn subject(header: &[u8]) -> String {
    decoded(value(header, "subject").unwrap_or_default().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates() {
        for (header, expected) in [
            (
                "Content-Type: multipart/report; report-type=delivery-status; boundary=x",
                true,
            ),
            ("Content-Type: multipart/report; boundary=x", true),
            (
                "Content-Type: multipart/report; report-type=\"disposition-notification\"",
                false,
            ),
            (
                "Content-Type: multipart/report; report-type=feedback-report",
                false,
            ),
            ("X-Failed-Recipients: a@x.org", true),
            ("From: Mail Delivery System <Mailer-Daemon@x.org>", true),
            ("From: MAILER-DAEMON", true),
            ("From: postmaster@x.org", true),
            (
                "From: Microsoft Outlook <MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@x.org>",
                true,
            ),
            ("Return-Path: <>\r\nSubject: Undeliverable mail", true),
            (
                "Return-Path: < >\r\nSubject: =?utf-8?q?Unzustellbar:_Gr=C3=BC=C3=9Fe?=",
                true,
            ),
            (
                "Auto-Submitted: auto-replied\r\nSubject: Delivery failure",
                true,
            ),
            ("Auto-Submitted: no\r\nSubject: Delivery failure", false),
            ("Return-Path: <>\r\nSubject: Out of office", false),
            (
                "From: Bob <bob@x.org>\r\nSubject: Undeliverable: you",
                false,
            ),
            ("From: Bob <bob@x.org>\r\nContent-Type: text/plain", false),
            ("", false),
        ] {
            let header = format!("{header}\r\n\r\n");
            assert_eq!(is_candidate(header.as_bytes()), expected, "{header}");
        }
    }
}
