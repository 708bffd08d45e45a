#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;

mod pieces;

fn converted(mime: &str, recipients: &[&str]) -> Draft {
    let recipients: Vec<String> = recipients.iter().map(ToString::to_string).collect();
    convert(mime.as_bytes(), &recipients).unwrap()
}

/// A file's name and content.
fn files(draft: &Draft) -> Vec<(&str, &[u8])> {
    let files = draft.attachments.iter();
    files.map(|file| (&*file.name, &*file.content)).collect()
}

#[test]
fn who_is_not_quite_named_gets_a_blind_copy() {
    for (to, is_named) in [
        ("b@x.org", true),
        ("B@X.org", true),
        ("<\"b\"@x.org>", true),
        ("Bob <\"b@x.org>", false),
        ("\"!a\"b @x.org", false),
        ("b", false),
    ] {
        let draft = converted(
            &format!("From: a@x.org\r\nTo: {to}\r\n\r\nHi\r\n"),
            &["b@x.org"],
        );
        let blind = &draft.fields["bccRecipients"][0]["emailAddress"]["address"];
        assert_eq!(blind.is_null(), is_named, "{to}: {}", draft.fields);
    }
}

// A property's value has 4,000 bytes.
#[test]
fn a_long_thread_keeps_its_first_and_its_last_ids() {
    let id = |number: usize| format!("<{number}.{}@x.org>", "a".repeat(80));
    for count in [1, 2, 40, 42, 43, 44, 45, 60, 400] {
        let ids: Vec<String> = (0..count).map(id).collect();
        let folded = ids.join("\r\n ");
        let message = format!("From: a@x.org\r\nReferences: {folded}\r\n\r\nHi\r\n");
        let draft = converted(&message, &["b@x.org"]);
        let properties = draft.fields["singleValueExtendedProperties"]
            .as_array()
            .unwrap();
        let kept = properties[0]["value"].as_str().unwrap();
        let kept: Vec<&str> = kept.split(' ').collect();
        assert!(properties[0]["value"].as_str().unwrap().len() <= 4_000);
        assert!(kept.len() >= count.min(42), "{count}");
        assert_eq!(kept[0], ids[0]);
        assert_eq!(kept[1..], ids[count - kept.len() + 1..], "{count}");
    }
}

