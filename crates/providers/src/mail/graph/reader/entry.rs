//! The pages of a delta query, and the headers of the messages on them.

use serde::Deserialize;

use crate::mail::received;

#[derive(Deserialize)]
pub(super) struct Page {
    pub(super) value: Vec<Entry>,
    #[serde(rename = "@odata.nextLink")]
    pub(super) next: Option<String>,
    #[serde(rename = "@odata.deltaLink")]
    pub(super) delta: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Entry {
    pub(super) id: String,
    #[serde(rename = "@removed")]
    pub(super) removed: Option<serde_json::Value>,
    pub(super) internet_message_id: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) from: Option<Addressee>,
    pub(super) to_recipients: Option<Vec<Addressee>>,
    pub(super) internet_message_headers: Option<Vec<NamedValue>>,
    pub(super) received_date_time: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Addressee {
    email_address: EmailAddress,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct EmailAddress {
    address: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct NamedValue {
    name: String,
    value: Option<String>,
}

/// The headers as they would appear in the message. The list of them has been seen to be incomplete; the rest is taken
/// from the fields.
pub(super) fn header_block(entry: &Entry) -> Vec<u8> {
    let bracketed = |addressee: &Addressee| {
        let address = addressee.email_address.address.as_deref()?;
        Some(format!("<{address}>"))
    };
    let listed = || entry.internet_message_headers.iter().flatten();
    let from = entry.from.as_ref().and_then(bracketed);
    let to = entry.to_recipients.iter().flatten().find_map(bracketed);
    let fields = [
        ("Message-ID", entry.internet_message_id.as_deref()),
        ("From", from.as_deref()),
        ("To", to.as_deref()),
        ("Subject", entry.subject.as_deref()),
    ];
    let lacking = fields.into_iter().filter_map(|(name, value)| {
        let is_listed = listed().any(|header| header.name.eq_ignore_ascii_case(name));
        value.filter(|_| !is_listed).map(|value| (name, value))
    });
    let pairs = listed().map(|header| {
        let value = header.value.as_deref().unwrap_or_default();
        (header.name.as_str(), value)
    });
    received::header_block(pairs.chain(lacking))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::mail::received::Received;
    use serde_json::{Value, json};

    fn received(entry: Value) -> Received {
        let entry: Entry = serde_json::from_value(entry).unwrap();
        Received::parse(&header_block(&entry))
    }

    #[test]
    fn headers_and_fields_make_one_block() {
        let received = received(json!({
            "@odata.etag": "W/\"CQAAABYAAAB\"",
            "id": "AAMk=",
            "internetMessageId": "<r1@example.org>",
            "subject": "Re: Grüße",
            "receivedDateTime": "2026-01-02T03:04:05Z",
            "from": {"emailAddress": {"name": "Bob", "address": "bob@example.org"}},
            "toRecipients": [
                {"emailAddress": {"address": "ada@example.com"}},
                {"emailAddress": {"address": "x@example.com"}},
            ],
            "internetMessageHeaders": [
                {"name": "In-Reply-To", "value": "<m2@example.com>"},
                {"name": "References", "value": "<m1@example.com>\r\n <m2@example.com>"},
                {"name": "Auto-Submitted", "value": "no"},
            ],
        }));
        assert_eq!(
            received,
            Received {
                message_id: Some("<r1@example.org>".to_owned()),
                answers: vec!["<m2@example.com>".to_owned(), "<m1@example.com>".to_owned()],
                from: "bob@example.org".to_owned(),
                to: "ada@example.com".to_owned(),
                subject: "Re: Grüße".to_owned(),
                automatic: false,
                bounce: None,
            }
        );
    }

    #[test]
    fn no_value_makes_a_header_of_its_own() {
        let received = received(json!({
            "subject": "a\r\nIn-Reply-To: <forged@example.com>",
            "from": {"emailAddress": {"address": "b@x.org>\r\nAuto-Submitted: x"}},
            "internetMessageHeaders": [
                {"name": "X-A", "value": "b\r\nReferences: <forged@example.com>\r\n\r\n"},
                {"name": "X: y\r\nReferences", "value": "<forged@example.com>"},
                {"name": "", "value": "x"},
                {"name": "Message-ID", "value": "<m@x.org>"},
            ],
        }));
        assert_eq!(received.answers, Vec::<String>::new());
        assert_eq!(received.message_id.as_deref(), Some("<m@x.org>"));
        assert!(!received.automatic);
    }

    #[test]
    fn an_entry_with_nothing() {
        assert_eq!(
            received(json!({"id": "x", "subject": null, "from": null})),
            Received::default()
        );
    }
}
