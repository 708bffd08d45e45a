#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mail_parser::{HeaderValue, Message, MessageParser, MimeHeaders, PartType};
use proptest::prelude::*;

use super::*;

fn address(text: &str) -> EmailAddress {
    EmailAddress::parse(text).unwrap()
}

fn fields(text: Option<&str>, html: Option<&str>) -> Fields {
    Fields {
        from_name: None,
        to: address("bob@example.org"),
        cc: Vec::new(),
        bcc: Vec::new(),
        reply_to: None,
        subject: "Hi".to_owned(),
        text: text.map(str::to_owned),
        html: html.map(str::to_owned),
        headers: Vec::new(),
        attachments: Vec::new(),
    }
}

fn file(name: &str, media_type: &str, content: &[u8], id: Option<&str>) -> Attachment {
    Attachment {
        filename: Filename::new(name.to_owned()).unwrap(),
        media_type: MediaType::parse(media_type).unwrap(),
        content: content.to_vec(),
        content_id: id.map(|id| ContentId::new(id.to_owned()).unwrap()),
    }
}

fn prepare(fields: Fields) -> Composed {
    compose(
        fields,
        &address("ada@example.com"),
        DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
        "log_1",
    )
}

/// The bytes, checked to be in wire form.
fn bytes(prepared: &Composed) -> Vec<u8> {
    let bytes = prepared.message.chunks().collect::<Vec<_>>().concat();
    let shown = || String::from_utf8_lossy(&bytes).into_owned();
    assert!(bytes.ends_with(b"\r\n"), "{}", shown());
    for line in bytes
        .strip_suffix(b"\r\n")
        .unwrap()
        .split(|byte| *byte == b'\n')
    {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        assert!(line.len() <= 998, "{} octets: {}", line.len(), shown());
        assert!(!line.contains(&b'\r'), "a bare CR: {}", shown());
    }
    let line_feeds = memchr::memchr_iter(b'\n', &bytes).count();
    let line_ends = bytes.windows(2).filter(|pair| *pair == b"\r\n").count();
    assert_eq!(line_feeds, line_ends, "a bare LF: {}", shown());
    assert!(bytes.is_ascii() || prepared.smtputf8, "{}", shown());
    bytes
}

fn composed(fields: Fields) -> String {
    String::from_utf8(bytes(&prepare(fields))).unwrap()
}

fn parse(bytes: &[u8]) -> Message<'_> {
    MessageParser::new().parse(bytes).unwrap()
}

/// The parts' types, with nested ones in brackets.
fn shape(message: &Message<'_>, part: usize) -> String {
    let part = &message.parts[part];
    let content_type = part.content_type().unwrap();
    let own = format!(
        "{}/{}",
        content_type.ctype(),
        content_type.subtype().unwrap()
    );
    match &part.body {
        PartType::Multipart(parts) => {
            let inner: Vec<String> = parts
                .iter()
                .map(|part| shape(message, usize::try_from(*part).unwrap()))
                .collect();
            format!("{own}[{}]", inner.join(" "))
        }
        _ => own,
    }
}

#[test]
fn text_alone() {
    let text = composed(fields(Some("Hello\nthere"), None));
    assert!(
        text.contains("Content-Type: text/plain; charset=utf-8\r\n"),
        "{text}"
    );
    assert!(
        text.contains("Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"),
        "{text}"
    );
    assert!(text.ends_with("\r\n\r\nHello\r\nthere\r\n"), "{text}");
}

#[test]
fn no_line_end_of_a_body_forges_anything() {
    let html = "<p>\r</p>";
    composed(fields(Some("x\r.\r\nMAIL FROM:<a@b>"), Some(html)));
    composed(fields(Some("ü\r.\r\nMAIL FROM:<a@b>"), Some(html)));
    composed(fields(Some("日本語\r.\r\n日本語"), Some(html)));
}

#[test]
fn parts_stand_in_their_places() {
    let inline = || file("logo.png", "image/png", b"png", Some("logo"));
    let attached = || file("a.pdf", "application/pdf", b"pdf", None);
    for (text, html, files, expected) in [
        (Some("t"), None, vec![], "text/plain"),
        (None, Some("h"), vec![], "text/html"),
        (
            Some("t"),
            Some("h"),
            vec![],
            "multipart/alternative[text/plain text/html]",
        ),
        (
            Some("t"),
            None,
            vec![attached()],
            "multipart/mixed[text/plain application/pdf]",
        ),
        (
            None,
            Some("h"),
            vec![inline()],
            "multipart/related[text/html image/png]",
        ),
        (
            Some("t"),
            Some("h"),
            vec![inline(), attached(), attached()],
            "multipart/mixed[multipart/alternative[text/plain multipart/related[text/html \
             image/png]] application/pdf application/pdf]",
        ),
        (
            Some("t"),
            None,
            vec![inline()],
            "multipart/mixed[text/plain image/png]",
        ),
    ] {
        let has_attachments = expected.starts_with("multipart/mixed");
        let prepared = prepare(Fields {
            attachments: files,
            ..fields(text, html)
        });
        assert_eq!(prepared.has_attachments, has_attachments);
        let bytes = bytes(&prepared);
        let message = parse(&bytes);
        assert_eq!(shape(&message, 0), expected);
        assert_eq!(
            message
                .body_text(0)
                .is_some_and(|body| body.trim_end() == "t"),
            text.is_some()
        );
        assert_eq!(
            message
                .body_html(0)
                .is_some_and(|body| body.trim_end() == "h"),
            html.is_some()
        );
        for part in &message.parts {
            if part.content_id().is_some() {
                assert_eq!(part.content_id(), Some("logo"));
                let disposition = part.content_disposition().unwrap().ctype();
                assert_eq!(disposition == "inline", html.is_some());
                assert_eq!(part.contents(), b"png");
            }
        }
    }
}

