//! Messages that real programs write, converted to pieces.

use super::*;

const PDF: &[u8] = b"%PDF-1.7 --b x\r\n--b--\r\n--n\r\n\xe2\xe3\xcf";

/// A message with a text and a file; each test changes one detail, as real messages have it.
fn with_pdf(encoding: &str, changed: impl Fn(String) -> String) -> String {
    let encoded = STANDARD.encode(PDF);
    let (first, second) = encoded.split_at(encoded.len() / 2);
    changed(format!(
        "From: a@x.org\r\nTo: b@x.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain\r\n\r\nhello x--b y\r\n---b\r\n--bb\r\n\
         --b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=r.pdf\r\n\
         Content-Transfer-Encoding: {encoding}\r\n\r\n{first}\r\n{second}\r\n--b--\r\n"
    ))
}

/// jhillyerd/enmime#156, MailCore/mailcore2#122, jens-maus/yam#232, zendframework/zf1#486: programs write these, and
/// all mail clients read them.
#[test]
fn files_arrive_however_carelessly_they_are_written() {
    let text = "hello x--b y\r\n---b\r\n--bb";
    let same: fn(String) -> String = |mime| mime;
    for (encoding, changed) in [
        ("base64", same),
        ("BASE64", same),
        ("\"base64\"", same),
        ("base64;", same),
        ("base64; x=y", same),
        ("BASE64 (of RFC 2045)", same),
        (" base64 \t", same),
        // Its closing delimiter is missing, or written as an opening one.
        ("base64", |mime| mime.replace("\r\n--b--\r\n", "\r\n")),
        ("base64", |mime| mime.replace("\r\n--b--\r\n", "")),
        ("base64", |mime| mime.replace("--b--\r\n", "--b\r\n")),
        ("base64", |mime| mime.replace("--b--\r\n", "--b-- \t")),
        // Characters outside the base64 alphabet.
        ("base64", |mime| mime.replace("JVBE", "JV*BE")),
        ("base64", |mime| mime.replace("JVBE", " \tJV!BE\u{a0}")),
        // A text without a type.
        ("base64", |mime| mime.replace("text/plain", "")),
        // Its padding is wrong.
        ("base64", |mime| mime.replace("=\r\n--b", "\r\n--b")),
        ("base64", |mime| mime.replace("=\r\n--b", "====\r\n--b")),
        // A line of blanks continues the field before it.
        ("base64", |mime| {
            mime.replace("plain\r\n\r\n", "plain\r\n \t\r\nX-More: 1\r\n\r\n")
        }),
        ("base64", |mime| {
            mime.replace(
                "To: b@x.org\r\n",
                "Subject: S\r\n \r\n\t\r\nTo: b@x.org\r\n",
            )
        }),
        ("base64", |mime| mime.replace("r.pdf\r\n", "r.pdf\r\n \r\n")),
    ] {
        let mime = with_pdf(encoding, changed);
        let draft = converted(&mime, &["b@x.org"]);
        let body = draft.fields["body"]["content"].as_str().unwrap();
        assert_eq!(body.trim_end(), text, "{mime}");
        assert_eq!(files(&draft), [("r.pdf", PDF)], "{mime}");
        let to = &draft.fields["toRecipients"][0]["emailAddress"]["address"];
        assert_eq!(to, "b@x.org", "{mime}");
    }
}

/// The parser removes the text before a soft break at a part's end, and panics if there is none.
#[test]
fn soft_breaks_at_the_end_take_nothing_away() {
    for (content, expected) in [
        ("abc", "abc"),
        ("abc=", "abc"),
        ("abc=\r\n=", "abc"),
        ("abc =20= \t", "abc  "),
        ("abc=3D", "abc="),
        ("abc\r\n=", "abc\r\n"),
        ("x==y =", "x==y "),
        ("a=b=\r\n=c3=ZZ", "a=b\u{c3}=ZZ"),
        ("abc= \t\r\nd", "abcd"),
        ("=", ""),
        ("=\r\n=", ""),
        ("a=", "a"),
        ("", ""),
    ] {
        for kind in ["application/octet-stream", "text/csv"] {
            for end in ["\r\n--b--\r\n", "\r\n--b\r\n\r\n\r\n--b--", ""] {
                let mime = format!(
                    "From: a@x.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nHi\r\n\
                     --b\r\nContent-Type: {kind}\r\nContent-Disposition: attachment; filename=f\r\n\
                     Content-Transfer-Encoding: quoted-printable\r\n\r\n{content}{end}"
                );
                let draft = converted(&mime, &["b@x.org"]);
                let expected = expected.replace('\u{c3}', "\u{fffd}");
                let content = String::from_utf8_lossy(files(&draft)[0].1).into_owned();
                assert_eq!(content, expected, "{mime}");
            }
        }
    }
}

#[test]
fn what_can_not_be_taken_apart_is_refused() {
    let unchanged = |mime: String| mime;
    for (mime, words) in [
        (with_pdf("x-uuencode", unchanged), "5.6.3"),
        (with_pdf("uuencode", unchanged), "the encoding uuencode"),
        (with_pdf("base32", unchanged), "5.6.3"),
        (
            with_pdf("base64", |mime| {
                mime.replace("boundary=b\r\n", "boundary=c\r\n")
            }),
            "the boundary of a multipart",
        ),
        (
            with_pdf("base64\r\nContent-Transfer-Encoding: 7bit", unchanged),
            "it is unclear",
        ),
        (
            with_pdf("base64\r\nContent-Type: text/plain", unchanged),
            "it is unclear",
        ),
        (
            with_pdf("base64", |mime| mime.replace("JVBE", "JVBE=====A")),
            "isn't",
        ),
        (
            with_pdf("base64", |mime| mime.replace("JVBE", "JVBERRR")),
            "isn't",
        ),
    ] {
        let refused = convert(mime.as_bytes(), &["b@x.org".to_owned()]).unwrap_err();
        assert!(refused.text.contains(words), "{}: {mime}", refused.text);
    }
}