#[test]
fn fields_of_a_message() {
    let draft = converted(
        "Bcc: hidden@x.org\r\nReceived: by gateway\r\n\
         From: Ada <ada@x.org>\r\nTo: =?utf-8?q?B=C3=B6b?= <bob@x.org>,\r\n \"q q\"@x.org\r\n\
         Cc: friends: c@x.org, D <d@x.org>;\r\nReply-To: r@x.org\r\n\
         Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nMessage-ID: <m1@x.org>\r\n\
         In-Reply-To: <p2@x.org>\r\nReferences: <p1@x.org>\r\n\t<p2@x.org>\r\n\
         Importance: High\r\nX-One: 1\r\nx-two: a\r\n b\r\nX-MS-Exchange-Organization-SCL: -1\r\n\
         X-3: 3\r\nX-4: 4\r\nX-5: 5\r\nX-6: 6\r\n\
         List-Unsubscribe: <https://x.org/u>,\r\n <mailto:u@x.org>\r\n\
         List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\nAuto-Submitted: auto-generated\r\n\
         DKIM-Signature: v=1; b=xyz\r\nDate: Sun, 1 Mar 2026 12:00:00 +0000\r\n\
         Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
         Gr=FC=DFe\r\n",
        &[
            "bob@x.org",
            "\"q q\"@x.org",
            "C@x.org",
            "d@x.org",
            "hidden@x.org",
            "unnamed@x.org",
        ],
    );
    assert_eq!(draft.attachments, []);
    let address = |address: &str| json!({"emailAddress": {"address": address}});
    let property = |name: &str, value: &str| {
        let id = format!("String {{00020386-0000-0000-C000-000000000046}} Name {name}");
        json!({"id": id, "value": value})
    };
    assert_eq!(
        draft.fields,
        json!({
            "subject": "Grüße",
            "body": {"contentType": "text", "content": "Grüße\r\n"},
            "toRecipients": [
                {"emailAddress": {"name": "Böb", "address": "bob@x.org"}},
                address("\"q q\"@x.org"),
            ],
            "ccRecipients": [
                address("c@x.org"),
                {"emailAddress": {"name": "D", "address": "d@x.org"}},
            ],
            "bccRecipients": [address("hidden@x.org"), address("unnamed@x.org")],
            "replyTo": [address("r@x.org")],
            "internetMessageId": "<m1@x.org>",
            "importance": "high",
            "internetMessageHeaders": [
                {"name": "X-One", "value": "1"},
                {"name": "x-two", "value": "a b"},
                {"name": "X-3", "value": "3"},
                {"name": "X-4", "value": "4"},
                {"name": "X-5", "value": "5"},
            ],
            "singleValueExtendedProperties": [
                {"id": "String 0x1042", "value": "<p2@x.org>"},
                {"id": "String 0x1039", "value": "<p1@x.org> <p2@x.org>"},
                property("X-6", "6"),
                property("List-Unsubscribe", "<https://x.org/u>, <mailto:u@x.org>"),
                property("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
                property("Auto-Submitted", "auto-generated"),
            ],
        })
    );
}

#[test]
fn encoded_words_that_split_a_character_are_joined() {
    // RFC 2047 §6.2
    for (words, expected) in [
        (
            "=?UTF-8?Q?Gr=C3?= =?UTF-8?Q?=BC=C3?=\r\n =?utf-8?q?=9Fe?=",
            "Grüße",
        ),
        ("=?utf-8?b?R3LD?= =?utf-8?q?=BC=C3=9Fe?=", "Grüße"),
        ("=?utf-8?b?R3LDvM?= =?utf-8?b?OfZQ==?=", "Grüße"),
        ("=?iso-8859-1?q?Gr=FC?= =?utf-8?q?=C3=9Fe?=", "Grüße"),
        (
            "=?ISO-2022-JP?B?GyRCJCIbKEI=?= =?iso-2022-jp?B?GyRCJCQbKEI=?=",
            "\u{3042}\u{3044}",
        ),
        ("=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
    ] {
        let draft = converted(
            &format!(
                "From: {words} <ada@x.org>\r\nTo: {words} <bob@x.org>, Eve <eve@x.org>\r\nSubject: {words}\r\n\
                 Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n\r\nx\r\n\
                 --m\r\nContent-Type: application/pdf\r\n\
                 Content-Disposition: attachment; filename=\"{words}\"\r\n\r\nx\r\n--m--\r\n"
            ),
            &["bob@x.org", "eve@x.org"],
        );
        let fields = &draft.fields;
        assert_eq!(fields["subject"], expected, "{words}");
        let to = &fields["toRecipients"];
        assert_eq!(to[0]["emailAddress"]["name"], expected, "{words}");
        assert_eq!(to[1]["emailAddress"]["address"], "eve@x.org");
        let from = draft.from.unwrap();
        assert_eq!(from["emailAddress"]["name"], expected, "{words}");
        assert_eq!(draft.attachments[0].name, expected, "{words}");
    }
}

#[test]
fn a_header_that_would_be_lost_is_told_of() {
    let long = "y".repeat(4_001);
    let many: String = (0..51).fold(String::new(), |mut headers, number| {
        let _ = write!(headers, "List-{number}: x\r\n");
        headers
    });
    for (headers, name) in [
        ("Keywords: a\r\nKEYWORDS: b\r\n".to_owned(), "Keywords"),
        (format!("List-Post: {long}\r\n"), "List-Post"),
        (many, "List-50"),
    ] {
        let mime = format!("From: a@x.org\r\nTo: b@x.org\r\n{headers}\r\nx\r\n");
        let failure = convert(mime.as_bytes(), &["b@x.org".to_owned()]).unwrap_err();
        let expected = format!("in pieces its header {name} would be lost");
        assert!(failure.text.contains(&expected), "{failure}");
    }
}

const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x01\x02";

#[test]
fn html_before_text_and_files_beside_it() {
    let csv = b"name;gr\xf6\xdfe\r\n=3;4\r\n";
    let mime = format!(
        "From: a@x.org\r\nTo: b@x.org\r\nSubject: s\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=m\r\n\r\n\
         --m\r\nContent-Type: multipart/related; boundary=r\r\n\r\n\
         --r\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n\
         --a\r\nContent-Type: text/plain\r\n\r\nplain\r\n\
         --a\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>rich <img src=\"cid:pic@x\"></p>\r\n\
         --a--\r\n\
         --r\r\nContent-Type: image/png; name=\"pic.png\"\r\nContent-ID: <pic@x>\r\n\
         Content-Disposition: inline\r\nContent-Transfer-Encoding: base64\r\n\r\n{picture}\r\n\
         --r--\r\n\
         --m\r\nContent-Type: text/csv; charset=iso-8859-1\r\n\
         Content-Disposition: attachment; filename*=utf-8''gr%C3%B6%C3%9Fen.csv\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{csv}\r\n\
         --m\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=\"a/b\\\"c.txt\"\r\n\
         Content-Transfer-Encoding: quoted-printable\r\n\r\n=3D one =\r\nline\r\nnext\r\n\
         --m\r\nContent-Type: message/rfc822\r\n\r\n\
         From: z@x.org\r\nSubject: inner\r\n\r\ninner text\r\n\
         --m\r\nContent-Type: application/pdf\r\nContent-ID: <file@x>\r\n\
         Content-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n\r\nAAEC\r\n\
         --m--\r\n",
        picture = STANDARD.encode(PICTURE),
        csv = STANDARD.encode(csv),
    );
    let draft = converted(&mime, &["b@x.org"]);
    let body = &draft.fields["body"];
    assert_eq!(body["contentType"], "html");
    let html = body["content"].as_str().unwrap();
    assert!(
        html.contains("<p>rich") && !html.contains("plain"),
        "{html}"
    );
    let files: Vec<_> = draft
        .attachments
        .iter()
        .map(|file| {
            let id = file.content_id.as_deref().unwrap_or_default();
            (
                &*file.name,
                &*file.content_type,
                id,
                file.is_inline,
                &*file.content,
            )
        })
        .collect();
    assert_eq!(
        files,
        [
            ("pic.png", "image/png", "pic@x", true, PICTURE),
            ("größen.csv", "text/csv", "", false, &csv[..]),
            ("a/b\"c.txt", "text/plain", "", false, b"= one line\r\nnext"),
            (
                "message-4.eml",
                "message/rfc822",
                "",
                false,
                b"From: z@x.org\r\nSubject: inner\r\n\r\ninner text"
            ),
            (
                "attachment-5",
                "application/pdf",
                "file@x",
                false,
                b"\x00\x01\x02"
            ),
        ]
    );
}

#[test]
fn a_message_that_is_one_file() {
    let draft = converted(
        "From: a@x.org\r\nContent-Type: application/pdf; name=x.pdf\r\n\
         Content-Transfer-Encoding: base64\r\n\r\nAAEC\r\n",
        &["b@x.org"],
    );
    assert_eq!(
        draft.fields["body"],
        json!({"contentType": "text", "content": ""})
    );
    assert_eq!(
        draft.fields["bccRecipients"][0]["emailAddress"]["address"],
        "b@x.org"
    );
    assert_eq!(&*draft.attachments[0].content, b"\x00\x01\x02");
    assert_eq!(draft.attachments[0].name, "x.pdf");
}

proptest! {
    #[test]
    fn files_stay_byte_equal(
        files in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..2_000), 1..4),
        kind in "(application/octet-stream|text/csv|text/html|image/png|text/plain; charset=utf-16)",
    ) {
        let mut mime = "Content-Type: multipart/mixed; boundary=m\r\n\r\n\
            --m\r\nContent-Type: text/plain\r\n\r\ntext\r\n".to_owned();
        for file in &files {
            let _ = write!(
                mime,
                "--m\r\nContent-Type: {kind}\r\nContent-Disposition: attachment; filename=f\r\n\
                 Content-Transfer-Encoding: base64\r\n\r\n"
            );
            let encoded = STANDARD.encode(file);
            for line in encoded.as_bytes().chunks(76) {
                mime.push_str(std::str::from_utf8(line).unwrap());
                mime.push_str("\r\n");
            }
        }
        mime.push_str("--m--\r\n");
        let draft = converted(&mime, &["b@x.org"]);
        let contents: Vec<_> = draft.attachments.iter().map(|file| file.content.to_vec()).collect();
        prop_assert_eq!(contents, files);
    }

    #[test]
    fn only_whole_lines_delimit_and_the_end_may_be_missing(
        (outer, inner) in ("(b|-|bb|b-|--|=_b)", "(n|b|bb|b--|-|---)"),
        files in proptest::collection::vec(
            (
                proptest::collection::vec(
                    "(--b|--b--|x--b y|--bb|---|-- |--n|--n-- |--|----|Content-Type: message/rfc822|Bcc: e@x.org||text)",
                    1..6,
                ),
                any::<bool>(),
            ),
            2..5,
        ),
        (has_inner_end, has_end) in (any::<bool>(), any::<bool>()),
    ) {
        prop_assume!(outer != inner);
        let ends = |line: &String| {
            let line = line.trim_end();
            [&outer, &inner].iter().any(|it| line == format!("--{it}") || line == format!("--{it}--"))
        };
        let file = |(lines, is_encoded): &(Vec<String>, bool)| {
            let content = lines.join("\r\n");
            let (encoding, content) = if *is_encoded || lines.iter().any(ends) {
                ("base64", STANDARD.encode(content))
            } else {
                ("8bit", content)
            };
            format!(
                "Content-Type: text/plain\r\nContent-Disposition: attachment; filename=f\r\n\
                 Content-Transfer-Encoding: {encoding}\r\n\r\n{content}"
            )
        };
        let mut mime = format!("Content-Type: multipart/mixed; boundary=\"{outer}\"\r\n\r\n--{outer}\r\n\
            Content-Type: multipart/mixed; boundary=\"{inner}\"\r\n\r\n--{inner}\r\n{}\r\n", file(&files[0]));
        if has_inner_end {
            let _ = write!(mime, "--{inner}--\r\n");
        }
        for other in &files[1..] {
            let _ = write!(mime, "--{outer}\r\n{}\r\n", file(other));
        }
        if has_end {
            let _ = write!(mime, "--{outer}--\r\nepilogue");
        } else {
            mime.truncate(mime.len() - 2);
        }
        let draft = converted(&mime, &["b@x.org"]);
        let contents: Vec<_> = draft.attachments.iter().map(|file| String::from_utf8_lossy(&file.content)).collect();
        let expected: Vec<String> = files.iter().map(|(lines, _)| lines.join("\r\n")).collect();
        prop_assert_eq!(contents, expected, "{}", mime);
        prop_assert_eq!(&draft.fields["bccRecipients"].as_array().unwrap().len(), &1);
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        // Every recipient is named, whatever the message.
        if let Ok(draft) = convert(&bytes, &["b@x.org".to_owned()]) {
            prop_assert!(draft.fields.to_string().to_lowercase().contains("b@x.org"));
        }
    }
}

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

