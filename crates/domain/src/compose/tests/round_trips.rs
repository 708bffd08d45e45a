//! A reader finds what was composed.

use mail_parser::{HeaderValue, MimeHeaders as _};
use proptest::prelude::*;

use super::*;

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
