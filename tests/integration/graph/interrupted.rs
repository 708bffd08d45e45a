//! Checks that end before a page does: what was read counts, and the next one goes on behind it. A message that can't
//! be read hides nothing.

use serde_json::Value;
use tokio::time::Instant;

use mailgate_providers::mail::reader::ReadError;

use super::reading::{account, bounced, entry, reader, receive_bounce, since};
use crate::support::graph_stand_in::{Call, Fault, GraphStandIn, READ_WRITE};
use crate::support::patience::deadline;

#[tokio::test(flavor = "multi_thread")]
async fn late_checks_read_each_message_once() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    let (reader, account) = (reader(&stand_in), account(&stand_in));
    // More than a page.
    for number in 0..53 {
        if number % 10 == 1 {
            receive_bounce(&stand_in, number, false);
        } else {
            stand_in.receive(entry(number));
        }
    }
    for number in 53..56 {
        receive_bounce(&stand_in, number, true);
    }
    let mut cursor: Option<String> = None;
    let (mut subjects, mut recipients, mut checks) = (Vec::new(), Vec::new(), 0);
    loop {
        let mail = reader
            .new_mail(&account, cursor.as_deref(), since(), Instant::now())
            .await
            .unwrap();
        checks += 1;
        assert!(checks < 100, "it doesn't end");
        assert_ne!(cursor.as_deref(), Some(&*mail.cursor), "it gets no further");
        recipients.extend(bounced(&mail.messages).into_iter().map(str::to_owned));
        subjects.extend(mail.messages.into_iter().map(|message| message.subject));
        if !mail.more {
            break;
        }
        // What arrives meanwhile is read, too.
        if checks == 20 {
            stand_in.receive(entry(99));
        }
        cursor = Some(mail.cursor);
    }
    let numbers = (0..53).chain([99]).chain(53..56);
    let expected: Vec<String> = numbers.map(|number| format!("Re: {number}")).collect();
    assert_eq!(subjects, expected);
    let expected = [1, 11, 21, 31, 41, 51, 53, 54, 55];
    assert_eq!(recipients, expected.map(|number| format!("{number}@x.org")));
    assert_eq!(stand_in.count(Call::Whole), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_fails_keeps_what_came_before_it() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    let (reader, account) = (reader(&stand_in), account(&stand_in));
    stand_in.receive(entry(1));
    receive_bounce(&stand_in, 2, false);
    stand_in.receive(entry(3));
    receive_bounce(&stand_in, 4, true);
    let look = async |cursor: Option<&str>| {
        let looked = reader.new_mail(&account, cursor, since(), deadline());
        looked.await
    };
    for fault in [
        Fault::error(429, "TooManyRequests").retry_after("17"),
        Fault::error(503, "ErrorServerBusy"),
        Fault::error(500, "ErrorInternalServerError"),
        Fault::error(400, "ErrorServerBusy"),
        Fault::error(403, "ErrorExceededMessageLimit"),
        Fault::error(401, "InvalidAuthenticationToken"),
    ] {
        stand_in.once(Call::Whole, fault.clone());
        stand_in.once(Call::Whole, fault.clone());
        let first = look(None).await.unwrap();
        assert_eq!((first.messages.len(), first.more), (1, true), "{fault:?}");
        // Nothing was read before it: the error is what the check comes to.
        let again = look(Some(&first.cursor)).await;
        let is_told = match again.unwrap_err() {
            ReadError::TokenRefused(text) => text.contains("401"),
            ReadError::Unavailable { .. } => true,
            ReadError::Forbidden(_) | ReadError::Unexplained(_) => false,
        };
        assert!(is_told, "{fault:?}");
        let rest = look(Some(&first.cursor)).await.unwrap();
        assert_eq!(bounced(&rest.messages), ["2@x.org", "4@x.org"]);
        assert_eq!((rest.messages.len(), rest.more), (3, false), "{fault:?}");
    }
    // A page that is lost with what was taken of it is read from the start.
    stand_in.once(Call::Whole, Fault::error(503, "ErrorServerBusy"));
    let first = look(None).await.unwrap();
    stand_in.once(Call::Delta, Fault::error(410, "SyncStateNotFound"));
    let anew = look(Some(&first.cursor)).await.unwrap();
    assert_eq!((anew.messages.len(), anew.more), (4, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_cannot_be_read_hides_nothing() {
    let stand_in = GraphStandIn::start(READ_WRITE).await;
    let (reader, account) = (reader(&stand_in), account(&stand_in));
    receive_bounce(&stand_in, 1, false);
    receive_bounce(&stand_in, 2, false);
    let faults = [
        (500, "ErrorMimeContentConversionFailed", 3),
        (500, "ErrorContentConversionFailed", 3),
        (422, "ErrorContentConversionFailed", 3),
        (400, "ErrorInvalidIdMalformed", 3),
        (403, "ErrorAccessDenied", 3),
        (404, "ErrorItemNotFound", 2),
        (410, "ErrorItemNotFound", 2),
    ];
    for (status, code, _) in faults {
        stand_in.once(Call::Whole, Fault::error(status, code));
        let mail = reader
            .new_mail(&account, None, since(), deadline())
            .await
            .unwrap();
        assert_eq!(bounced(&mail.messages), ["2@x.org"], "{status} {code}");
        // It is no reply, either.
        assert!(mail.messages.iter().all(|message| message.automatic));
        assert_eq!((mail.messages.len(), mail.more), (2, false));
    }
    // The same where the change doesn't name the headers, and they can't be had.
    let mut bare = entry(3);
    let headers: Value = bare["internetMessageHeaders"].take();
    bare["hidden"] = headers;
    bare.as_object_mut()
        .unwrap()
        .remove("internetMessageHeaders");
    stand_in.receive(bare);
    for (status, code, messages) in faults {
        stand_in.once(Call::Look, Fault::error(status, code));
        let mail = reader
            .new_mail(&account, None, since(), deadline())
            .await
            .unwrap();
        assert_eq!(bounced(&mail.messages), ["1@x.org", "2@x.org"]);
        assert_eq!(
            (mail.messages.len(), mail.more),
            (messages, false),
            "{status} {code}"
        );
    }
    // That the mailbox may not be read isn't one message's fault.
    for (status, is_token) in [(401, true), (403, false)] {
        stand_in.once(Call::Delta, Fault::error(status, "ErrorAccessDenied"));
        let failed = reader.new_mail(&account, None, since(), deadline()).await;
        match failed.unwrap_err() {
            ReadError::TokenRefused(_) => assert!(is_token),
            ReadError::Forbidden(_) => assert!(!is_token),
            error => panic!("{error}"),
        }
    }
}
