//! The one address of a From field (RFC 5322 §3.6.2), parsed so strictly that no mail reader shows another one:
//! anything that some read as a name and others as an address is rejected.

use mail_parser::MessageParser;
use mail_parser::decoders::charsets::map::charset_decoder;

use mailgate_types::display_name::{AT_SIGNS, holds_another};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::encoded_words::joined;

/// Characters that a name may hold only in quotes (RFC 5322 §3.2.3, specials), except the dot, which is commonly
/// written without.
const SPECIALS: [char; 12] = ['(', ')', '<', '>', '[', ']', ':', ';', '@', '\\', ',', '"'];

/// Characters not allowed in comments, since readers differ on where a comment ends or find addresses in it.
const NOT_IN_COMMENTS: [char; 5] = ['(', '<', '>', '\\', '"'];

/// A word before the angle brackets.
enum Word<'a> {
    /// A quoted word, without its quotes.
    Quoted(String),
    Plain(&'a str),
}

/// The address, if there is exactly one and nothing else can be mistaken for another: the name holds no other address,
/// and an `@` only in quotes or if it is that same address.
pub(super) fn sole_address(value: &[u8]) -> Option<EmailAddress> {
    let text = String::from_utf8_lossy(value).replace("\r\n", "");
    if text.contains(|letter: char| letter.is_control() && letter != '\t') {
        return None;
    }
    let (words, in_brackets) = split(&text)?;
    let address = match (in_brackets, words.as_slice()) {
        (Some(inside), words) => {
            let address = address(inside)?;
            let is_alone = words.len() == 1 && !text.contains("=?");
            let fits = |word: &Word<'_>| match word {
                // Readers that join words, or decode before they unquote, could read another address.
                Word::Quoted(name) if name.contains(AT_SIGNS) => {
                    is_alone && !holds_another(name, &address)
                }
                Word::Quoted(_) => true,
                Word::Plain(word) => !word.contains(SPECIALS) && !word.contains(AT_SIGNS),
            };
            let is_itself = matches!(words, [Word::Plain(word)] if is(&address, word));
            (is_itself || words.iter().all(fits)).then_some(address)?
        }
        (None, [Word::Plain(bare)]) => address(bare)?,
        _ => return None,
    };
    let has_one_word = words.len() == 1;
    // Some readers decode each word, others join them first, which may produce an `@` from two halves.
    let joined = joined(text.as_bytes());
    let is_hidden = [text.as_bytes(), &joined]
        .map(String::from_utf8_lossy)
        .iter()
        .any(|text| hides_another(text, has_one_word, &address));
    (!is_hidden).then_some(address)
}

/// The words, and the content of the angle brackets; `None` for any other order.
fn split(text: &str) -> Option<(Vec<Word<'_>>, Option<&str>)> {
    let (mut words, mut in_brackets) = (Vec::new(), None);
    let mut rest = text.trim_start_matches([' ', '\t']);
    while let Some(first) = rest.chars().next() {
        let behind = match first {
            '(' => {
                let (comment, behind) = rest[1..].split_once(')')?;
                let is_harmless = !comment.contains(NOT_IN_COMMENTS) && !comment.contains(AT_SIGNS);
                is_harmless.then_some(behind)?
            }
            _ if in_brackets.is_some() => return None,
            '<' => {
                let (inside, behind) = rest[1..].split_once('>')?;
                in_brackets = Some(inside);
                behind
            }
            '"' => {
                let (name, behind) = unquote(&rest[1..])?;
                words.push(Word::Quoted(name));
                behind
            }
            _ => {
                let end = rest.find([' ', '\t', '(', '<', '"']);
                let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
                words.push(Word::Plain(word));
                behind
            }
        };
        rest = behind.trim_start_matches([' ', '\t']);
    }
    Some((words, in_brackets))
}

/// The content of the quotes, whose opening one is already removed, and the text after them.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let (mut name, mut letters) = (String::new(), quoted.chars());
    loop {
        match letters.next()? {
            '"' => return Some((name, letters.as_str())),
            '\\' => name.push(letters.next()?),
            letter => name.push(letter),
        }
    }
}

/// An address whose local part needs no quotes, or needs them only for spaces and dots. One that looks like an encoded
/// word is another address to readers that decode first, and one that isn't UTF-8 differs in every reader.
fn address(text: &str) -> Option<EmailAddress> {
    let address = EmailAddress::parse(text).ok()?;
    let local_part = address.local_part().trim_matches('"');
    let is_read_alike = address == address.to_standard()
        && !local_part.contains(SPECIALS)
        && !local_part.contains("=?")
        && !text.contains(char::REPLACEMENT_CHARACTER);
    is_read_alike.then_some(address)
}

fn is(address: &EmailAddress, text: &str) -> bool {
    address.as_str().eq_ignore_ascii_case(text.trim())
}

