//! The text of each notice.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn due(minor_units: i64, currency: &str) -> AmountDue {
    AmountDue {
        minor_units,
        currency: currency.to_owned(),
    }
}

#[test]
fn a_currency_is_three_letters() {
    let smuggled = "eur\n\nPay at https://evil.example";
    assert_eq!(due(500, smuggled).with_code(), "5.00 EUR");
    assert_eq!(due(500, "\u{202e}").with_code(), "5.00 ");
}

#[test]
fn amounts_have_the_digits_of_their_currency() {
    for (minor_units, currency, expected) in [
        (500, "eur", "5.00 EUR"),
        (1_234_507, "usd", "12345.07 USD"),
        (0, "usd", "0.00 USD"),
        (-5, "usd", "-0.05 USD"),
        (500, "jpy", "500 JPY"),
        (1_500, "KWD", "1.500 KWD"),
        (500, "eur\r\n\0Bcc: eve@example.com", "5.00 EUR"),
        (i64::MIN, "jpy", "-9223372036854775808 JPY"),
    ] {
        assert_eq!(due(minor_units, currency).with_code(), expected);
    }
}

#[test]
fn a_change_of_the_address_says_what_to_do_and_nothing_of_the_owner_to_strangers() {
    let notice = |step| Notice::EmailChange {
        step,
        id: uuid::Uuid::nil(),
        former_email: "ada@evil.example".to_owned(),
        email: "ada@evi\u{4cf}.example".to_owned(),
        at: DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
        address: Some(IpAddr::from([203, 0, 113, 7])),
    };
    let link = "https://portal.example/portal/email-change/x";
    for (step, words, link) in [
        (
            EmailChangeStep::Confirm,
            "Follow the link within 24 hours, until 15 November 2023 at 22:13 UTC",
            Some(link),
        ),
        (
            EmailChangeStep::Requested,
            "follow the link to stop the change",
            Some(link),
        ),
        (
            EmailChangeStep::Changed,
            "to take this address back",
            Some(link),
        ),
        (EmailChangeStep::Changed, "Or ask the operator", None),
        (
            EmailChangeStep::ChangedAgain,
            "only the one before it",
            None,
        ),
        (EmailChangeStep::Restored, "as it was before", None),
        (EmailChangeStep::Set, "ask the operator", None),
    ] {
        let written = write(&notice(step), "ACME", link);
        assert!(written.text.contains(words), "{}", written.text);
        assert_eq!(
            written.text.contains("https://"),
            link.is_some(),
            "{}",
            written.text
        );
        // An unconfirmed address gets no chosen text; the owner sees the actual domain.
        let whole = format!("{} {}", written.subject, written.text);
        let is_of_owner = step != EmailChangeStep::Confirm;
        for theirs in ["ACME", "203.0.113.7", "(the domain xn--"] {
            assert_eq!(whole.contains(theirs), is_of_owner, "{theirs}: {whole}");
        }
    }
}

#[test]
fn a_renewal_leads_only_where_the_reader_gets_in() {
    let page = "https://portal.example/portal/sign-in";
    for (reader, page, words) in [
        (
            RenewalReader::Established,
            Some(page),
            "Have a link mailed to this address",
        ),
        (RenewalReader::Established, None, "Ask the operator"),
        (RenewalReader::New, Some(page), "Ask the operator"),
        (
            RenewalReader::Former,
            Some(page),
            "take it back by the link in the mail",
        ),
        (RenewalReader::Former, None, "Ask the operator"),
    ] {
        let notice = Notice::ApiSecretRenewed {
            at: DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
            address: None,
            to: None,
            reader,
        };
        let written = write(&notice, "ACME", page);
        assert!(written.text.contains(words), "{}", written.text);
        let leads = written.text.contains("https://");
        let signs_in = page.is_some() && reader == RenewalReader::Established;
        assert_eq!(leads, signs_in, "{}", written.text);
    }
}

#[test]
fn each_kind_says_what_it_is_about_in_both_parts() {
    let link = "https://pay.example/in_1?a=1&b=2";
    let end = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
    for (notice, subject, both, only_text, only_html) in [
        (
            Notice::PaymentFailed {
                amount_due: due(500, "eur"),
                payment_url: Some(link.to_owned()),
                next_attempt: Some(end),
            },
            "Payment failed: sending is blocked for \"ACME\"",
            vec!["5.00 EUR", "14 November 2023 at 22:13 UTC"],
            "See the invoice: https://pay.example/in_1?a=1&b=2\n",
            "href=\"https://pay.example/in_1?a=1&amp;b=2\"",
        ),
        (
            Notice::PaymentActionRequired {
                amount_due: due(500, "eur"),
                payment_url: Some(link.to_owned()),
            },
            "Please confirm the payment for \"ACME\"",
            vec!["5.00 EUR", "follow the link"],
            "Confirm the payment: https://pay.example/in_1?a=1&b=2\n",
            ">Confirm the payment</a>",
        ),
        (
            Notice::TrialWillEnd {
                trial_end: end,
                has_payment_method: false,
            },
            "The trial of \"ACME\" ends soon",
            vec!["14 November 2023", "no payment method"],
            "The trial of \"ACME\"",
            "The trial of &quot;ACME&quot;",
        ),
    ] {
        let words = write(&notice, "ACME", Some("https://portal.example/billing"));
        assert_eq!(words.subject, subject);
        for part in both {
            assert!(words.text.contains(part), "{part}: {}", words.text);
            assert!(words.html.contains(part), "{part}: {}", words.html);
        }
        assert!(words.text.contains(only_text), "{}", words.text);
        assert!(words.html.contains(only_html), "{}", words.html);
        let page = "Billing page: https://portal.example/billing\n";
        assert!(words.text.ends_with(page), "{}", words.text);
        let page = "<a href=\"https://portal.example/billing\">Billing page</a>";
        assert!(words.html.contains(page), "{}", words.html);
    }
}

#[test]
fn names_and_links_are_text() {
    let notice = Notice::PaymentActionRequired {
        amount_due: due(500, "<b>"),
        payment_url: Some("javascript:alert(1)".to_owned()),
    };
    let words = write(&notice, "<i>A\r\nBcc: eve@example.com</i>", None);
    assert!(!words.html.contains("<i>") && !words.html.contains("<b>"));
    assert!(!words.html.contains("javascript:") && !words.text.contains("javascript:"));
    assert!(!words.subject.contains(['\r', '\n']), "{}", words.subject);
}

#[test]
fn a_suspension_says_why_and_whom_to_ask() {
    let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
    let reason = "Spam complaints, see https://help.example/17?a=1&b=2 <today>";
    let notice = Notice::AccountSuspended {
        at,
        reason: reason.to_owned(),
    };
    let page = Some("https://portal.example/sign-in");
    let written = write(&notice, "ACME", page);
    assert_eq!(written.subject, "\"ACME\" is suspended");
    for words in [
        reason,
        "14 November 2023 at 22:13 UTC",
        "contact the operator",
        "Sign in: https://portal.example/sign-in",
    ] {
        assert!(written.text.contains(words), "{words} in {}", written.text);
    }
    assert!(!written.html.contains("<today>"), "{}", written.html);
    let resumed = write(&Notice::AccountResumed { at }, "ACME", None);
    assert_eq!(resumed.subject, "\"ACME\" is no longer suspended");
    assert!(!resumed.text.contains("https://"), "{}", resumed.text);
}
