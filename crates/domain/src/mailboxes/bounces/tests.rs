//! Which message a bounce is about, and what is stored of it.

use proptest::prelude::*;

use super::found::{ADDRESS_BYTES, DIAGNOSTIC_BYTES, RECIPIENTS, is_status, key_of};
use super::original::original_of;
use super::*;
use mailgate_bounces::BouncedRecipient;
use mailgate_storage::bounces::Original;
use mailgate_types::ids::uuid_at;
use mailgate_types::metadata::Metadata;

fn original(id: &str, second: i64, to: &str) -> Original {
    let at = DateTime::from_timestamp(second, 0).unwrap_or_default();
    Original {
        log: LogId(uuid_at(at)),
        message_id: Some(id.to_owned()),
        from_address: "ada@example.com".to_owned(),
        to_address: to.to_owned(),
        cc_addresses: vec!["Cc@example.com".to_owned()],
        bcc_addresses: vec!["bcc@example.com".to_owned()],
        subject: "Hi".to_owned(),
        metadata: Metadata::default(),
    }
}

fn recipient(address: &str) -> BouncedRecipient {
    BouncedRecipient {
        address: address.to_owned(),
        bounce_type: BounceType::Permanent,
        status: Some("5.1.1".to_owned()),
        diagnostic: None,
    }
}

fn bounce(ids: &[&str], logs: &[LogId]) -> Bounce {
    Bounce {
        message_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        log_ids: logs.iter().map(ToString::to_string).collect(),
        recipients: vec![recipient("bob@example.com")],
    }
}

#[test]
fn the_message_that_it_is_about() {
    let originals = [
        original("<a@x>", 3, "carol@example.com"),
        original("<a@x>", 2, "x@y.example, BOB@example.com"),
        original("<a@x>", 1, "bob@example.com"),
        original("<b@x>", 9, "bob@example.com"),
    ];
    let about = |ids: &[&str], logs: &[LogId], address: &str| {
        original_of(&bounce(ids, logs), &recipient(address), &originals)
            .and_then(|found| originals.iter().position(|original| original == found))
    };
    let logs = originals.each_ref().map(|original| original.log);
    // The most certain Message-ID first.
    assert_eq!(about(&["<z@x>", "<b@x>", "<a@x>"], &[], "x"), Some(3));
    // Of several: the recipient's, the latest, the one that is named.
    assert_eq!(about(&["<a@x>"], &[], "bob@example.com"), Some(1));
    assert_eq!(about(&["<a@x>"], &[], "forwarded@example.net"), Some(0));
    assert_eq!(about(&["<a@x>"], &[logs[2]], "carol@example.com"), Some(2));
    // By the log id alone, also within a Message-ID of our own.
    assert_eq!(about(&["<z@x>"], &[logs[3]], "x"), Some(3));
    assert_eq!(about(&[&format!("<{}@x>", logs[1])], &[], "x"), Some(1));
    assert_eq!(about(&["<z@x>"], &[], "bob@example.com"), None);
}

#[test]
fn whom_it_was_sent_to() {
    let original = original("<a@x>", 1, "Bob@example.com, \"a,b\"@example.com");
    for (address, given) in [
        ("bob@EXAMPLE.com", Some("Bob@example.com")),
        ("\"bob\"@example.com", Some("Bob@example.com")),
        ("cc@example.com", Some("Cc@example.com")),
        ("BCC@example.com", Some("bcc@example.com")),
        ("other@example.com", None),
        ("", None),
    ] {
        assert_eq!(original.recipient(address), given, "{address}");
    }
}

#[test]
fn notifications_without_an_id_differ_by_what_they_say() {
    let received = Received::default();
    let (one, mut other) = (bounce(&["<a@x>"], &[]), bounce(&["<a@x>"], &[]));
    assert_eq!(key_of(&received, &one), key_of(&received, &other));
    other.recipients[0].bounce_type = BounceType::Temporary;
    assert_ne!(key_of(&received, &one), key_of(&received, &other));
    let named = Received {
        message_id: Some("<n@x>".to_owned()),
        ..Received::default()
    };
    assert_eq!(key_of(&named, &one), key_of(&named, &other));
}

#[test]
fn status_codes() {
    for (text, is_one) in [
        ("5.1.1", true),
        ("4.0.999", true),
        ("5.123.456", true),
        ("5.1", false),
        ("5.1.1.1", false),
        ("5..1", false),
        ("5.1.x", false),
        ("5.1.1 (no)", false),
        ("5.1234.567", false),
        ("", false),
    ] {
        assert_eq!(is_status(text), is_one, "{text:?}");
    }
}

proptest! {
    #[test]
    fn whatever_it_says_is_bounded(
        address in "(?s).{0,600}",
        status in "(?s).{0,20}",
        diagnostic in "(?s).{0,2000}",
        recipients in 0_usize..300,
    ) {
        let mut hostile = bounce(&["<a@x>"], &[]);
        let one = BouncedRecipient {
            address,
            bounce_type: BounceType::Temporary,
            status: Some(status),
            diagnostic: Some(diagnostic),
        };
        hostile.recipients = vec![one; recipients];
        let originals = [original("<a@x>", 1, "bob@example.com")];
        let found: Vec<_> = found(&Received::default(), &hostile, &originals).collect();
        prop_assert!(found.len() <= RECIPIENTS);
        for Found { bounce, .. } in found {
            prop_assert!(bounce.recipient.len() <= ADDRESS_BYTES);
            prop_assert!(bounce.diagnostic.is_some_and(|text| text.len() <= DIAGNOSTIC_BYTES));
            prop_assert!(bounce.status.is_none_or(|status| is_status(&status)));
            prop_assert!(!bounce.recipient.contains(char::is_control));
        }
    }
}