#[test]
fn everybody_gets_it_once_and_nobody_sees_bcc() {
    let addresses = |texts: &[&str]| texts.iter().map(|text| address(text)).collect();
    let prepared = prepare(Fields {
        cc: addresses(&["carol@example.org", "BOB@example.org", "Carol@Example.org"]),
        bcc: addresses(&["dan@example.org", "carol@example.org", "DAN@example.org"]),
        ..fields(Some("t"), None)
    });
    let everybody = ["bob@example.org", "carol@example.org", "dan@example.org"];
    assert_eq!(prepared.recipients, everybody);
    assert_eq!(prepared.cc, everybody[1..2]);
    assert_eq!(prepared.bcc, everybody[2..]);
    let text = String::from_utf8(bytes(&prepared)).unwrap();
    assert!(text.contains("\r\nCc: carol@example.org\r\n"), "{text}");
    let lower = text.to_ascii_lowercase();
    assert!(!lower.contains("bcc") && !lower.contains("dan@"), "{text}");
}

#[test]
fn a_domain_beyond_ascii_is_written_in_ascii() {
    let beyond = |name: &str| address(&format!("{name}@b\u{fc}cher.example"));
    let prepared = prepare(Fields {
        to: beyond("bob"),
        cc: vec![beyond("carol"), address("bob@xn--bcher-kva.example")],
        bcc: vec![beyond("dan")],
        reply_to: Some(beyond("ada")),
        ..fields(Some("t"), None)
    });
    assert!(!prepared.smtputf8);
    let text = String::from_utf8(bytes(&prepared)).unwrap();
    for header in [
        "\r\nTo: bob@xn--bcher-kva.example\r\n",
        "\r\nCc: carol@xn--bcher-kva.example\r\n",
        "\r\nReply-To: ada@xn--bcher-kva.example\r\n",
    ] {
        assert!(text.contains(header), "{header}{text}");
    }
    // An address named in both forms gets the message once.
    let names = ["bob", "carol", "dan"].map(|name| format!("{name}@xn--bcher-kva.example"));
    assert_eq!(prepared.recipients, names);
    assert_eq!(prepared.bcc, ["dan@b\u{fc}cher.example"]);
}

#[test]
fn one_address_beyond_ascii_needs_smtputf8() {
    let beyond = || address("jörg@example.org");
    let plain = || fields(Some("t"), None);
    for (fields, expected) in [
        (plain(), false),
        (
            Fields {
                to: beyond(),
                ..plain()
            },
            true,
        ),
        (
            Fields {
                cc: vec![beyond()],
                ..plain()
            },
            true,
        ),
        (
            Fields {
                bcc: vec![beyond()],
                ..plain()
            },
            true,
        ),
        (
            Fields {
                reply_to: Some(beyond()),
                ..plain()
            },
            true,
        ),
        (
            Fields {
                from_name: Some("Jörg".to_owned()),
                subject: "Grüße".to_owned(),
                ..plain()
            },
            false,
        ),
    ] {
        let prepared = prepare(fields);
        assert_eq!(prepared.smtputf8, expected);
        bytes(&prepared);
    }
}

#[test]
fn a_file_is_encoded_into_a_piece_of_its_own() {
    let content: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let sent = file("a.bin", "application/octet-stream", &content, None);
    let fields = Fields {
        attachments: vec![sent],
        ..fields(Some("t"), None)
    };
    let least = fields.least_size();
    let prepared = prepare(fields);
    let size = prepared.message.size();
    assert!((least..least + least / 30).contains(&size), "{size}");
    let bytes = bytes(&prepared);
    assert_eq!(parse(&bytes).attachment(0).unwrap().contents(), content);
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9 ._=?%'\"();*-]{1,60}", "[^\\p{C}/\\\\]{1,255}"]
        .prop_filter("a name", |name| Filename::new(name.clone()).is_ok())
}

fn any_file() -> impl Strategy<Value = (String, &'static str, Vec<u8>, Option<String>)> {
    (
        any_name(),
        prop::sample::select(vec![
            "application/octet-stream",
            "image/png",
            "text/calendar; method=REQUEST; charset=\"utf-8\"",
        ]),
        prop::collection::vec(any::<u8>(), 0..2_000),
        prop::option::of("[a-z0-9.+_-]{1,40}(@[a-z0-9.-]{1,40})?"),
    )
}