/// Whether an encoded word (RFC 2047) anywhere decodes to an address other than this one: many readers decode the
/// whole field before they parse it.
fn hides_another(text: &str, has_one_word: bool, address: &EmailAddress) -> bool {
    let mut rest = text;
    while let Some(start) = rest.find("=?") {
        let Some((decoded, behind)) = decode(&rest[start..]) else {
            return true;
        };
        if decoded.contains(AT_SIGNS) && !(has_one_word && is(address, &decoded)) {
            return true;
        }
        rest = behind;
    }
    false
}

/// The decoded text of an encoded word, and the text after it; `None` if readers may decode it differently.
fn decode(text: &str) -> Option<(String, &str)> {
    let mut parts = text.strip_prefix("=?")?.splitn(3, '?');
    let (charset, _, data) = (parts.next()?, parts.next()?, parts.next()?);
    let (_, behind) = data.split_once("?=")?;
    let word = &text[..text.len() - behind.len()];
    let charset = charset.split('*').next().unwrap_or(charset);
    let is_utf8 = ["utf-8", "utf8"].contains(&charset.to_ascii_lowercase().as_str());
    if !is_utf8 && charset_decoder(charset.as_bytes()).is_none() {
        return None;
    }
    let header = format!("Subject: {word}\r\n\r\n");
    let parsed = MessageParser::new().parse_headers(header.as_bytes())?;
    let decoded = parsed.subject().unwrap_or_default();
    // The decoder yields the replacement character for entire charsets that it doesn't know.
    let is_known = !decoded.contains("=?") && (is_utf8 || !decoded.contains('\u{fffd}'));
    is_known.then(|| (decoded.to_owned(), behind))
}

#[cfg(test)]
mod tests {
    use mail_parser::Address;
    use proptest::prelude::*;

    use super::*;

    const ADA: &str = "ada@sandbox.example";

    fn sole(value: &str) -> Option<String> {
        sole_address(value.as_bytes()).map(|address| address.to_string())
    }

    #[test]
    fn one_address_with_or_without_a_name() {
        for value in [
            "ada@sandbox.example",
            " <ada@sandbox.example>",
            " Ada Lovelace <ada@sandbox.example>",
            "Ada<ada@sandbox.example>",
            " Ada K. Lovelace <ada@sandbox.example>",
            " J\u{f6}rg \u{1f389} <ada@sandbox.example>",
            r#" "Lovelace, Ada" <ada@sandbox.example>"#,
            r#""Ada" Lovelace <ada@sandbox.example>"#,
            r#" "A \"B\" <c>" <ada@sandbox.example>"#,
            r#" "ada@sandbox.example" <ada@sandbox.example>"#,
            r#" "'ADA@sandbox.example'" <ada@sandbox.example>"#,
            r#" "ada\@sandbox.example" (she) <ada@sandbox.example>"#,
            r#" "Ada @ Work" <ada@sandbox.example>"#,
            r#" "Ada (@ada)" <ada@sandbox.example>"#,
            " Ada@Sandbox.example <ada@sandbox.example>",
            " =?utf-8?q?Ad=C3=A4?= <ada@sandbox.example>",
            " =?utf-8?q?Lovelace=2C?= =?ISO-8859-1*en?Q?_Ad=E4?= <ada@sandbox.example>",
            " =?utf-8?q?ada=40sandbox.example?= <ada@sandbox.example>",
            " =?shift_jis?b?g0GBQIND?= <ada@sandbox.example>",
            " Ada\r\n Lovelace\r\n\t<ada@sandbox.example>",
            "\r\n ada@sandbox.example ",
            " ada@sandbox.example (Ada, at work)",
            " (Ada) <ada@sandbox.example> (she)",
        ] {
            assert_eq!(sole(value).as_deref(), Some(ADA), "{value:?}");
        }
        assert_eq!(sole("<ADA@x.y>").as_deref(), Some("ADA@x.y"));
        assert_eq!(sole("<\"a b\"@x.y>").as_deref(), Some("\"a b\"@x.y"));
    }

