//! What the components show: invented, and the same on every run but for the times.

use chrono::{DateTime, TimeDelta, Utc};

use crate::messages::{Happening, Row};
use crate::overview::attention::Item;
use crate::overview::plots::{Bar, Line, Part, Plot};
use crate::overview::tiles::Tile;
use crate::page::said::Said;
use crate::page::words::{Moment, Status, cancelled, scheduled, status};
use crate::page::wrong::Wrong;
use crate::webhooks::webhook::outcome;
use crate::webhooks::week::{self, Week};
use mailgate_types::log_status::LogStatus;

/// Days of the plot.
const DAYS: i64 = 30;

const fn badge(word: &'static str, class: &'static str) -> Status {
    Status { word, class }
}

fn before(now: DateTime<Utc>, minutes: i64) -> Moment {
    Moment::new(now - TimeDelta::minutes(minutes))
}

/// Every colour, and the words of messages, mailboxes, endpoints and subscriptions.
pub(super) fn badges() -> Vec<Status> {
    let messages = LogStatus::ALL.into_iter().map(status);
    let others = [
        scheduled(),
        cancelled(),
        outcome(true),
        outcome(false),
        badge("Bounced", "bad"),
        badge("Connected", "good"),
        badge("Paused", "busy"),
        badge("Disconnected", "bad"),
        badge("Replaced", "plain"),
        badge("Active", "good"),
        badge("Degraded", "busy"),
        badge("Failing", "bad"),
        badge("No URL", "plain"),
        badge("Trial", "good"),
        badge("Ends soon", "busy"),
        badge("Expired", "bad"),
        badge("Unknown", "plain"),
    ];
    messages.chain(others).collect()
}

/// One of each outcome.
pub(super) fn said() -> [Said; 3] {
    ["saved", "email-asked", "test-failed"].map(Said::of)
}

pub(super) fn tiles() -> [Tile; 4] {
    let tile = |name, number: &str, note: &str| Tile {
        name,
        number: number.to_owned(),
        note: note.to_owned(),
        path: "#tiles".to_owned(),
    };
    [
        tile("Sent", "1\u{202f}204", "+12 % on the week before"),
        tile("Success rate", "98.4 %", "19 failed"),
        tile("Bounced", "7", "−30 % on the week before"),
        tile("Waiting now", "0", ""),
    ]
}

pub(super) fn attention(now: DateTime<Utc>) -> [Item; 3] {
    let item = |status, words: &str, since, action| Item {
        status,
        words: words.to_owned(),
        since,
        path: "#attention".to_owned(),
        action,
    };
    [
        item(
            badge("Disconnected", "bad"),
            "ada@example.com of Example: its access was withdrawn or has expired.",
            Some(before(now, 200)),
            "Reconnect it",
        ),
        item(
            badge("Waiting", "busy"),
            "3 messages waiting.",
            None,
            "View messages to be retried",
        ),
        item(
            badge("Paused", "plain"),
            "An endpoint with a long address, https://hooks.example.com/a/rather/long/path/of/an/endpoint, is paused.",
            None,
            "View",
        ),
    ]
}

/// A month with all outcomes.
pub(super) fn plot() -> Plot {
    let bars = (0..DAYS).map(|day| {
        let good = 20 + day * 37 % 90;
        let mut y = 180;
        let mut parts = Vec::new();
        for (class, height) in [
            ("good", good),
            ("busy", day % 5),
            ("soft", day % 7 * 2),
            ("bad", day % 11),
        ] {
            if height > 0 {
                y -= height;
                parts.push(Part { class, y, height });
            }
        }
        Bar {
            x: 44 + day * 22,
            middle: 55 + day * 22,
            width: 18,
            parts,
            name: match day {
                29 => "Today".to_owned(),
                day if day % 5 == 4 => format!("{} May", day + 1),
                _ => String::new(),
            },
            title: format!("{good} sent"),
            path: "#plot".to_owned(),
        }
    });
    Plot {
        lines: [(180, "0"), (94, "50"), (8, "100")].map(|(y, number)| Line {
            y,
            number: number.to_owned(),
        }),
        bars: bars.collect(),
    }
}

/// A week with a bad day.
pub(super) fn week() -> Week {
    let days = [
        (30, 0),
        (24, 0),
        (36, 2),
        (10, 24),
        (0, 0),
        (28, 0),
        (33, 1),
    ];
    let bars = days
        .iter()
        .zip(0_usize..)
        .map(|((good, bad), place)| week::Bar {
            x: place * 16,
            good_y: 40 - good,
            good_height: *good,
            bad_y: 40 - good - bad,
            bad_height: *bad,
            day: format!("2026-05-{:02}", place + 1),
            successes: good.to_string(),
            failures: bad.to_string(),
        });
    Week {
        rate: "85.6%".to_owned(),
        words: "161 of 188 attempts accepted".to_owned(),
        bars: bars.collect(),
    }
}

pub(super) fn rows(now: DateTime<Utc>) -> Vec<Row> {
    let row = |to: &str, status, subject: &str, minutes| Row {
        id: "example".to_owned(),
        to: to.to_owned(),
        from: "ada@example.com".to_owned(),
        app: "Example app".to_owned(),
        status,
        subject: subject.to_owned(),
        at: before(now, minutes),
    };
    vec![
        row(
            "bob@example.com",
            status(LogStatus::Sent),
            "Your invoice of May",
            2,
        ),
        row(
            "a.rather.long.address.that.ends.in.an.ellipsis@subdomain.example.com",
            status(LogStatus::FailedTemp),
            "A subject that is much longer than the room it has, so that it ends in an ellipsis and is whole in its title",
            90,
        ),
        row(
            "carol@example.com",
            status(LogStatus::FailedPerm),
            "",
            2_000,
        ),
        row("dora@example.com", scheduled(), "請求書のお知らせ", -300),
        row(
            "emil@example.com",
            badge("Bounced", "bad"),
            "تأكيد الطلب",
            700_000,
        ),
    ]
}

pub(super) fn happenings(now: DateTime<Utc>) -> [Happening; 5] {
    let at = |minutes| now - TimeDelta::minutes(minutes);
    let mut bounced =
        Happening::new(at(2), "Bounced", badge("Bounced", "bad")).saying("550 5.1.1 No such user");
    bounced.path.push_str("#timeline");
    [
        Happening::new(
            at(9),
            "Accepted by the gateway (REST)",
            badge("Accepted", "plain"),
        ),
        Happening::new(at(8), "First attempt", status(LogStatus::FailedTemp))
            .saying("452 4.2.2 The email account that you tried to reach is over quota"),
        Happening::new(at(3), "Second attempt", status(LogStatus::Sent)).saying("250 2.0.0 OK"),
        bounced,
        Happening::undated(now, "Webhook delivery", badge("Planned", "busy")),
    ]
}

/// A form's errors.
pub(super) fn wrong() -> Wrong {
    let mut wrong = Wrong::one("wrong-name", "must have at most 255 characters");
    wrong.add("wrong-tick", "must be set with several users");
    wrong.add("wrong-url", "must begin with https://");
    wrong
}
