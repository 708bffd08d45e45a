//! What must hold of a run, whatever went wrong in it:
//!
//! - answered `sent`: it has arrived, once, and the log says so; refused or not taken: it never arrives;
//! - stored: it has one end, or waits with all of its message; cancelled: it never arrives; scheduled: never before its
//!   time, by the provider's clock;
//! - a key stands for one message, whose end it tells;
//! - each end and each failed attempt has one event, and each event has reached its endpoint;
//! - counters say what the log says, and what is billed is what is connected.

use std::collections::{BTreeSet, HashMap};

use mailgate_types::ids::{LogId, WebhookMessageId};
use mailgate_types::plugin::Plugin;
use memchr::memmem;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Arrival, AttemptRow, Entry, EventRow, History, LogRow, Message, Tables, Told};

/// Stands in what is told of a message that was in the hands of a gateway taken for dead.
const TAKEN_OVER: &str = "gateway stopped";

/// Marks of a message: in its subject, and at both ends of its body.
const MARKERS: usize = 3;

/// What breaks a rule, one line each.
pub fn broken(history: &History) -> Vec<String> {
    let tables = &history.tables;
    let mut logs = HashMap::<&str, Vec<&LogRow>>::new();
    // One whose sender was told to try again is none, as it says; nothing may arrive under its id.
    for log in tables.logs.values().filter(|log| !log.is_untaken()) {
        logs.entry(&log.subject).or_default().push(log);
    }
    let mut check = Check {
        history,
        tables,
        heard: history.heard,
        unheard: history.unheard,
        wrong: Vec::new(),
    };
    let mut known = HashMap::new();
    for entry in &history.entries {
        let marker = entry.message.marker.as_str();
        let arrived = history.arrived.get(marker).map_or(&[][..], Vec::as_slice);
        let logs = logs.get(marker).map_or(&[][..], Vec::as_slice);
        check.entry(entry, arrived, logs);
        if known.insert(marker, entry).is_some() {
            check.wrong(marker, "it is in the ledger twice");
        }
    }
    let arrived = history.arrived.keys().map(String::as_str);
    for marker in arrived.chain(logs.into_keys()) {
        if !known.contains_key(marker) {
            check.wrong(marker, "it is known, and no client was told of it");
        }
    }
    check.log_rows();
    check.spool_rows();
    check.events();
    check.received();
    check.keys(&known);
    check.billed();
    for counter in &tables.wrong_counters {
        check.wrong("counters", &format!("{counter:?}"));
    }
    for webhook in &tables.wrong_webhooks {
        check.wrong("webhooks", webhook);
    }
    check.wrong
}

struct Check<'a> {
    history: &'a History,
    tables: &'a Tables,
    /// The app that an endpoint listens to.
    heard: Uuid,
    /// The one that nobody listens to.
    unheard: Option<Uuid>,
    wrong: Vec<String>,
}

