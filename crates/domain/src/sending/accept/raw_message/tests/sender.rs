//! The one sender of a message, and what is wrong with others.

use super::*;

#[test]
fn what_is_wrong_with_a_sender_is_said() {
    use SenderError::{
        Ambiguous, ControlCharacter, Empty, EmptyFirstLine, Form, InvalidAddress, Missing, Name,
        NoAddress, Several,
    };
    for (content, error) in [
        ("", Missing),
        ("Subject: none\r\n\r\n", Missing),
        ("Sender: a@example.com\r\n\r\n", Missing),
        ("X-From: a@example.com\r\n\r\n", Missing),
        ("\r\nFrom: a@example.com\r\n", EmptyFirstLine),
        ("\r\n", EmptyFirstLine),
        ("From: a@x.y\r\nFrom: b@x.y\r\n\r\n", Several),
        ("From: a@x.y\r\nfrom : a@x.y\r\n\r\n", Several),
    ] {
        assert_eq!(
            read(content, &["x@example.org"]).map(|_| ()),
            Err(RawMessageError::From(error)),
            "{content:?}"
        );
    }
    for (value, error) in [
        ("", Empty),
        (" \r\n ", Empty),
        (" <>", Empty),
        (" nobody", NoAddress),
        (" Ada Lovelace", NoAddress),
        (" <ada>", NoAddress),
        (" root (Cron Daemon)", NoAddress),
        (" undisclosed-senders: ;", NoAddress),
        (" =?utf-8?q?Ad=C3=A4?=", NoAddress),
        // Apps with names from a database send these.
        (" Lovelace, Ada <ada@x.y>", Name),
        (" [JIRA] Ada <ada@x.y>", Name),
        (" Ada (Sales <ada@x.y>", Name),
        (" Sales: Ada <ada@x.y>", Name),
        (" A; B <ada@x.y>", Name),
        (" DOMAIN\\ada <ada@x.y>", Name),
        (" J\u{f6}rg, Ada <ada@x.y>", Name),
        (" \"Ada <ada@x.y>", Form),
        (" Ada\" <ada@x.y>", Form),
        (" <ada@x.y", Form),
        (" Ada <ada@x.y", Form),
        (" ada@x.y>", Form),
        (" Ada ada@x.y", Form),
        (" \"Ada\" ada@x.y", Form),
        (" <ada@x.y> Ada", Form),
        (" friends: ada@x.y;", Form),
        (" ada@x.y,", Form),
        (" ada@", InvalidAddress),
        (" @x.y", InvalidAddress),
        (" Ada <ada@x..y>", InvalidAddress),
        (" Ada <.ada@x.y>", InvalidAddress),
        (" a..da@x.y", InvalidAddress),
        (" Ada <ada lovelace@x.y>", InvalidAddress),
        (" Ada <mailto:ada@x.y>", InvalidAddress),
        (" Ada\u{0} <ada@x.y>", ControlCharacter),
        (" Ada\u{b} <ada@x.y>", ControlCharacter),
        (" a@x.y, b@x.y", Ambiguous),
        (" a@x.y; b@x.y", Ambiguous),
        (" friends: a@x.y, b@x.y;", Ambiguous),
        (" \"eve@x.y\" <ada@x.y>", Ambiguous),
        (" eve@x.y <ada@x.y>", Ambiguous),
        (" =?utf-8?q?eve=40x.y?= <ada@x.y>", Ambiguous),
        (" =?utf-7?q?eve+AEA-x.y?= <ada@x.y>", Ambiguous),
        (" eve\u{ff20}x.y <ada@x.y>", Ambiguous),
    ] {
        let content = format!("From:{value}\r\n\r\n");
        assert_eq!(
            read(&content, &["x@example.org"]).map(|_| ()),
            Err(RawMessageError::From(error)),
            "{value:?}"
        );
    }
}

#[test]
fn only_one_sender_is_one() {
    for (content, address) in [
        ("From: a@example.com\r\n\r\n", "a@example.com"),
        (
            "From: \"Ada, L.\" <Ada@Example.com>\r\n\r\n",
            "Ada@Example.com",
        ),
        (
            "FROM:\r\n =?utf-8?q?Ad=C3=A9?=\r\n <a@example.com>\r\n\r\n",
            "a@example.com",
        ),
        ("from : <a@example.com>\r\n\r\n", "a@example.com"),
    ] {
        assert_eq!(
            read(content, &["x@example.org"]).unwrap().from.as_str(),
            address,
            "{content:?}"
        );
    }
}