#[test]
fn messages_within_messages_as_deep_as_they_come() {
    for level in [
        "Content-Type: message/rfc822\r\n\r\n",
        "content-type : Message/Global\r\n\r\n",
        "Content-Type:\r\n message/rfc822; x=y\r\n\r\n",
        " Content-Type: message/rfc822\r\n\r\n",
        "Content-Type: (;) message/rfc822\r\n\r\n",
        "Content-Type: multipart/digest; boundary=x#\r\n\r\n--x#\r\n\r\n",
    ] {
        let mut deep = "From: a@x.org\r\n".to_owned();
        for number in 0..60_000 {
            deep.push_str(&level.replace('#', &number.to_string()));
        }
        let encoded = STANDARD.encode(&deep);
        for mime in [
            deep.clone(),
            format!(
                "From: a@x.org\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n{deep}\r\n--m--\r\n"
            ),
            format!(
                "From: a@x.org\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n{encoded}"
            ),
            format!(
                "From: a@x.org\r\nContent-Type: multipart/digest; boundary=m\r\n\r\n\
                 --m\r\nContent-Transfer-Encoding: base64\r\n\r\n{encoded}\r\n--m--\r\n"
            ),
            // The line isn't in any header that is recognized as one.
            format!("From: a@x.org\r\nContent-Type: text/plain\r\n\r\n{deep}"),
        ] {
            if let Ok(draft) = convert(mime.as_bytes(), &["b@x.org".to_owned()]) {
                let count = draft.attachments.len();
                assert!(count < 3, "{level:?}: {count} files");
                let files = draft.attachments.iter().map(|file| file.content.len());
                let text = draft.fields["body"]["content"].as_str().unwrap().len();
                let all: usize = files.sum::<usize>() + text;
                assert!(all > 1_000_000, "{level:?}: {all} octets are left");
            }
        }
    }
}

