//! The rules of a run's history see what breaks them: a history that keeps all of them, and what each makes of one that
//! doesn't.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "history.rs"]
#[expect(
    dead_code,
    reason = "what reads and writes a file is the program's and the chaos test's"
)]
mod history;

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_types::ids::{LogId, WebhookMessageId};
use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};
use uuid::Uuid;

use history::{
    Arrival, AttemptRow, Billed, Entry, EventRow, History, KeyRow, LogRow, Message, SpoolRow,
    Tables, Told, rules,
};

const APP: Uuid = Uuid::from_u128(1);

fn id(number: u128) -> Uuid {
    Uuid::from_u128(100 + number)
}

fn noon() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::hours(12)
}

fn message(marker: &str, recipient: &str) -> Message {
    Message {
        marker: marker.to_owned(),
        plugin: Plugin::A,
        recipient: recipient.to_owned(),
        key: None,
        lines: 1,
        in_a_long_life: false,
        send_at: None,
        is_cancelled: false,
    }
}

fn log(number: u128, marker: &str, to: &str, status: &str, error: Option<&str>) -> LogRow {
    LogRow {
        id: id(number),
        app_id: APP,
        status: status.to_owned(),
        error_message: error.map(str::to_owned),
        from_address: "ada@example.com".to_owned(),
        to_address: to.to_owned(),
        subject: marker.to_owned(),
        plugin: "plugin_a".to_owned(),
        message_id: Some(format!("<{marker}@example.com>")),
    }
}

fn event(number: u128, log: &LogRow, name: &str, mut data: Value) -> EventRow {
    data["log_id"] = json!(log.shown_id());
    data["from_address"] = json!(log.from_address);
    data["to_address"] = json!(log.to_address);
    data["subject"] = json!(log.subject);
    data["plugin"] = json!(log.plugin);
    let body = json!({
        "event": name, "app_id": APP.to_string(), "timestamp": "2026-01-01T00:00:00Z", "data": data,
    });
    EventRow {
        id: Uuid::from_u128(1_000 + number),
        app_id: APP,
        event: name.to_owned(),
        log_id: Some(log.id),
        body: body.to_string(),
    }
}

fn arrival(log: &LogRow) -> Arrival {
    Arrival {
        mailbox: "ada@example.com".to_owned(),
        recipients: vec![log.to_address.clone()],
        markers: 3,
        at: noon(),
        log_id: Some(log.shown_id()),
    }
}

/// One message of each kind: `sent`, under a key; `scheduled`, and sent; `waiting`; `cancelled`; `refused`; `lost`, whose
/// outcome nobody knows; and `untaken`, whose sender was told so, also by the gateway that took it over.
fn kept() -> History {
    let bob = "bob@example.com";
    let permfail = "permfail@example.com";
    let unknown = "it may have arrived, and was not sent again";
    let sent = log(1, "sent", bob, "sent", None);
    let scheduled = log(2, "scheduled", bob, "sent", None);
    let waiting = log(3, "waiting", bob, "failed_temp", Some("451 later"));
    let cancelled = log(4, "cancelled", bob, "failed_perm", Some("Cancelled"));
    let refused = log(
        5,
        "refused",
        permfail,
        "failed_perm",
        Some("550 (permfail)"),
    );
    let lost = log(6, "lost", bob, "failed_perm", Some(unknown));
    let untaken = log(7, "untaken", bob, "failed_perm", Some(NOTHING_SENT));
    let entry = |log: &LogRow, told: Told| Entry {
        message: message(&log.subject, &log.to_address),
        told,
    };
    let mut entries = vec![
        entry(&sent, Told::Sent(LogId(sent.id))),
        entry(&scheduled, Told::Scheduled(LogId(scheduled.id))),
        entry(&waiting, Told::Queued(LogId(waiting.id))),
        entry(&cancelled, Told::Cancelled(LogId(cancelled.id))),
        entry(&refused, Told::Refused(None, "550 (permfail)".to_owned())),
        entry(&lost, Told::Nothing),
        Entry {
            message: message("untaken", bob),
            told: Told::NotTaken,
        },
    ];
    entries[0].message.key = Some("key".to_owned());
    entries[1].message.send_at = Some(noon());
    entries[3].message.is_cancelled = true;
    let end = |log: &LogRow| json!({ "error": log.error_message, "final": true });
    let message_id = |log: &LogRow| json!({ "message_id": log.message_id });
    let later = json!({ "error": "451 later", "retry_count": 1, "next_retry_at": "x" });
    let events = vec![
        event(1, &sent, "email.sent", message_id(&sent)),
        event(2, &scheduled, "email.sent", message_id(&scheduled)),
        event(3, &waiting, "email.failed_temp", later),
        event(4, &cancelled, "email.failed_perm", end(&cancelled)),
        event(5, &refused, "email.failed_perm", end(&refused)),
        event(6, &lost, "email.failed_perm", end(&lost)),
        event(
            7,
            &untaken,
            "email.failed_perm",
            json!({ "error": "it may have arrived (the gateway stopped)", "final": true }),
        ),
    ];
    let content = b"waiting waiting waiting".to_vec();
    let spooled = SpoolRow {
        id: waiting.id,
        state: "deferred".to_owned(),
        attempts: 1,
        is_held: false,
        is_logged: true,
        outcome_unknown: false,
        size_bytes: i64::try_from(content.len()).unwrap(),
        pieces: 1,
        last_piece: Some(0),
        content: Some(content),
    };
    let attempt = AttemptRow {
        log_id: waiting.id,
        number: 1,
        status: "failed_temp".to_owned(),
        error_message: Some("451 later".to_owned()),
    };
    let key = KeyRow {
        log_id: sent.id,
        answer: Some(json!({ "outcome": "sent" })),
    };
    let arrived = [&sent, &scheduled].map(|log| (log.subject.clone(), vec![arrival(log)]));
    let received = (events.iter()).map(|event| WebhookMessageId(event.id).to_string());
    History {
        arrived: arrived.into(),
        mailboxes: [(Plugin::A, "ada@example.com".to_owned())].into(),
        heard: APP,
        unheard: None,
        received: Some(received.collect()),
        billed: Some(Billed {
            connected: 3,
            active: 3,
            quantity: Some(3),
        }),
        entries,
        tables: Tables {
            logs: [sent, scheduled, waiting, cancelled, refused, lost, untaken]
                .map(|log| (log.id, log))
                .into(),
            spool: [(spooled.id, spooled)].into(),
            attempts: vec![attempt],
            keys: [("key".to_owned(), key)].into(),
            events,
            ..Tables::default()
        },
    }
}

