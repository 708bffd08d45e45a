//! Headers for the gateway alone are read, and taken off.

use super::*;

#[test]
fn no_client_says_the_log_id() {
    let content = "From: a@example.com\r\nX-Mailgate-Id: log_00000000000000000000000000\r\nx-mailgate-id : x\r\n\r\nX-Mailgate-Id: body\r\n";
    let read = read(content, &["b@example.org"]).unwrap();
    let id = read.prepared("").id;
    let sent = sent(&read);
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        head.to_lowercase().matches("x-mailgate-id").count(),
        1,
        "{head}"
    );
    assert!(
        head.contains(&format!("\r\nX-Mailgate-Id: {id}\r\n")),
        "{head}"
    );
    assert_eq!(body, "X-Mailgate-Id: body\r\n");
}

#[test]
fn bcc_goes_in_all_its_forms() {
    for bcc in [
        "Bcc: hidden@example.org\r\n",
        "BCC : hidden@example.org\r\n",
        "bcc:\r\n hidden@example.org,\r\n\tother@example.org\r\n",
        "Bcc: hidden@example.org\r\nbcc: hidden2@example.org\r\n",
        "Bcc:\r\n",
        "Resent-Bcc: hidden@example.org\r\n",
    ] {
        for (before, after) in [
            ("", "From: a@example.com\r\nTo: b@example.org\r\n"),
            ("From: a@example.com\r\n", "To: b@example.org\r\n"),
            ("From: a@example.com\r\nTo: b@example.org\r\n", ""),
        ] {
            let content = format!("{before}{bcc}{after}\r\nBcc: stays, it is body\r\n");
            let sent = sent(&read(&content, &["hidden@example.org"]).unwrap());
            assert!(
                sent.ends_with(&format!("{before}{after}\r\nBcc: stays, it is body\r\n")),
                "{content}\n---\n{sent}"
            );
        }
    }
}

#[test]
fn a_time_to_leave_is_read_and_taken_off() {
    // `at` is 2023-11-14T22:13:20Z.
    let with = |headers: &str| {
        let content = format!(
            "From: a@example.com\r\n{headers}Subject: x\r\n\r\nX-Mailgate-Send-At: body\r\n"
        );
        read(&content, &["x@example.org"])
    };
    for header in [
        "X-Mailgate-Send-At: 2023-11-15T09:00:00+01:00\r\n",
        "x-mailgate-send-at :\r\n\t2023-11-15T08:00:00Z\r\n",
        "X-MAILGATE-SEND-AT: Wed, 15 Nov 2023 08:00:00 +0000\r\n",
    ] {
        let read = with(header).unwrap();
        let at = read.send_at.unwrap().time().to_rfc3339();
        assert_eq!(at, "2023-11-15T08:00:00+00:00", "{header}");
        let sent = sent(&read);
        let rest = "From: a@example.com\r\nSubject: x\r\n\r\nX-Mailgate-Send-At: body\r\n";
        assert!(sent.ends_with(rest), "{sent}");
    }
    assert_eq!(with("").unwrap().send_at, None);
    // Whether it has passed is checked after its idempotency key.
    let past = with("X-Mailgate-Send-At: 2023-11-14T22:13:20Z\r\n").unwrap();
    assert!(past.send_at.is_some());
    let good = "X-Mailgate-Send-At: 2023-11-15T09:00:00Z\r\n";
    for (headers, error) in [
        (format!("{good}{good}"), RawMessageError::SendAtTwice),
        (
            "X-Mailgate-Send-At:\r\n".to_owned(),
            RawMessageError::SendAt(SendAtError::NoTime),
        ),
        (
            "X-Mailgate-Send-At: 2024-11-14T22:13:20Z\r\n".to_owned(),
            RawMessageError::SendAt(SendAtError::TooFar),
        ),
    ] {
        let refused = with(&headers).map(|_| ());
        assert_eq!(refused, Err(error), "{headers}");
    }
}

#[test]
fn metadata_is_read_and_taken_off() {
    let content = "From: a@example.com\r\nX-Mailgate-Metadata-Order.ID: 4711\r\n\
                   x-mailgate-METADATA-name :\r\n =?utf-8?q?Gr=C3=BC?= =?utf-8?b?w59l?=\r\n\tan alle\r\n\
                   X-Mailgate-Metadata-empty:\r\nSubject: x\r\n\r\nX-Mailgate-Metadata-body: x\r\n";
    let read = read(content, &["x@example.org"]).unwrap();
    let metadata = &read.prepared.summary.metadata;
    let expected = "{\"Order.ID\":\"4711\",\"empty\":\"\",\"name\":\"Grüße an alle\"}";
    assert_eq!(metadata.to_json().as_deref(), Some(expected));
    let sent = sent(&read);
    let rest = "From: a@example.com\r\nSubject: x\r\n\r\nX-Mailgate-Metadata-body: x\r\n";
    assert!(sent.ends_with(rest), "{sent}");
    assert!(!sent.contains("4711"), "{sent}");
}

#[test]
fn metadata_out_of_bounds_is_refused() {
    let many: Vec<String> = (0..21)
        .map(|number| format!("X-Mailgate-Metadata-K{number}: x\r\n"))
        .collect();
    for (headers, error) in [
        (many.concat(), InvalidMetadata::TooMany),
        (
            "X-Mailgate-Metadata-: x\r\n".to_owned(),
            InvalidMetadata::Key,
        ),
        (
            "X-Mailgate-Metadata-a/b: x\r\n".to_owned(),
            InvalidMetadata::Key,
        ),
        (
            format!("X-Mailgate-Metadata-{}: x\r\n", "k".repeat(41)),
            InvalidMetadata::Key,
        ),
        (
            "X-Mailgate-Metadata-a: x\r\nx-mailgate-metadata-A: y\r\n".to_owned(),
            InvalidMetadata::Twice,
        ),
        (
            format!("X-Mailgate-Metadata-a: {}\r\n", "x".repeat(501)),
            InvalidMetadata::TooLong,
        ),
        (
            "X-Mailgate-Metadata-a: =?utf-8?q?a=07b?=\r\n".to_owned(),
            InvalidMetadata::Control,
        ),
    ] {
        let content = format!("From: a@example.com\r\n{headers}\r\nx\r\n");
        let refused = read(&content, &["x@example.org"]).map(|_| ());
        assert_eq!(refused, Err(RawMessageError::Metadata(error)), "{headers}");
    }
}