/// RFC 2046 §5.1.2: the outer delimiter ends the inner parts.
#[test]
fn an_outer_delimiter_ends_what_is_within() {
    let encoded = STANDARD.encode(PDF);
    for (inner, end) in [
        ("n", ""),
        ("n", "--n--\r\n"),
        ("b1", ""),
        ("-", ""),
        ("x--", ""),
    ] {
        let mime = format!(
            "From: a@x.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
             --b\r\nContent-Type: multipart/alternative; boundary=\"{inner}\"\r\n\r\n\
             --{inner}\r\nContent-Type: text/plain\r\n\r\nplain\r\n\
             --{inner}\r\nContent-Type: text/html\r\n\r\n<p>--b rich</p>\r\n{end}\
             --b\r\nContent-Type: application/pdf; name=r.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n\
             {encoded}\r\n--b--\r\n"
        );
        let draft = converted(&mime, &["b@x.org"]);
        let body = &draft.fields["body"];
        assert_eq!(body["content"], "<p>--b rich</p>", "{mime}");
        assert_eq!(body["contentType"], "html");
        assert_eq!(files(&draft), [("r.pdf", PDF)], "{mime}");
    }
}

/// A one-letter time zone is valid (RFC 5322 §4.3).
#[test]
fn a_date_hides_no_other_field() {
    for date in [
        "Sun, 1 Mar 2026 12:00:00 Z",
        "Sun, 1 Mar 2026 12:00:00 +d",
        "Z",
        "today",
        "",
    ] {
        for last in ["", "X-Last: 1\r\n"] {
            let draft = converted(
                &format!(
                    "Date: {date}\r\nFrom: a@x.org\r\nResent-Date: {date}\r\nSubject: S\r\n\
                     Date: {date}\r\nTo: b@x.org\r\n{last}Date: {date}\r\n\r\nHi,\r\nBcc: eve@x.org\r\n\r\nyours\r\n"
                ),
                &["b@x.org"],
            );
            assert_eq!(draft.fields["subject"], "S", "{date}");
            assert_eq!(draft.fields["bccRecipients"], Value::Null, "{date}");
            assert!(draft.from.is_some(), "{date}");
            let to = &draft.fields["toRecipients"][0]["emailAddress"]["address"];
            assert_eq!(to, "b@x.org", "{date}");
            let body = draft.fields["body"]["content"].as_str().unwrap();
            assert!(body.starts_with("Hi,\r\nBcc:"), "{date}: {body}");
        }
    }
}

#[test]
fn texts_are_read_as_others_read_them() {
    for (charset, octets, expected) in [
        ("", &b"J\xf6rg"[..], "Jörg"),
        ("", "Jörg".as_bytes(), "Jörg"),
        ("; charset=us-ascii", "Jörg".as_bytes(), "Jörg"),
        ("; charset=US-ASCII", b"J\xf6rg", "Jörg"),
        ("; charset=ANSI_X3.4-1968", "Jörg".as_bytes(), "Jörg"),
        ("; charset=unknown-8bit", "Jörg".as_bytes(), "Jörg"),
        ("; charset=x-unknown", b"J\xf6rg", "Jörg"),
        ("; charset=utf-8", "Jörg".as_bytes(), "Jörg"),
        ("; charset=iso-8859-1", b"J\xf6rg", "Jörg"),
        ("; charset=cp949", b"\xb0\xa1", "가"),
        ("; charset=ks_c_5601-1987", b"\xb0\xa1", "가"),
        ("; charset=cp932", b"\x82\xa0", "あ"),
        ("; charset=iso-2022-jp", b"\x1b$B$\"\x1b(B", "あ"),
    ] {
        let head = format!("From: a@x.org\r\nContent-Type: text/plain{charset}\r\n\r\n");
        let mime = [head.as_bytes(), octets].concat();
        let draft = convert(&mime, &["b@x.org".to_owned()]).unwrap();
        assert_eq!(draft.fields["body"]["content"], expected, "{charset}");
    }
}

#[test]
fn a_quoted_header_is_text_and_the_extended_name_counts() {
    let draft = converted(
        "From: a@x.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\n\r\nIt had:\r\nContent-Type: message/rfc822\r\nContent-Type: multipart/digest; boundary=b\r\n\
         --b\r\nContent-Type: application/octet-stream\r\n\
         Content-Disposition: attachment; filename=\"Gr.pdf\"; filename*=utf-8''Gr%C3%BC.pdf\r\n\r\nx\r\n\
         --b\r\nContent-Type: text/x-log\r\n\
         Content-Disposition: attachment; filename*=utf-8''Gr%C3%BC.log; filename=Gr.log\r\n\r\nContent-Type: message/rfc822\r\n\
         --b\r\nContent-Type: text/x-log\r\n\
         Content-Disposition: attachment; filename=\"r.log\"; filename*0*=utf-8''r%C3%A4; filename*1*=.log\r\n\r\ny\r\n\
         --b--\r\n",
        &["b@x.org"],
    );
    let text =
        "It had:\r\nContent-Type: message/rfc822\r\nContent-Type: multipart/digest; boundary=b";
    assert_eq!(draft.fields["body"]["content"], text);
    let log: &[u8] = b"Content-Type: message/rfc822";
    let expected = [
        ("Grü.pdf", &b"x"[..]),
        ("Grü.log", log),
        ("r.log.log", b"y"),
    ];
    assert_eq!(files(&draft), expected);
}
