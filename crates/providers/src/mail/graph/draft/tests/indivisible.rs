//! Messages that can be taken to pieces, and those that would lose by it.

use std::fmt::Write;

use super::*;

/// A multipart with these parts, each with its own headers.
fn multipart(subtype: &str, parts: &[&str]) -> String {
    let boundary = format!("b{}", subtype.len());
    let parts: String = (parts.iter()).fold(String::new(), |mut all, part| {
        let _ = write!(all, "--{boundary}\r\n{part}\r\n");
        all
    });
    format!(
        "Content-Type: multipart/{subtype}; boundary={boundary}\r\n\r\n{parts}--{boundary}--\r\n"
    )
}

const TEXT: &str = "Content-Type: text/plain\r\n\r\nHi\r\n";
const HTML: &str = "Content-Type: text/html\r\n\r\n<p>Hi</p>\r\n";
const INVITATION: &str = "Content-Type: text/calendar; method=REQUEST\r\n\r\nBEGIN:VCALENDAR\r\n";
const SIGNATURE: &str = "Content-Type: application/pgp-signature\r\n\r\nx\r\n";

// RFC 1847, RFC 8551, RFC 6047 §2.4, RFC 3462.
#[test]
fn what_is_no_text_with_files_is_refused() {
    let signed = multipart("signed", &[TEXT, SIGNATURE]);
    let file = "Content-Disposition: attachment; filename=a\r\n";
    for (content, lost) in [
        (signed.clone(), "multipart/signed"),
        (multipart("mixed", &[&signed, TEXT]), "multipart/signed"),
        (
            signed.replace("multipart/signed", "Multipart/SIGNED"),
            "multipart/signed",
        ),
        (multipart("encrypted", &[TEXT, TEXT]), "multipart/encrypted"),
        (multipart("report", &[TEXT, TEXT]), "multipart/report"),
        (multipart("form-data", &[TEXT]), "multipart/form-data"),
        (
            multipart("appledouble", &[TEXT, TEXT]),
            "multipart/appledouble",
        ),
        (multipart("parallel", &[TEXT, TEXT]), "multipart/parallel"),
        (
            multipart("x-mixed-replace", &[TEXT]),
            "multipart/x-mixed-replace",
        ),
        (
            "Content-Type: application/pkcs7-mime; smime-type=enveloped-data\r\n\r\nx".to_owned(),
            "application/pkcs7-mime",
        ),
        (
            format!("{file}Content-Type: application/x-pkcs7-mime; name=smime.p7m\r\n\r\nx"),
            "application/x-pkcs7-mime",
        ),
        (
            multipart(
                "mixed",
                &["Content-Type: application/pkcs7-mime\r\n\r\nx\r\n", TEXT],
            ),
            "application/pkcs7-mime",
        ),
        (INVITATION.to_owned(), "text/calendar"),
        (
            multipart("alternative", &[TEXT, HTML, INVITATION]),
            "text/calendar",
        ),
        (
            multipart(
                "mixed",
                &[&multipart("alternative", &[TEXT, INVITATION]), TEXT],
            ),
            "text/calendar",
        ),
        (multipart("mixed", &[TEXT, INVITATION]), "text/calendar"),
        (INVITATION.replace("; method=REQUEST", ""), "text/calendar"),
        (
            INVITATION
                .replace("REQUEST", "reply")
                .replace("text/calendar", "TEXT/Calendar"),
            "text/calendar",
        ),
        (
            multipart(
                "alternative",
                &[TEXT, "Content-Type: text/x-amp-html\r\n\r\nx\r\n", HTML],
            ),
            "text/x-amp-html",
        ),
        (
            multipart(
                "related",
                &["Content-Type: application/xop+xml\r\n\r\nx\r\n", TEXT],
            ),
            "application/xop+xml",
        ),
    ] {
        let message = format!("From: a@x.org\r\nMIME-Version: 1.0\r\n{content}");
        let refused = convert(message.as_bytes(), &["b@x.org".to_owned()])
            .map(|_| ())
            .unwrap_err();
        assert!(
            refused.text.starts_with("5.6.3 "),
            "{}: {content}",
            refused.text
        );
        assert!(
            refused.text.contains(&format!(" its {lost} would ")),
            "{}: {content}",
            refused.text
        );
    }
}

#[test]
fn text_with_files_is_taken_to_pieces() {
    let signed = multipart("signed", &[TEXT, SIGNATURE]);
    let file = "Content-Disposition: attachment; filename=a\r\n";
    let image = "Content-Type: image/png\r\nContent-ID: <i>\r\n\r\nx\r\n";
    let related = multipart("related", &[HTML, image]);
    let alternative = multipart("alternative", &[TEXT, &related]);
    let enclosed = format!("Content-Type: message/rfc822\r\n\r\nFrom: b@x.org\r\n{signed}");
    for (content, files) in [
        (TEXT.to_owned(), 0),
        (alternative.clone(), 1),
        (
            multipart(
                "mixed",
                &[&alternative, TEXT, &format!("{file}{INVITATION}")],
            ),
            2,
        ),
        (
            multipart("alternative", &[TEXT, HTML, &format!("{file}{INVITATION}")]),
            1,
        ),
        (
            multipart(
                "mixed",
                &[
                    TEXT,
                    &format!("{file}Content-Type: application/pkcs7-mime\r\n\r\nx"),
                ],
            ),
            1,
        ),
        (
            multipart(
                "mixed",
                &[TEXT, "Content-Type: application/pkcs7-signature\r\n\r\nx"],
            ),
            1,
        ),
        // A message within is one file, whole.
        (multipart("mixed", &[TEXT, &enclosed]), 1),
        ("Content-Type: application/pdf\r\n\r\nx".to_owned(), 1),
        ("Subject: no type\r\n\r\nx".to_owned(), 0),
    ] {
        let draft = converted(&format!("From: a@x.org\r\n{content}"), &["b@x.org"]);
        assert_eq!(draft.attachments.len(), files, "{content}");
    }
}