impl Check<'_> {
    fn wrong(&mut self, what: &str, why: &str) {
        self.wrong.push(format!("{what}: {why}"));
    }

    fn is(&mut self, holds: bool, what: &str, why: impl FnOnce() -> String) {
        if !holds {
            self.wrong(what, &why());
        }
    }

    /// One message, from what its client was told to where it is.
    fn entry(&mut self, entry: &Entry, arrived: &[Arrival], logs: &[&LogRow]) {
        let (message, told) = (&entry.message, &entry.told);
        let marker = &message.marker;
        let shown = || {
            let logs: Vec<String> = (logs.iter())
                .map(|log| format!("{} {} {:?}", log.shown_id(), log.status, log.error()))
                .collect();
            format!(
                "to {} by {}, told {told:?}, arrived {} times, log {logs:?}",
                message.recipient,
                message.plugin,
                arrived.len()
            )
        };
        if arrived.len() > 1 || logs.len() > 1 {
            self.wrong(marker, &format!("it is there twice: {}", shown()));
            return;
        }
        let (arrival, log) = (arrived.first(), logs.first());
        let agrees = match (told, log) {
            (Told::Nothing, log) => log.is_some() || arrival.is_none(),
            (Told::NotTaken | Told::Late, log) => log.is_none() && arrival.is_none(),
            (Told::Sent(id), Some(log)) => {
                log.id == id.0 && log.status == "sent" && arrival.is_some()
            }
            (Told::Queued(id) | Told::Scheduled(id), Some(log)) => {
                log.id == id.0 && !log.is_cancelled()
            }
            (Told::Cancelled(id), Some(log)) => {
                log.id == id.0 && log.is_cancelled() && arrival.is_none()
            }
            (Told::Refused(id, _), Some(log)) => {
                log.status == "failed_perm" && id.is_none_or(|id| log.id == id.0)
            }
            _ => false,
        };
        self.is(agrees, marker, || format!("told wrongly: {}", shown()));
        if let Some(log) = log {
            let is_true = match log.status.as_str() {
                "sent" => arrival.is_some(),
                "failed_temp" => arrival.is_none(),
                _ if log.is_unverifiable() => may_be_unknown(message),
                _ if log.is_cancelled() => arrival.is_none() && message.is_cancelled,
                _ => arrival.is_none() && is_refusal(&message.recipient, log),
            };
            self.is(is_true, marker, || format!("logged wrongly: {}", shown()));
        }
        if let Some(arrival) = arrival {
            let is_whole = arrival.markers == MARKERS
                && Some(&arrival.mailbox) == self.history.mailboxes.get(&message.plugin)
                && arrival.recipients == [message.recipient.as_str()];
            self.is(is_whole, marker, || format!("arrived as {arrival:?}"));
            let is_early = message.send_at.is_some_and(|at| arrival.at < at);
            self.is(!is_early, marker, || {
                format!("left before its time: {}", shown())
            });
            let id = log.map(|log| log.shown_id());
            let is_same = arrival.log_id.is_none() || arrival.log_id == id;
            self.is(is_same, marker, || {
                format!("arrived as {arrival:?}, log {id:?}")
            });
        }
    }

    /// Each log row with its attempts and its place in the spool.
    fn log_rows(&mut self) {
        let mut attempts = HashMap::<Uuid, Vec<&AttemptRow>>::new();
        for attempt in &self.tables.attempts {
            attempts.entry(attempt.log_id).or_default().push(attempt);
        }
        for log in self.tables.logs.values() {
            let of_log = attempts.remove(&log.id).unwrap_or_default();
            let numbered = (1..).zip(&of_log).all(|(number, it)| it.number == number);
            let (last, before) = of_log
                .split_last()
                .map_or((None, &[][..]), |(last, before)| (Some(last), before));
            // A message that was cancelled ended without a further attempt.
            let end = if log.is_cancelled() {
                "failed_temp"
            } else {
                &log.status
            };
            let ended = last.is_none_or(|last| last.status == end)
                && before.iter().all(|it| it.status == "failed_temp");
            let right =
                numbered && ended && [Some(self.heard), self.unheard].contains(&Some(log.app_id));
            self.is(right, &log.subject, || format!("{log:?} with {of_log:?}"));
            let waits = self.tables.spool.contains_key(&log.id);
            self.is(waits == (log.status == "failed_temp"), &log.subject, || {
                format!("{log:?} and the spool don't agree")
            });
        }
        for (id, left) in attempts {
            self.wrong(&LogId(id).to_string(), &format!("has only {left:?}"));
        }
    }

    /// Nothing is held, and what waits has all of its message.
    fn spool_rows(&mut self) {
        for row in self.tables.spool.values() {
            let log = self.tables.logs.get(&row.id);
            let marker = log.map_or("", |log| log.subject.as_str());
            let content = row.content.as_deref().unwrap_or_default();
            let is_whole = i64::try_from(content.len()) == Ok(row.size_bytes)
                && row.last_piece.map(|last| i64::from(last) + 1) == Some(row.pieces)
                && memmem::find_iter(content, marker).count() == MARKERS;
            let waits = row.state == "deferred" && !row.is_held;
            let right = is_whole && waits && row.is_logged && !row.outcome_unknown;
            let attempts = (self.tables.attempts.iter())
                .filter(|attempt| attempt.log_id == row.id)
                .count();
            let right = right && i32::try_from(attempts) == Ok(row.attempts);
            self.is(right && log.is_some(), marker, || {
                let (id, size) = (LogId(row.id), content.len());
                format!("{id} in the spool, {size} bytes, {attempts} attempts: {row:?}")
            });
        }
    }

    /// One event for each end and each failed attempt of the app that is listened to, and no other.
    fn events(&mut self) {
        let mut events = HashMap::<(Uuid, String), Vec<&EventRow>>::new();
        for event in &self.tables.events {
            let id = event.log_id.unwrap_or_default();
            let data: Value = serde_json::from_str(&event.body).unwrap_or_default();
            // The gateway that was taken for dead woke up, and handed over what it had, or what it was told.
            let error = data["data"]["error"].as_str().unwrap_or_default();
            let log = self.tables.logs.get(&id);
            if event.event == "email.failed_perm"
                && error.contains(TAKEN_OVER)
                && log.is_some_and(|log| log.error_message.as_deref() != Some(error))
            {
                continue;
            }
            // Several failures of one message are told apart by their number.
            let name = match data["data"]["retry_count"].as_i64() {
                Some(number) => format!("{} {number}", event.event),
                None => event.event.clone(),
            };
            events.entry((id, name)).or_default().push(event);
        }
        let heard = self.heard;
        let is_heard = |log: &&LogRow| log.app_id == heard;
        for log in self.tables.logs.values().filter(is_heard) {
            let mut data = data_of(log);
            let name = match log.status.as_str() {
                "sent" => {
                    data["message_id"] = json!(log.message_id);
                    "email.sent"
                }
                // It was told of by the gateway that had taken it over.
                "failed_perm" if log.is_untaken() => continue,
                "failed_perm" => {
                    data["error"] = json!(log.error_message);
                    data["final"] = json!(true);
                    "email.failed_perm"
                }
                _ => continue,
            };
            let told = events.remove(&(log.id, name.to_owned()));
            self.event(log, name, &data, told.as_deref());
        }
        for attempt in &self.tables.attempts {
            let log = self.tables.logs.get(&attempt.log_id);
            let Some(log) = log.filter(is_heard) else {
                continue;
            };
            if attempt.status == "failed_temp" {
                let mut data = data_of(log);
                data["error"] = json!(attempt.error_message);
                data["retry_count"] = json!(attempt.number);
                let name = format!("email.failed_temp {}", attempt.number);
                let told = events.remove(&(log.id, name));
                self.event(log, "email.failed_temp", &data, told.as_deref());
            }
        }
        for ((id, name), left) in events {
            let many = left.len();
            self.wrong(&LogId(id).to_string(), &format!("told of by {many} {name}"));
        }
    }

    fn event(&mut self, log: &LogRow, name: &str, data: &Value, told: Option<&[&EventRow]>) {
        let marker = &log.subject;
        let Some([event]) = told else {
            let many = told.map_or(0, <[_]>::len);
            self.wrong(marker, &format!("{many} {name} instead of one"));
            return;
        };
        let mut body: Value = serde_json::from_str(&event.body).unwrap_or_default();
        let has_time = body["timestamp"].take().is_string();
        let next = body["data"]
            .as_object_mut()
            .map(|it| it.remove("next_retry_at"));
        let has_next = next.flatten().is_some_and(|next| next.is_string());
        let app_id = log.app_id.to_string();
        let expected = json!({"event": name, "app_id": app_id, "timestamp": null, "data": data});
        let right = has_time
            && body == expected
            && has_next == (name == "email.failed_temp")
            && event.app_id == log.app_id;
        self.is(right, marker, || format!("{event:?} of {log:?}"));
    }

    /// Every event has reached the endpoint that listens.
    fn received(&mut self) {
        let Some(received) = &self.history.received else {
            return;
        };
        let heard = self.heard;
        let events = self.tables.events.iter();
        let events: BTreeSet<String> = (events.filter(|event| event.app_id == heard))
            .map(|event| WebhookMessageId(event.id).to_string())
            .collect();
        for id in events.symmetric_difference(received) {
            let which = if received.contains(id) {
                "it was received, and is no event"
            } else {
                "it never reached its endpoint"
            };
            self.wrong(id, which);
        }
    }

    /// The provider bills for the mailboxes that are connected.
    fn billed(&mut self) {
        let Some(billed) = self.history.billed else {
            return;
        };
        let right = billed.active == billed.connected && billed.quantity == Some(billed.connected);
        self.is(right, "billing", || format!("{billed:?}"));
    }

    /// Each key stands for the one message of its client, and says what became of it.
    fn keys(&mut self, known: &HashMap<&str, &Entry>) {
        for (key, row) in &self.tables.keys {
            let Some(log) = self.tables.logs.get(&row.log_id) else {
                self.wrong(key, "it stands for a message that is not in the log");
                continue;
            };
            let answer = (row.answer.as_ref()).map(|answer| answer["outcome"].as_str());
            let right = match answer {
                None => log.is_unverifiable(),
                Some(Some("sent")) => log.status == "sent",
                Some(Some("queued")) => true,
                Some(Some("rejected")) => log.status == "failed_perm",
                Some(_) => false,
            };
            self.is(right, key, || format!("it says {answer:?} of {log:?}"));
        }
        for (marker, entry) in known {
            let Some(key) = &entry.message.key else {
                continue;
            };
            let of_key = self.tables.keys.get(key);
            if entry.told == Told::Late {
                self.is(of_key.is_none(), key, || format!("it is taken: {of_key:?}"));
                continue;
            }
            let of_key = of_key.and_then(|row| self.tables.logs.get(&row.log_id));
            let is_its_own = of_key.is_some_and(|log| log.subject == *marker);
            self.is(is_its_own, key, || format!("it stands for {of_key:?}"));
        }
    }
}

/// What every event tells of a message.
fn data_of(log: &LogRow) -> Value {
    json!({
        "log_id": log.shown_id(),
        "from_address": log.from_address,
        "to_address": log.to_address,
        "subject": log.subject,
        "plugin": log.plugin,
    })
}

/// Whether nobody may know what became of a message: its process was killed, its provider took it and
/// cut the connection, or its line broke.
fn may_be_unknown(message: &Message) -> bool {
    !message.in_a_long_life || message.recipient.starts_with("drop@") || message.plugin == Plugin::B
}

/// Whether a message may have ended so: by the provider's own word, or, over the unsteady line, because
/// the provider could not be reached in all of its attempts.
fn is_refusal(recipient: &str, log: &LogRow) -> bool {
    let error = log.error();
    match recipient.split('@').next() {
        Some("permfail") if error.contains("(permfail)") => true,
        Some("tempfail") if error.contains("(tempfail)") => true,
        _ => log.plugin == "plugin_b" && !error.is_empty() && !error.contains("gateway"),
    }
}
