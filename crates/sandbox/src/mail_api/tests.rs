use super::*;

#[test]
fn headers_are_taken_off_with_their_folds() {
    let mime = b"Bcc: a@x.org,\r\n b@x.org\r\nTo: c@x.org\r\nBCC : d@x.org\r\nSubject: s\r\n\r\nBcc: body\r\n";
    let shown = without_headers(mime, &["bcc"]);
    assert_eq!(
        String::from_utf8_lossy(&shown),
        "To: c@x.org\r\nSubject: s\r\n\r\nBcc: body\r\n"
    );
    assert_eq!(without_headers(b"Bcc: x", &["bcc"]), b"");
}

#[test]
fn what_a_mailbox_may_send_as() {
    for (from, may) in [
        ("Ada <ADA@x.org>", true),
        ("ada.Alias@x.org", true),
        ("ada.pending@x.org", false),
        ("alias@x.org", false),
        ("bob.alias@x.org", false),
    ] {
        let mime = format!("From: {from}\r\nTo: b@x.org\r\n\r\n");
        assert_eq!(may_send("ada@x.org", mime.as_bytes()), may, "{from}");
    }
}

#[test]
fn recipients_of_all_three_headers_and_what_they_ask_for() {
    let mime = b"To: A <a@x.org>\r\nCc: g: Tempfail+1@x.org;\r\nBcc: limit@x.org\r\n\r\n";
    let named = recipients(mime);
    assert_eq!(named, ["a@x.org", "Tempfail+1@x.org", "limit@x.org"]);
    assert_eq!(wish(&named), Some(Wish::Later));
    assert_eq!(wish(&named[..1]), None);
}