#[test]
fn a_message_with_one_within_it_is_one_file_and_what_follows_another() {
    let inner = "Content-Type: message/rfc822\r\nX-A: b\r\n\r\nSubject: innermost\r\n\r\ntext";
    let digested = "Subject: digested\r\n\r\n--not-a-delimiter\r\n";
    let encoded = STANDARD.encode(inner);
    let mime = format!(
        "From: a@x.org\r\nContent-Type: multipart/mixed; boundary=\"m m\"\r\n\r\n\
         --m m\r\nContent-Type: text/plain; name=message.txt\r\n\r\nhello\r\n\
         --m m\r\nContent-Type: multipart/mixed; boundary=n\r\n\r\n\
         --n\r\nContent-Type: message/rfc822\r\nContent-Disposition: attachment; filename=first.eml\r\n\r\n{inner}\r\n\
         --n--\r\n\
         --m m\r\nContent-Type: Multipart/Digest; boundary=d\r\n\r\n--d\r\n\r\n{digested}\r\n--d--\r\n\
         --m m\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n{encoded}\r\n\
         --m m\r\nContent-Type: application/pdf; name=x.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nAAEC\r\n\
         --m m--\r\n"
    );
    let draft = converted(&mime, &["b@x.org"]);
    let typed: Vec<_> = draft
        .attachments
        .iter()
        .map(|file| (&*file.name, &*file.content_type, &*file.content))
        .collect();
    let message = "message/rfc822";
    assert_eq!(
        typed,
        [
            ("first.eml", message, inner.as_bytes()),
            ("message-2.eml", message, digested.as_bytes()),
            ("message-3.eml", message, inner.as_bytes()),
            ("x.pdf", "application/pdf", b"\x00\x01\x02"),
        ]
    );
    assert_eq!(draft.fields["body"]["content"], "hello");
    // With a transfer encoding, which isn't allowed (RFC 2046 §5.2.1), and with a name that is already in use.
    let (first, second) = encoded.split_at(40);
    let mime = format!(
        "From: a@x.org\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n\
         --m\r\nContent-Type: text/x-file; name=mailgate-enclosed-0\r\n\
         Content-Disposition: attachment; filename=mailgate-enclosed-0\r\n\r\nanother\r\n\
         --m\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: \"base64\"\r\n\r\n{first}!\r\n{second}\r\n\
         --m\r\nContent-Type: message/rfc822\r\nContent-Type-Hint: x\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nSubject: =3D=\r\n\r\nx==\r\n\
         --m--\r\n"
    );
    let draft = converted(&mime, &["b@x.org"]);
    let found: Vec<&[u8]> = files(&draft).into_iter().map(|file| file.1).collect();
    let second: &[u8] = b"Subject: =\r\nx=";
    assert_eq!(found, [&b"another"[..], inner.as_bytes(), second]);
    let whole =
        format!("From: a@x.org\r\nSubject: outer\r\nContent-Type: message/rfc822\r\n\r\n{inner}");
    let draft = converted(&whole, &["b@x.org"]);
    assert_eq!(draft.fields["subject"], "outer");
    assert_eq!(*draft.attachments[0].content, *inner.as_bytes());
}
