#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;

mod attachments;
mod enclosed;
mod fields;
mod indivisible;
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
