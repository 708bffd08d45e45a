//! What becomes of each message, and what comes back.

/// Messages that wait for their next attempt, all among the latest.
pub(super) const WAITING: [usize; 15] = [
    1_848, 1_861, 1_877, 1_890, 1_904, 1_915, 1_926, 1_938, 1_947, 1_955, 1_964, 1_971, 1_979,
    1_986, 1_991,
];

/// The one of these that the provider may have.
const UNKNOWN: usize = 1_904;

/// Messages that were scheduled, and cancelled before their time.
pub(super) const CANCELLED: [usize; 8] = [212, 530, 871, 1_103, 1_402, 1_633, 1_790, 1_901];

/// A message of which nobody knows whether it has arrived.
const UNCONFIRMED: usize = 1_512;

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was sent after so many failed attempts.
    Sent(usize),
    /// It has failed for good after so many attempts that failed for now.
    Failed(usize),
    Unconfirmed,
    Cancelled,
    Waiting,
    /// It waits, and may have arrived.
    Unknown,
}

/// What has come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Response {
    Nothing,
    Bounce,
    Delay,
    Reply,
}

/// What becomes of the message with this number.
pub(super) fn fate(number: usize) -> Fate {
    if number == UNKNOWN {
        Fate::Unknown
    } else if WAITING.contains(&number) {
        Fate::Waiting
    } else if CANCELLED.contains(&number) {
        Fate::Cancelled
    } else if number == UNCONFIRMED {
        Fate::Unconfirmed
    } else if number % 16 == 7 {
        Fate::Failed(if number.is_multiple_of(5) { 3 } else { 0 })
    } else if number % 31 == 11 {
        Fate::Sent(1 + number % 3)
    } else {
        Fate::Sent(0)
    }
}

/// What comes back for it.
pub(super) fn response(number: usize, fate: Fate) -> Response {
    if !matches!(fate, Fate::Sent(_)) {
        Response::Nothing
    } else if number % 53 == 5 {
        Response::Bounce
    } else if number % 167 == 9 {
        Response::Delay
    } else if number % 9 == 4 {
        Response::Reply
    } else {
        Response::Nothing
    }
}
