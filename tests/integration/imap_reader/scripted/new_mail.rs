//! Looks for new mail: floods, what nobody asked for, and looks that end early.

use chrono::{TimeDelta, Utc};

use super::{Answer, GREETING, IMPATIENCE, PATIENCE, Server, TOKEN, obedient};
use crate::imap_reader::{account, failure, reader};
use crate::support::patience::deadline;

#[tokio::test]
async fn of_a_flood_the_first_messages_are_read() {
    let server = Server::start(GREETING, |line| {
        if !line.starts_with("UID SEARCH") {
            return obedient(line);
        }
        let found = [80_000, 0, 40_000].map(|from: u32| {
            let uids: Vec<String> = (from..from + 40_000).map(|uid| uid.to_string()).collect();
            format!("* SEARCH {}\r\n", uids.join(" "))
        });
        found.concat() + "{tag} OK\r\n"
    });
    let server = server.await;
    let reader = server.reader();
    for (cursor, fetched, next, more) in [
        (Some("7:100"), "100,101,", "7:600", true),
        (Some("7:119999"), "119999 ", "7:120000", false),
        (None, "1,2,", "7:501", true),
    ] {
        let mail = reader
            .new_mail(&account(TOKEN), cursor, Utc::now(), deadline())
            .await
            .unwrap();
        assert_eq!((mail.cursor.as_str(), mail.more), (next, more));
        let said = server.said();
        let fetched = format!("UID FETCH {fetched}");
        assert!(
            said.iter().any(|line| line.starts_with(&fetched)),
            "{fetched}"
        );
    }
}

#[tokio::test]
async fn what_is_not_asked_for_is_passed_over() {
    // A last message that is older than the cursor, messages of nobody's asking, no UIDNEXT.
    let server = Server::start("* OK hi\r\n", |line| {
        let answer = match line {
            "EXAMINE \"INBOX\"" => {
                "* FLAGS (\\Seen)\r\n* 10 EXISTS\r\n* OK [UIDVALIDITY 7]\r\n* x y z\r\n{tag} OK\r\n"
            }
            "UID SEARCH UID 20:*" | "UID SEARCH UID *" => "* SEARCH 10\r\n{tag} OK\r\n",
            "UID SEARCH UID 5:*" => "* SEARCH 9 8 4\r\n* SEARCH 8\r\n{tag} OK\r\n",
            _ if line.starts_with("UID FETCH 8,9 (UID BODY.PEEK[") => {
                "* 2 FETCH (UID 9 BODY[HEADER.FIELDS (X)] {14}\r\nSubject: b\r\n\r\n)\r\n\
                 * 1 FETCH (UID 8 FLAGS ())\r\n* 3 EXPUNGE\r\n\
                 * 7 FETCH (UID 7 BODY[HEADER.FIELDS (X)] {14}\r\nSubject: c\r\n\r\n)\r\n\
                 * 1 FETCH (BODY[HEADER.FIELDS (X)] \"Subject: a\" UID 8)\r\n{tag} OK\r\n"
            }
            _ => return obedient(line),
        };
        answer.to_owned()
    });
    let server = server.await;
    let (reader, account) = (server.reader(), account(TOKEN));
    let look = async |cursor| {
        reader
            .new_mail(&account, cursor, Utc::now(), deadline())
            .await
            .unwrap()
    };
    let mail = look(Some("7:20")).await;
    assert!(mail.messages.is_empty() && !mail.more);
    assert_eq!(mail.cursor, "7:20");
    let mail = look(Some("7:5")).await;
    let subjects: Vec<_> = mail.messages.iter().map(|it| it.subject.as_str()).collect();
    assert_eq!(subjects, ["a", "b"]);
    assert_eq!((mail.cursor.as_str(), mail.more), ("7:10", false));
    // As none was found since, the next look begins behind the last message.
    let mail = look(None).await;
    assert_eq!((mail.cursor.as_str(), mail.more), ("7:11", false));
    let said = server.said();
    let day = (Utc::now() - TimeDelta::days(1))
        .format("UID SEARCH SINCE %-d-%b-%Y")
        .to_string();
    assert!(said.contains(&day), "{said:?}");
    assert!(
        !said.iter().any(|line| line.starts_with("SELECT")),
        "{said:?}"
    );
    assert_eq!(said.iter().filter(|line| *line == "LOGOUT").count(), 3);
}

#[tokio::test]
async fn a_look_that_ends_early_keeps_what_it_read() {
    /// A server with 300 messages that gives the first 200 well.
    fn half(line: &str, otherwise: Answer) -> String {
        if line.starts_with("UID SEARCH") {
            let found: Vec<String> = (1..=300).map(|uid: u32| uid.to_string()).collect();
            return format!("* SEARCH {}\r\n{{tag}} OK\r\n", found.join(" "));
        }
        if line.starts_with("UID FETCH 1,") {
            let each = "* 1 FETCH (UID 1 BODY[HEADER.FIELDS (X)] \"Subject: x\")\r\n";
            return format!("{each}{{tag}} OK\r\n");
        }
        if line.starts_with("UID FETCH") {
            return otherwise(line);
        }
        obedient(line)
    }
    let servers: [(u32, Answer); 3] = [
        (PATIENCE, |line| {
            half(line, |_| "{tag} NO [SERVERBUG] oh\r\n".to_owned())
        }),
        (PATIENCE, |line| half(line, |_| "* BYE\r\n".to_owned())),
        (IMPATIENCE, |line| half(line, |_| String::new())),
    ];
    for (seconds, answer) in servers {
        let server = Server::start(GREETING, answer).await;
        let reader = reader(server.port, &server.ca_file, seconds, &[]);
        let mail = reader
            .new_mail(&account(TOKEN), Some("7:1"), Utc::now(), deadline())
            .await
            .unwrap();
        assert_eq!(mail.messages.len(), 1);
        assert_eq!((mail.cursor.as_str(), mail.more), ("7:201", true));
        // And where nothing was read, it says why.
        let failed = reader
            .new_mail(&account(TOKEN), Some("7:201"), Utc::now(), deadline())
            .await;
        assert_eq!(failure(failed).0, "unavailable");
    }
}
