//! Checks that end before a folder does: what was read counts, and the next one goes on behind it.

use std::fmt::Write as _;

use chrono::Utc;
use tokio::time::Instant;

use super::scripted::{Answer, GREETING, Server, obedient};
use super::{account, failure, reader};
use crate::support::patience::deadline;

/// A server whose inbox has three bounces (5, 6, 8) and an ordinary message (7), and whose junk folder has a bounce.
fn with_bounces(line: &str) -> String {
    let found = |uids: &[u32]| {
        let uids: Vec<String> = uids.iter().map(u32::to_string).collect();
        format!("* SEARCH {}\r\n{{tag}} OK\r\n", uids.join(" "))
    };
    if line == "LIST \"\" \"*\"" {
        return "* LIST () \"/\" Spam\r\n{tag} OK\r\n".to_owned();
    }
    if line.starts_with("UID SEARCH SINCE") {
        return found(&[9]);
    }
    let first = line.strip_prefix("UID SEARCH UID ");
    if let Some(first) = first.and_then(|range| range.strip_suffix(":*")) {
        let first: u32 = first.parse().unwrap();
        let uids: Vec<u32> = (5..=8).filter(|uid| *uid >= first).collect();
        return found(&uids);
    }
    let Some(fetch) = line.strip_prefix("UID FETCH ") else {
        return obedient(line);
    };
    let (uids, what) = fetch.split_once(' ').unwrap();
    let mut answer = String::new();
    for uid in uids.split(',') {
        let text = match uid {
            "7" => "From: bob@x.org\r\nSubject: 7\r\n\r\n".to_owned(),
            _ => format!(
                "From: mailer-daemon@x.org\r\nSubject: {uid}\r\nIn-Reply-To: <m@x>\r\n\
                 X-Failed-Recipients: {uid}@x.org\r\n\r\n"
            ),
        };
        let section = if what.contains("HEADER") {
            "BODY[HEADER.FIELDS (X)]"
        } else {
            "BODY[]<0>"
        };
        let length = text.len();
        let _ = write!(
            answer,
            "* {uid} FETCH (UID {uid} {section} {{{length}}}\r\n{text})\r\n"
        );
    }
    answer + "{tag} OK\r\n"
}

#[tokio::test]
async fn late_checks_read_each_message_once() {
    let server = Server::start("* OK hi\r\n", with_bounces).await;
    let reader = reader(server.port, &server.ca_file, 20, &[]);
    let account = account("token");
    let mut cursor = "7:5".to_owned();
    for (subjects, next, more) in [
        (&["5"][..], "7:6", true),
        (&["6", "7"], "7:8", true),
        (&["8"], "7:9", true),
        // The junk folder is read once the inbox has nothing new.
        (&["9"], "7:9;7:11", false),
    ] {
        let mail = reader
            .new_mail(&account, Some(&cursor), Utc::now(), Instant::now())
            .await
            .unwrap();
        let read: Vec<&str> = mail.messages.iter().map(|it| &*it.subject).collect();
        assert_eq!(
            (read, &*mail.cursor, mail.more),
            (subjects.to_vec(), next, more)
        );
        let bounces = mail.messages.iter().filter(|it| it.bounce.is_some());
        let expected = subjects.iter().filter(|subject| **subject != "7");
        assert_eq!(bounces.count(), expected.count());
        cursor = mail.cursor;
    }
}

#[tokio::test]
async fn a_body_that_fails_keeps_what_came_before_it() {
    let servers: [(u32, Answer); 2] = [
        (20, |line| match line {
            "UID FETCH 6 (UID BODY.PEEK[]<0.262144>)" => "* BYE\r\n".to_owned(),
            _ => with_bounces(line),
        }),
        (2, |line| match line {
            "UID FETCH 6 (UID BODY.PEEK[]<0.262144>)" => String::new(),
            _ => with_bounces(line),
        }),
    ];
    for (seconds, answer) in servers {
        let server = Server::start(GREETING, answer).await;
        let reader = reader(server.port, &server.ca_file, seconds, &[]);
        let account = account("token");
        let mail = reader
            .new_mail(&account, Some("7:5"), Utc::now(), deadline())
            .await
            .unwrap();
        assert_eq!(
            (mail.messages.len(), &*mail.cursor, mail.more),
            (1, "7:6", true)
        );
        let failed = reader
            .new_mail(&account, Some("7:6"), Utc::now(), deadline())
            .await;
        assert_eq!(failure(failed).0, "unavailable");
    }
}