    #[test]
    fn what_some_reader_takes_for_another_address() {
        for value in [
            "",
            " ",
            " nobody",
            " <>",
            " <ada>",
            " evil@example.org <ada@sandbox.example>",
            " evil@example.org<ada@sandbox.example>",
            " x evil@example.org <ada@sandbox.example>",
            r#" "x" evil@example.org <ada@sandbox.example>"#,
            r#" "evil@example.org" <ada@sandbox.example>"#,
            r#" "evil\@example.org" <ada@sandbox.example>"#,
            " \"evil\r\n @example.org\" <ada@sandbox.example>",
            r#" "A \"B\" <c@d>" <ada@sandbox.example>"#,
            r#" "Evil <evil@example.org>" <ada@sandbox.example>"#,
            r#" "evil@example.org" (x) <ada@sandbox.example>"#,
            r#" "ada@sandbox.example" Ada <ada@sandbox.example>"#,
            r#" "evil@" example.org <ada@sandbox.example>"#,
            r#" evil "@example.org" <ada@sandbox.example>"#,
            " evil\u{ff20}example.org <ada@sandbox.example>",
            " \"evil\u{ff20}example.org\" <ada@sandbox.example>",
            " (evil\u{fe6b}example.org) <ada@sandbox.example>",
            " =?utf-8?b?ZXZpbO+8oGV4YW1wbGUub3Jn?= <ada@sandbox.example>",
            " \"=?utf-8?q?=22?= ada@sandbox.example\" <ada@sandbox.example>",
            r#" "x"@example.org <ada@sandbox.example>"#,
            r#" "x"evil@example.org <ada@sandbox.example>"#,
            " Ada ada@sandbox.example <ada@sandbox.example>",
            " <evil@example.org> <ada@sandbox.example>",
            " <ada@sandbox.example> evil@example.org",
            " <ada@sandbox.example>, evil@example.org",
            " evil@example.org, <ada@sandbox.example>",
            " evil@example.org; <ada@sandbox.example>",
            " evil@example.org: <ada@sandbox.example>;",
            " friends: <ada@sandbox.example>;",
            " evil@example.org (<ada@sandbox.example>)",
            " (evil@example.org) <ada@sandbox.example>",
            " (\\) evil@example.org <ada@sandbox.example>",
            " ((x) <evil@example.org>) <ada@sandbox.example>",
            " (\") evil@example.org (\") <ada@sandbox.example>",
            " \"x <ada@sandbox.example>",
            " x\\\" <evil@example.org> \\\" <ada@sandbox.example>",
            " [evil@example.org] <ada@sandbox.example>",
            " evil\\@example.org <ada@sandbox.example>",
            " <@example.org:ada@sandbox.example>",
            " <\"evil@example.org>\"@sandbox.example>",
            " <ada@sandbox.example",
            " ada@sandbox.example>",
            " evil\r\n @example.org <ada@sandbox.example>",
            " evil\u{1}@example.org <ada@sandbox.example>",
            " =?utf-8?q?evil=40example.org?= <ada@sandbox.example>",
            " =?utf-8?q?evil=EF=BC?= =?utf-8?q?=A0example.org?= <ada@sandbox.example>",
            " =?utf-8?b?ZXZpbO+8?=\r\n =?UTF8?B?oGV4YW1wbGUub3Jn?= <ada@sandbox.example>",
            " =?utf-8?b?ZXZpbO+?= =?utf-8?q?=BC=A0example.org?= <ada@sandbox.example>",
            " =?utf-8?b?ZXZpbEBleGFtcGxlLm9yZw==?= <ada@sandbox.example>",
            " x =?utf-8?q?ada=40sandbox.example?= <ada@sandbox.example>",
            " evil=?utf-8?q?=40?=example.org <ada@sandbox.example>",
            " \"=?utf-8?q?evil=40example.org?=\" <ada@sandbox.example>",
            " =?utf-7?q?evil+AEA-example.org?= <ada@sandbox.example>",
            " =?cp037?q?=85=A5=89=93=7C?= <ada@sandbox.example>",
            " =?hz-gb-2312?q?evil=40?= <ada@sandbox.example>",
            " =?utf-8?q?a b=40c?= <ada@sandbox.example>",
            " =?utf-8?x?a?= <ada@sandbox.example>",
            " =? <ada@sandbox.example>",
            " ada@sandbox.example (=?utf-8?q?evil=40example.org?=)",
            " =?utf-8?q??=ada@sandbox.example",
            " =?utf-8?q?evil?= <=?utf-8?q?x?=ada@sandbox.example>",
        ] {
            assert_eq!(sole(value), None, "{value:?}");
        }
    }

    #[test]
    fn octets_of_no_charset_stand_in_names_alone() {
        let named = sole_address(b" J\xf6rg <ada@sandbox.example>");
        assert_eq!(named.map(|it| it.to_string()).as_deref(), Some(ADA));
        for value in [&b" ada@s\xff.example"[..], b" <\xe4da@sandbox.example>"] {
            assert_eq!(sole_address(value), None);
        }
    }

    proptest! {
        #[test]
        fn another_reader_finds_no_other(
            before in "([ \"<>()\\\\,;:@x.]|=\\?utf-8\\?q\\?|\\?=|=40|evil@example.org){0,8}",
            behind in "([ \"<>()\\\\,;:@x.]|evil@example.org){0,4}",
        ) {
            let value = format!("{before}<{ADA}>{behind}");
            if let Some(address) = sole(&value) {
                prop_assert_eq!(&address, ADA);
                let message = format!("From:{value}\r\n\r\n");
                let parsed = MessageParser::new().parse_headers(message.as_bytes()).unwrap_or_default();
                let shown: Vec<&str> = parsed
                    .from()
                    .into_iter()
                    .flat_map(Address::iter)
                    .filter_map(|address| address.address.as_deref())
                    .collect();
                prop_assert_eq!(shown, vec![ADA], "{}", value);
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = sole_address(&bytes);
        }
    }
}
