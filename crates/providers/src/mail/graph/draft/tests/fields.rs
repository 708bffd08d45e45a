//! The fields of a draft.

use std::fmt::Write;

use serde_json::json;

use super::*;

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