#[test]
fn what_keeps_the_rules_breaks_none() {
    assert_eq!(rules::broken(&kept()), <[String; 0]>::default());
}

/// What a log row says whose sender was told to try again.
const NOTHING_SENT: &str = "Nothing was sent: the gateway lost its database";

fn log_of(history: &mut History, number: u128) -> &mut LogRow {
    history.tables.logs.get_mut(&id(number)).unwrap()
}

/// What is done to the history that keeps the rules, and what is said of it then.
type Broken = (fn(&mut History), &'static str);

const BROKEN: [Broken; 26] = [
    // Answered sent: arrived, once.
    (|it| drop(it.arrived.remove("sent")), "sent: told wrongly"),
    (
        |it| {
            let copies = it.arrived.get_mut("sent").unwrap();
            copies.push(copies[0].clone());
        },
        "sent: it is there twice",
    ),
    (
        |it| it.arrived.get_mut("sent").unwrap()[0].markers = 2,
        "sent: arrived as",
    ),
    (
        |it| it.arrived.get_mut("sent").unwrap()[0].mailbox = String::new(),
        "sent: arrived as",
    ),
    (
        |it| drop(it.tables.logs.remove(&id(1))),
        "sent: told wrongly",
    ),
    (
        |it| log_of(it, 1).status = String::new(),
        "sent: told wrongly",
    ),
    // Refused, not taken, cancelled, waiting: it never arrives.
    (
        |it| {
            let copies = it.arrived["sent"].clone();
            it.arrived.insert("untaken".to_owned(), copies);
        },
        "untaken: told wrongly",
    ),
    (
        |it| {
            let copy = arrival(log_of(it, 7));
            it.arrived.insert("untaken".to_owned(), vec![copy]);
        },
        "untaken: told wrongly",
    ),
    (
        |it| {
            log_of(it, 7).error_message =
                Some("it may have arrived (the gateway stopped)".to_owned());
        },
        "untaken: told wrongly",
    ),
    (
        |it| {
            let copy = arrival(log_of(it, 5));
            it.arrived.insert("refused".to_owned(), vec![copy]);
        },
        "refused: logged wrongly",
    ),
    (
        |it| {
            let copy = arrival(log_of(it, 4));
            it.arrived.insert("cancelled".to_owned(), vec![copy]);
        },
        "cancelled: told wrongly",
    ),
    (
        |it| {
            let copy = arrival(log_of(it, 3));
            it.arrived.insert("waiting".to_owned(), vec![copy]);
        },
        "waiting: logged wrongly",
    ),
    // Scheduled: never before its time.
    (
        |it| it.arrived.get_mut("scheduled").unwrap()[0].at -= TimeDelta::milliseconds(1),
        "scheduled: left before its time",
    ),
    // Stored: it waits with all of its message.
    (|it| it.tables.spool.clear(), "the spool don't agree"),
    (
        |it| it.tables.spool.get_mut(&id(3)).unwrap().content = Some(b"waiting".to_vec()),
        "in the spool",
    ),
    (
        |it| it.tables.spool.get_mut(&id(3)).unwrap().is_held = true,
        "in the spool",
    ),
    (|it| it.tables.attempts.clear(), "in the spool"),
    // A message of nobody.
    (
        |it| drop(it.entries.remove(0)),
        "sent: it is known, and no client was told of it",
    ),
    // Whose outcome must be known.
    (
        |it| it.entries[5].message.in_a_long_life = true,
        "lost: logged wrongly",
    ),
    // Events as the log, each received.
    (
        |it| drop(it.tables.events.remove(0)),
        "0 email.sent instead of one",
    ),
    (
        |it| {
            let mut again = it.tables.events[4].clone();
            again.id = Uuid::from_u128(9);
            it.tables.events.push(again);
        },
        "2 email.failed_perm instead of one",
    ),
    (
        |it| it.received = Some(BTreeSet::new()),
        "it never reached its endpoint",
    ),
    // A key is one message's.
    (
        |it| it.tables.keys.get_mut("key").unwrap().log_id = id(5),
        "key: it stands for",
    ),
    (|it| it.tables.keys.clear(), "key: it stands for None"),
    // Counters and charges.
    (
        |it| it.tables.wrong_counters.push("x".to_owned()),
        "counters",
    ),
    (
        |it| it.billed.as_mut().unwrap().quantity = Some(4),
        "billing",
    ),
];

#[test]
fn what_breaks_a_rule_is_seen() {
    for (number, (harm, expected)) in BROKEN.into_iter().enumerate() {
        let mut history = kept();
        harm(&mut history);
        let said = rules::broken(&history);
        assert!(
            said.iter().any(|line| line.contains(expected)),
            "{number}: {expected}: {said:?}"
        );
    }
}
