//! The fuzz target of the notices' texts.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::text::write;
use mailgate_types::email_change::EmailChangeStep;
use mailgate_types::fuzzing::{Input, is_printable};
use mailgate_types::notice::{AmountDue, Notice, RenewalReader};

/// Any amount, date, address and account name: none adds a line or markup.
pub fn notice_texts(data: &[u8]) {
    let mut input = Input::new(data);
    let mut whole = || i64::from_be_bytes(input.take(8).try_into().unwrap_or([0; 8]));
    let (minor_units, seconds) = (whole(), whole());
    let moment: DateTime<Utc> = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    let has_payment_method = input.flag();
    let text = String::from_utf8_lossy(input.rest()).into_owned();
    let mut parts = text.splitn(3, '\n');
    let mut part = || parts.next().unwrap_or_default().to_owned();
    let (currency, url, label) = (part(), part(), part());
    // Addresses are checked where they come in.
    let email = url.chars().filter(|it| !it.is_control()).collect();
    let amount_due = AmountDue {
        minor_units,
        currency,
    };
    for notice in [
        Notice::PaymentFailed {
            amount_due: amount_due.clone(),
            payment_url: Some(url.clone()),
            next_attempt: Some(moment),
        },
        Notice::PaymentActionRequired {
            amount_due,
            payment_url: Some(url),
        },
        Notice::TrialWillEnd {
            trial_end: moment,
            has_payment_method,
        },
        Notice::ApiSecretRenewed {
            at: moment,
            address: None,
            to: None,
            reader: RenewalReader::Established,
        },
        Notice::EmailChange {
            step: EmailChangeStep::Changed,
            id: Uuid::nil(),
            former_email: String::new(),
            email,
            at: moment,
            address: None,
        },
    ] {
        let words = write(&notice, &label, None);
        assert!(is_printable(&words.subject), "{:?}", words.subject);
        let tags = ["<script", "<img", "<iframe", "javascript:"];
        let html = words.html.to_ascii_lowercase();
        assert!(!tags.iter().take(3).any(|tag| html.contains(tag)), "{html}");
        assert!(!html.contains("href=\"javascript:"));
        let is_line = |letter: char| letter == '\n' || !letter.is_control();
        assert!(words.text.chars().all(is_line), "{:?}", words.text);
    }
}
