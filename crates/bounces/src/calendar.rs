//! Replies by calendar programs: an invitation is accepted or declined, or another time is proposed (RFC 5546 §3.2.3,
//! §3.2.7).

use crate::candidate::subject;
use crate::fields::value;
use crate::mime::{self, Part};

/// Methods used by invitees. An invitation itself may be a person's reply to a message.
const METHODS: [&str; 3] = ["reply", "counter", "refresh"];

/// Bytes of a calendar object to search for its method, which precedes its components.
const OBJECT: usize = 4 * 1024;

/// Maximum length of a subject's prefix with the answer, before the colon, in bytes.
const ANSWER: usize = 60;

/// The beginnings of such prefixes, in lower case.
const ANSWERS: [&str; 27] = [
    "accept",
    "declin",
    "tentativ",
    "new time",
    "new meeting time",
    "proposed new",
    "zugesagt",
    "zusage",
    "akzeptiert",
    "angenommen",
    "abgelehnt",
    "absage",
    "mit vorbehalt",
    "vorl\u{e4}ufig",
    "neue zeit",
    "refus",
    "provis",
    "acept",
    "rechaz",
    "accett",
    "rifiut",
    "provv",
    "aceit",
    "recus",
    "geaccepteerd",
    "geweigerd",
    "voorlopig",
];

/// Whether a message, possibly truncated, is a calendar's reply.
#[must_use]
pub fn is_calendar_answer(raw: &[u8]) -> bool {
    mime::split(raw).leaves.iter().any(is_answer)
}

/// Whether the message with this header is worth fetching for [`is_calendar_answer`].
#[must_use]
pub fn may_be_calendar_answer(header: &[u8]) -> bool {
    let starts = |name, start| {
        let value = value(header, name).unwrap_or_default();
        value.to_ascii_lowercase().starts_with(start)
    };
    if !starts("content-type", "multipart/") {
        return false;
    }
    // Microsoft's.
    if starts("content-class", "urn:content-classes:calendarmessage") {
        return true;
    }
    let subject = subject(header).to_lowercase();
    let answer = subject.split_once([':', '\u{ff1a}']);
    answer.is_some_and(|(answer, _)| {
        answer.len() <= ANSWER
            && (ANSWERS.iter()).any(|beginning| answer.trim_start().starts_with(beginning))
    })
}

fn is_answer(part: &Part<'_>) -> bool {
    if part.media_type != "text/calendar" {
        return false;
    }
    let is_one = |method: &str| METHODS.iter().any(|one| method.eq_ignore_ascii_case(one));
    if let Some(method) = part.parameter("method") {
        return is_one(method);
    }
    let mut object = part.content();
    object.truncate(OBJECT);
    String::from_utf8_lossy(&object).lines().any(|line| {
        let line = line.trim().split_once(':');
        line.is_some_and(|(name, value)| name.eq_ignore_ascii_case("method") && is_one(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message as Exchange and Google send it: the text, and the calendar object.
    fn with_object(content_type: &str, object: &str) -> String {
        format!(
            "Content-Type: multipart/mixed; boundary=m\n\n--m\nContent-Type: multipart/alternative; boundary=a\n\n\
             --a\n\nBob has accepted.\n--a\nContent-Type: {content_type}\n\n{object}\n--a--\n--m--\n"
        )
    }

    #[test]
    fn the_method_decides() {
        let object =
            |method: &str| format!("BEGIN:VCALENDAR\nVERSION:2.0\n{method}\nEND:VCALENDAR");
        for (content_type, method, expected) in [
            ("text/calendar; method=REPLY", "METHOD:REPLY", true),
            (
                "TEXT/Calendar; charset=\"UTF-8\";\n method=\"Counter\"",
                "",
                true,
            ),
            ("text/calendar; method=REFRESH", "", true),
            ("text/calendar; name=x.ics", "METHOD:REPLY", true),
            ("text/calendar", "method:counter\r", true),
            ("text/calendar; method=REQUEST", "METHOD:REQUEST", false),
            ("text/calendar; method=PUBLISH", "METHOD:REPLY", false),
            ("text/calendar", "SUMMARY:METHOD:REPLY", false),
            ("text/plain", "METHOD:REPLY", false),
            // Another person's invitation, forwarded.
            (
                "message/rfc822",
                "Content-Type: text/calendar; method=REPLY\n",
                false,
            ),
        ] {
            let message = with_object(content_type, &object(method));
            assert_eq!(
                is_calendar_answer(message.as_bytes()),
                expected,
                "{message}"
            );
        }
        assert!(is_calendar_answer(
            b"Content-Type: text/calendar; method=REPLY\r\n\r\n"
        ));
        assert!(!is_calendar_answer(b""));
    }

    #[test]
    fn those_that_are_read_whole() {
        for (header, expected) in [
            ("Subject: Accepted: Lunch @ Mon", true),
            ("Subject: DECLINED: Lunch", true),
            ("Subject: Tentatively accepted: Lunch", true),
            ("Subject: =?utf-8?q?Accept=C3=A9=C2=A0=3A?= Lunch", true),
            ("Subject: New Time Proposed: Lunch", true),
            ("Subject: Zugesagt: Lunch", true),
            (
                "Subject: Lunch\nContent-class: urn:content-classes:calendarmessage",
                true,
            ),
            ("Subject: Re: Accepted: Lunch", false),
            ("Subject: Accepted, thank you", false),
            ("Subject: Lunch", false),
        ] {
            let header = format!("Content-Type: multipart/alternative; boundary=x\n{header}\n\n");
            assert_eq!(
                may_be_calendar_answer(header.as_bytes()),
                expected,
                "{header}"
            );
        }
        assert!(!may_be_calendar_answer(b"Subject: Accepted: Lunch\n\n"));
    }
}