/// A text as a reader returns it: with LF line ends, and whether or not the last line ends.
fn unified(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

proptest! {
    #[test]
    fn bodies_and_subject_come_out_as_they_went_in(
        subject in prop_oneof!["[^\\p{Cc}]{0,300}", "[ -~]{0,998}"],
        text in prop_oneof!["(?s).{1,2000}", "[ -~\r\n\t]{1,3000}"],
        html in prop::option::of("[^\\p{C}]{1,2000}"),
    ) {
        let text = text.replace('\0', "");
        prop_assume!(!text.is_empty());
        let prepared = prepare(Fields {
            subject: subject.clone(),
            ..fields(Some(&text), html.as_deref())
        });
        let bytes = bytes(&prepared);
        let message = parse(&bytes);
        prop_assert_eq!(message.subject().unwrap_or_default(), subject);
        prop_assert_eq!(
            prepared.message_id,
            format!("<{}>", message.message_id().unwrap())
        );
        prop_assert_eq!(unified(&message.body_text(0).unwrap()), unified(&text));
        if let Some(html) = html {
            prop_assert_eq!(unified(&message.body_html(0).unwrap()), unified(&html));
        }
    }

    #[test]
    fn files_come_out_as_they_went_in(files in prop::collection::vec(any_file(), 1..5)) {
        let mut expected: Vec<_> = files.clone();
        // Those displayed in the HTML come first.
        expected.sort_by_key(|(_, _, _, id)| id.is_none());
        let attachments = files
            .iter()
            .map(|(name, kind, content, id)| file(name, kind, content, id.as_deref()));
        let prepared = prepare(Fields {
            attachments: attachments.collect(),
            ..fields(Some("t"), Some("h"))
        });
        let bytes = bytes(&prepared);
        let message = parse(&bytes);
        let found: Vec<_> = message
            .parts
            .iter()
            .filter(|part| part.content_disposition().is_some())
            .collect();
        prop_assert_eq!(found.len(), expected.len());
        for (part, (name, kind, content, id)) in found.iter().zip(&expected) {
            prop_assert_eq!(part.attachment_name(), Some(name.as_str()));
            let found = part.content_type().unwrap();
            let essence = format!("{}/{}", found.ctype(), found.subtype().unwrap());
            prop_assert_eq!(Some(essence.as_str()), kind.split(';').next());
            if kind.contains("REQUEST") {
                prop_assert_eq!(found.attribute("method"), Some("REQUEST"));
            } else {
                prop_assert_eq!(part.contents(), content.as_slice());
            }
            prop_assert_eq!(part.content_id(), id.as_deref());
        }
    }

    #[test]
    fn headers_come_out_as_they_went_in(
        name in prop::option::of(prop_oneof!["[ -~]{1,100}", "[^\\p{C}]{1,255}"]),
        values in prop::collection::vec(prop_oneof!["[ -~]{1,998}", "([!-~]{1,900} ){1,4}", "[^\\p{Cc}]{1,998}"], 0..5),
        references in prop::collection::vec("<[!-;=?-~]{1,300}> {1,3}", 0..40),
        blanks in 0_usize..2_000,
        cc in prop::collection::vec("[a-z]{1,30}@[a-z]{1,30}\\.example", 0..30),
    ) {
        let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        let values: Vec<String> = values
            .iter()
            .map(|value| value.trim_matches(' ').to_owned())
            .filter(|value| !value.is_empty())
            .collect();
        let headers = values
            .iter()
            .enumerate()
            .map(|(index, value)| CustomHeader::new(&format!("X-Tag-{index}"), value).unwrap());
        let references = format!("<a@b>{}{}<c@d>", " ".repeat(blanks + 1), references.concat());
        let thread = CustomHeader::new("References", &references).unwrap();
        let mut cc: Vec<String> = cc;
        cc.sort();
        cc.dedup();
        let prepared = prepare(Fields {
            from_name: name.clone(),
            headers: headers.chain([thread]).collect(),
            cc: cc.iter().map(|text| address(text)).collect(),
            reply_to: Some(address("\"a b\"@example.com")),
            ..fields(Some("t"), None)
        });
        let bytes = bytes(&prepared);
        let message = parse(&bytes);
        let from = message.from().unwrap().first().unwrap();
        prop_assert_eq!(from.address(), Some("ada@example.com"));
        prop_assert_eq!(from.name(), name.as_deref());
        let found: Vec<String> = message
            .cc()
            .into_iter()
            .flat_map(mail_parser::Address::iter)
            .filter_map(|address| address.address().map(str::to_owned))
            .collect();
        prop_assert_eq!(found, cc);
        let found = message.header_raw("References").unwrap().split_whitespace();
        prop_assert!(found.eq(references.split_whitespace()));
        for (index, value) in values.iter().enumerate() {
            let found = MessageParser::new()
                .header_text(format!("X-Tag-{index}"))
                .parse(&bytes)
                .unwrap();
            let HeaderValue::Text(text) = found.header(format!("X-Tag-{index}")).unwrap() else {
                panic!("no text");
            };
            prop_assert_eq!(text.as_ref(), value);
        }
    }
}
