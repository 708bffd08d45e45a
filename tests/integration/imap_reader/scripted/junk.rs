//! Bounces in the inbox and among the junk.

use chrono::Utc;

use super::{Answer, Server, TOKEN, obedient};
use crate::imap_reader::account;
use crate::support::patience::deadline;

/// A server whose inbox has two messages that may be bounces, and whose junk folder goes by its name.
fn with_bounces(line: &str) -> String {
    let report =
        "From: mailer-daemon@x.org\r\nIn-Reply-To: <m@x>\r\nX-Failed-Recipients: a@x.org\r\n\r\n";
    let header = "From: mailer-daemon@x.org\r\nX-Failed-Recipients: a@x.org\r\n\r\n";
    let fetched = |uid: u32, section: &str, text: &str| {
        format!(
            "* {uid} FETCH (UID {uid} BODY[{section}] {{{}}}\r\n{text})\r\n",
            text.len()
        )
    };
    match line {
        "LIST \"\" \"*\"" => "* LIST () \"/\" Spam\r\n{tag} OK\r\n".to_owned(),
        "UID SEARCH UID 5:*" => "* SEARCH 5 6\r\n{tag} OK\r\n".to_owned(),
        _ if line.starts_with("UID FETCH 5,6 (UID BODY.PEEK[HEADER") => {
            let headers = [5, 6].map(|uid| fetched(uid, "HEADER.FIELDS (X)", header));
            headers.concat() + "{tag} OK\r\n"
        }
        "UID FETCH 5 (UID BODY.PEEK[]<0.262144>)" => {
            "{tag} NO [SERVERBUG] it is damaged\r\n".to_owned()
        }
        "UID FETCH 6 (UID BODY.PEEK[]<0.262144>)" => {
            fetched(6, "]<0>", report).replace("]<0>]", "]<0>") + "{tag} OK\r\n"
        }
        _ => obedient(line),
    }
}

#[tokio::test]
async fn a_damaged_bounce_hides_nothing_behind_it() {
    let server = Server::start("* OK hi\r\n", with_bounces).await;
    let (reader, account) = (server.reader(), account(TOKEN));
    let mail = reader
        .new_mail(&account, Some("7:5"), Utc::now(), deadline())
        .await
        .unwrap();
    let bounced: Vec<bool> = mail
        .messages
        .iter()
        .map(|message| message.bounce.is_some())
        .collect();
    assert_eq!(bounced, [false, true]);
    // Neither is a reply.
    assert!(mail.messages.iter().all(|message| message.automatic));
    assert_eq!((mail.cursor.as_str(), mail.more), ("7:7;7:11", false));
    let said = server.said();
    assert!(said.contains(&"EXAMINE \"Spam\"".to_owned()), "{said:?}");
    assert!(
        !said
            .iter()
            .any(|line| line.starts_with("SELECT") || line.starts_with("STORE"))
    );
}

#[tokio::test]
async fn the_inbox_does_not_wait_for_the_junk() {
    let servers: [Answer; 3] = [
        |line| match line {
            "EXAMINE \"Spam\"" => "{tag} NO [NOPERM] no\r\n".to_owned(),
            _ => with_bounces(line),
        },
        |line| match line {
            "EXAMINE \"Spam\"" => "* BYE\r\n".to_owned(),
            _ => with_bounces(line),
        },
        |line| match line {
            "LIST \"\" \"*\"" => "{tag} BAD what?\r\n".to_owned(),
            _ => with_bounces(line),
        },
    ];
    for answer in servers {
        let server = Server::start("* OK hi\r\n", answer).await;
        let (reader, account) = (server.reader(), account(TOKEN));
        for (cursor, next) in [("7:5", "7:7"), ("7:5;7:9", "7:7;7:9")] {
            let mail = reader
                .new_mail(&account, Some(cursor), Utc::now(), deadline())
                .await
                .unwrap();
            assert_eq!((mail.messages.len(), mail.cursor.as_str()), (2, next));
        }
    }
}
