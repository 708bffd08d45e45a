//! Against Dovecot.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_providers::mail::reader::{MailReader, NewMail};
use mailgate_providers::mail::received::Received;
use mailgate_providers::mail::sent_copy::{Found, Sought};
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_types::ids::LogId;

use super::{ADA, account, failure, reader};
use crate::peers::Provider;
use crate::support::patience::deadline;
use crate::support::sought;

const REDIRECT_URI: &str = "http://127.0.0.1:9/oauth/callback";

async fn start() -> (Provider, Arc<dyn MailReader>, MailboxAccess) {
    let provider = Provider::start(REDIRECT_URI).await;
    let reader = reader(provider.imaps_port, &provider.ca_file, 30, &[]);
    let account = account(&provider.grant(ADA).await.access_token);
    (provider, reader, account)
}

fn message(subject: &str) -> String {
    format!(
        "From: Bob <bob@provider.test>\r\nTo: {ADA}\r\nSubject: {subject}\r\n\
         Message-ID: <{subject}@provider.test>\r\n\r\nHello\r\n"
    )
}

fn messages(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| message(&number.to_string())).collect()
}

fn subjects(mail: &NewMail) -> Vec<&str> {
    mail.messages
        .iter()
        .map(|message| message.subject.as_str())
        .collect()
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

fn yesterday() -> DateTime<Utc> {
    Utc::now() - TimeDelta::days(1)
}

#[tokio::test]
async fn sent_mail_is_found_by_its_own_header() {
    let (provider, reader, account) = start().await;
    let odd = "<a\"b\\c d@provider.test>";
    let foreign = "<gr\u{fc}\u{df}e@provider.test>";
    // Dovecot makes the mailbox when it is first asked about it.
    let nothing = reader.find_sent(&account, sought(odd)).await.unwrap();
    assert_eq!(nothing, Found::Nothing);
    let (ours, other) = (LogId::at(Utc::now()), LogId::at(Utc::now()));
    let sent =
        |id: &str, header: &str| format!("From: {ADA}\r\n{header}Message-ID: {id}\r\n\r\nx\r\n");
    let of = |id: LogId| format!("X-Mailgate-Id: {id}\r\n");
    let copies = [
        sent(odd, &of(ours)),
        sent(foreign, &of(ours)),
        sent("<plain@provider.test>", ""),
        sent("<plain@provider.test>", &of(other)),
        sent("<plain@provider.test>", &of(ours)),
        sent("<plain@provider.test>", ""),
        sent("<copy@provider.test>", ""),
        sent("<copy@provider.test>", &of(other)),
    ];
    provider.put(ADA, "Sent", &copies, SystemTime::now());
    provider.put(ADA, "INBOX", &[message("received")], SystemTime::now());
    for (message_id, expected) in [
        (odd, Found::Message),
        (foreign, Found::Message),
        ("<plain@provider.test>", Found::Message),
        // A mail client's copy, and another message's.
        ("<copy@provider.test>", Found::OtherCopies),
        ("<received@provider.test>", Found::Nothing),
        ("<lain@provider.test>", Found::Nothing),
    ] {
        let sought = Sought {
            id: ours,
            message_id,
        };
        let found = reader.find_sent(&account, sought).await.unwrap();
        assert_eq!(found, expected, "{message_id}");
    }
    // What every message would have, or no command could hold, was neither found nor not found.
    for id in ["", "<>", "<a\r\nb>", "<a\0b>"] {
        let (kind, words) = failure(reader.find_sent(&account, sought(id)).await);
        assert_eq!(kind, "unavailable", "{id:?}: {words}");
    }
}

#[tokio::test]
async fn a_token_that_opens_nothing_is_refused() {
    let (provider, reader, account) = start().await;
    for token in ["wrong", ""] {
        let wrong = super::account(token);
        let (kind, words) = failure(reader.new_mail(&wrong, None, yesterday(), deadline()).await);
        assert_eq!(kind, "token refused", "{words}");
        assert!(words.contains("AUTHENTICATIONFAILED"), "{words}");
    }
    provider.lapse_access_tokens().await;
    let (kind, words) = failure(reader.find_sent(&account, sought("<a@b>")).await);
    assert_eq!(kind, "token refused", "{words}");
}

#[tokio::test]
async fn new_mail_is_read_once_and_stays_unseen() {
    let (provider, reader, account) = start().await;
    let empty = reader
        .new_mail(&account, None, yesterday(), deadline())
        .await
        .unwrap();
    assert!(empty.messages.is_empty() && !empty.more);

    let reply = format!(
        "From: Bob <bob@provider.test>\r\nTo: {ADA}\r\nSubject: =?utf-8?q?Re:_Gr=C3=BC=C3=9Fe?=\r\n\
         Message-ID: <reply@provider.test>\r\nIn-Reply-To: <second@provider.test>\r\n\
         References: <first@provider.test>\r\n\t<second@provider.test>\r\n\r\nHello\r\n"
    );
    let out_of_office = "From: eve@provider.test\r\nAuto-Submitted: auto-replied\r\n\r\nx\r\n";
    let arrived = [message("one"), reply, out_of_office.to_owned()];
    provider.put(ADA, "INBOX", &arrived, SystemTime::now());
    let look = reader.new_mail(&account, Some(&empty.cursor), yesterday(), deadline());
    let look = look.await.unwrap();
    assert!(!look.more);
    assert_eq!(subjects(&look), ["one", "Re: Gr\u{fc}\u{df}e", ""]);
    assert_eq!(
        look.messages[1],
        Received {
            message_id: Some("<reply@provider.test>".to_owned()),
            answers: vec![
                "<second@provider.test>".to_owned(),
                "<first@provider.test>".to_owned()
            ],
            from: "bob@provider.test".to_owned(),
            to: ADA.to_owned(),
            subject: "Re: Gr\u{fc}\u{df}e".to_owned(),
            automatic: false,
            bounce: None,
        }
    );
    assert!(look.messages[2].automatic);

    let again = reader.new_mail(&account, Some(&look.cursor), yesterday(), deadline());
    let again = again.await.unwrap();
    assert!(again.messages.is_empty() && !again.more);
    assert_eq!(again.cursor, look.cursor);
    assert_eq!(provider.seen(ADA, "INBOX").await, 0);
    assert_eq!(provider.messages(ADA).await.len(), 3);

    // A cursor of another time, or of no time, is as good as none: what came since counts.
    let long_ago = SystemTime::now() - Duration::from_hours(24 * 30);
    provider.put(ADA, "INBOX", &[message("old")], long_ago);
    for cursor in [None, Some("1:1"), Some("nonsense"), Some("")] {
        let look = reader
            .new_mail(&account, cursor, yesterday(), deadline())
            .await
            .unwrap();
        assert_eq!(
            subjects(&look),
            ["one", "Re: Gr\u{fc}\u{df}e", ""],
            "{cursor:?}"
        );
    }
    // The old message came into the inbox behind the cursor all the same.
    let look = reader.new_mail(&account, Some(&again.cursor), yesterday(), deadline());
    assert_eq!(subjects(&look.await.unwrap()), ["old"]);
    let all = reader.new_mail(&account, None, Utc::now() - TimeDelta::days(60), deadline());
    assert_eq!(all.await.unwrap().messages.len(), 4);
}

#[tokio::test]
async fn an_inbox_made_anew_is_read_anew() {
    let (provider, reader, account) = start().await;
    provider.put(ADA, "INBOX", &messages(0..5), SystemTime::now());
    let before = reader
        .new_mail(&account, None, yesterday(), deadline())
        .await
        .unwrap();
    assert_eq!(before.messages.len(), 5);

    provider.remove(ADA);
    provider.put(ADA, "INBOX", &messages(5..7), SystemTime::now());
    provider.number_anew(ADA, "INBOX", 4_000_000_000).await;
    let after = reader.new_mail(&account, Some(&before.cursor), yesterday(), deadline());
    let after = after.await.unwrap();
    assert_eq!(subjects(&after), numbers(5..7));
    assert!(after.cursor.starts_with("4000000000:"), "{}", after.cursor);
    let again = reader.new_mail(&account, Some(&after.cursor), yesterday(), deadline());
    assert!(again.await.unwrap().messages.is_empty());
}

#[tokio::test]
async fn much_mail_is_read_in_rounds_and_looks() {
    let (provider, reader, account) = start().await;
    let empty = reader
        .new_mail(&account, None, yesterday(), deadline())
        .await
        .unwrap();
    provider.put(ADA, "INBOX", &messages(0..450), SystemTime::now());
    let look = reader.new_mail(&account, Some(&empty.cursor), yesterday(), deadline());
    let look = look.await.unwrap();
    assert_eq!(subjects(&look), numbers(0..450));
    assert!(!look.more);

    provider.put(ADA, "INBOX", &messages(450..1_100), SystemTime::now());
    let first = reader.new_mail(&account, Some(&look.cursor), yesterday(), deadline());
    let first = first.await.unwrap();
    assert_eq!(subjects(&first), numbers(450..950));
    assert!(first.more);
    let second = reader.new_mail(&account, Some(&first.cursor), yesterday(), deadline());
    let second = second.await.unwrap();
    assert_eq!(subjects(&second), numbers(950..1_100));
    assert!(!second.more);

    // Nor is any left out where the server has numbered all of them anew.
    let mut cursor = "1:1".to_owned();
    for (numbers, more) in [
        (numbers(0..500), true),
        (numbers(500..1_000), true),
        (numbers(1_000..1_100), false),
    ] {
        let look = reader.new_mail(&account, Some(&cursor), yesterday(), deadline());
        let look = look.await.unwrap();
        assert_eq!(subjects(&look), numbers);
        assert_eq!(look.more, more);
        cursor = look.cursor;
    }
    assert_eq!(cursor, second.cursor);
    assert_eq!(provider.seen(ADA, "INBOX").await, 0);
}

#[tokio::test]
async fn a_huge_header_hides_nothing_behind_it() {
    let (provider, reader, account) = start().await;
    let empty = reader
        .new_mail(&account, None, yesterday(), deadline())
        .await
        .unwrap();
    let ids = "\r\n <reference@provider.test>".repeat(40_000);
    let huge = format!("Subject: huge\r\nReferences:{ids}\r\n\r\nx\r\n");
    let arrived = [message("before"), huge, message("behind")];
    provider.put(ADA, "INBOX", &arrived, SystemTime::now());
    let look = reader.new_mail(&account, Some(&empty.cursor), yesterday(), deadline());
    assert_eq!(subjects(&look.await.unwrap()), ["before", "huge", "behind"]);
}

fn bounce(recipient: &str) -> String {
    format!(
        "Return-Path: <>\r\nFrom: Mail Delivery System <MAILER-DAEMON@provider.test>\r\nTo: {ADA}\r\n\
         Subject: Undelivered Mail Returned to Sender\r\nMessage-ID: <{recipient}-bounce@provider.test>\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\r\nSorry\r\n\
         --b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; localhost\r\n\r\n\
         Final-Recipient: rfc822; {recipient}\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n\
         --b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <original@provider.test>\r\n--b--\r\n"
    )
}

fn bounced(mail: &NewMail) -> Vec<&str> {
    mail.messages
        .iter()
        .filter_map(|message| message.bounce.as_ref())
        .flat_map(|bounce| &bounce.recipients)
        .map(|recipient| recipient.address.as_str())
        .collect()
}

#[tokio::test]
async fn bounces_are_read_in_the_inbox_and_among_the_junk() {
    let (provider, reader, account) = start().await;
    provider.put(
        ADA,
        "INBOX",
        &[message("one"), bounce("a@x.org")],
        SystemTime::now(),
    );
    let junk = [message("spam"), bounce("b@x.org")];
    provider.put(ADA, "Unwanted", &junk, SystemTime::now());
    let look = reader
        .new_mail(&account, None, yesterday(), deadline())
        .await
        .unwrap();
    // Whatever else is among the junk is none of ours.
    assert_eq!(
        subjects(&look),
        [
            "one",
            "Undelivered Mail Returned to Sender",
            "Undelivered Mail Returned to Sender"
        ]
    );
    assert_eq!(bounced(&look), ["a@x.org", "b@x.org"]);
    assert!(look.messages[1].automatic && look.messages[2].automatic);
    let found = look.messages[2].bounce.as_ref().unwrap();
    assert_eq!(found.message_ids, ["<original@provider.test>"]);

    provider.put(ADA, "Unwanted", &[bounce("c@x.org")], SystemTime::now());
    let again = reader.new_mail(&account, Some(&look.cursor), yesterday(), deadline());
    let again = again.await.unwrap();
    assert_eq!(bounced(&again), ["c@x.org"]);
    let none = reader.new_mail(&account, Some(&again.cursor), yesterday(), deadline());
    let none = none.await.unwrap();
    assert!(none.messages.is_empty() && none.cursor == again.cursor);
    // The last release's cursor has no place among the junk: it is read by time.
    let (inbox, _) = again.cursor.split_once(';').unwrap();
    let upgraded = reader
        .new_mail(&account, Some(inbox), yesterday(), deadline())
        .await
        .unwrap();
    assert_eq!(bounced(&upgraded), ["b@x.org", "c@x.org"]);
    assert_eq!(upgraded.cursor, again.cursor);
    assert_eq!(
        provider.seen(ADA, "INBOX").await + provider.seen(ADA, "Unwanted").await,
        0
    );
}

#[tokio::test]
async fn many_bounces_are_read_in_several_looks() {
    let (provider, reader, account) = start().await;
    let empty = reader
        .new_mail(&account, None, yesterday(), deadline())
        .await
        .unwrap();
    let mut arrived: Vec<String> = (0..130)
        .map(|number| bounce(&format!("{number}@x.org")))
        .collect();
    arrived.push(message("last"));
    provider.put(ADA, "INBOX", &arrived, SystemTime::now());
    let first = reader
        .new_mail(&account, Some(&empty.cursor), yesterday(), deadline())
        .await
        .unwrap();
    assert_eq!(bounced(&first).len(), 100);
    assert!(first.more);
    let second = reader
        .new_mail(&account, Some(&first.cursor), yesterday(), deadline())
        .await
        .unwrap();
    assert_eq!((bounced(&second).len(), second.more), (30, false));
    assert_eq!(subjects(&second).last(), Some(&"last"));
}
