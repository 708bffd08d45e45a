//! The stand-in's mailbox: messages with labels, and a history of what was added.

use std::cell::Cell;
use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use mail_parser::MessageParser;
use serde_json::{Value, json};

struct Kept {
    id: String,
    label: &'static str,
    headers: Vec<(String, String)>,
    /// As it came, where that was said.
    raw: Vec<u8>,
    /// Unix seconds.
    at: i64,
    /// Of the record that added it.
    history_id: u64,
    /// Lists name it, but it is gone.
    lost: bool,
}

/// One mailbox; history numbers grow by three, as those of a real one have gaps.
pub(super) struct Mailbox {
    kept: Vec<Kept>,
    history_id: u64,
    forgotten: u64,
    /// Lists don't name the newest message yet.
    is_newest_hidden: Cell<bool>,
    renames: bool,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            history_id: 1_000,
            forgotten: 0,
            is_newest_hidden: Cell::new(false),
            renames: false,
        }
    }
}

impl Mailbox {
    fn add(&mut self, label: &'static str, headers: Vec<(String, String)>, at: i64) -> String {
        self.history_id += 3;
        let id = format!("18c{:x}", self.history_id);
        self.kept.push(Kept {
            id: id.clone(),
            label,
            headers,
            raw: Vec::new(),
            at,
            history_id: self.history_id,
            lost: false,
        });
        id
    }

    pub(super) fn receive(&mut self, headers: &[(&str, &str)], at: i64) -> String {
        let headers = (headers.iter())
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        self.add("INBOX", headers, at)
    }

    /// A whole message comes in.
    pub(super) fn receive_raw(&mut self, label: &'static str, raw: &[u8], at: i64) -> String {
        let parsed = MessageParser::new().parse_headers(raw).expect("a message");
        let headers = (parsed.headers_raw())
            .map(|(name, value)| {
                let value: Vec<&str> = value.split_whitespace().collect();
                (name.to_owned(), value.join(" "))
            })
            .collect();
        let id = self.add(label, headers, at);
        self.kept.last_mut().expect("it was added").raw = raw.to_vec();
        id
    }

    pub(super) fn keep_sent(&mut self, raw: &[u8]) -> String {
        let parsed = MessageParser::new().parse_headers(raw).expect("a message");
        let own = parsed.message_id().unwrap_or_default();
        let id = if self.renames {
            format!("CAF-{}@mail.gmail.example", self.kept.len())
        } else {
            own.to_owned()
        };
        let mut headers = vec![("Message-Id".to_owned(), format!("<{id}>"))];
        if let Some(own) = parsed.header_raw("X-Mailgate-Id") {
            headers.push(("X-Mailgate-Id".to_owned(), own.trim().to_owned()));
        }
        // After any moment that is asked for.
        self.add("SENT", headers, 4_000_000_000)
    }

    /// From now on what is sent gets another Message-ID, as the real one was seen to do.
    pub(super) fn rename(&mut self) {
        self.renames = true;
    }

    pub(super) fn hide_newest_from_next_list(&self) {
        self.is_newest_hidden.set(true);
    }

    pub(super) fn lose(&mut self, id: &str) {
        let kept = self.kept.iter_mut().find(|kept| kept.id == id);
        kept.expect("it is there").lost = true;
    }

    pub(super) fn forget_history(&mut self) {
        self.forgotten = self.history_id;
        self.history_id += 3;
    }

    pub(super) fn profile(&self, address: &str) -> Value {
        json!({
            "emailAddress": address,
            "messagesTotal": self.kept.len(),
            "threadsTotal": self.kept.len(),
            "historyId": self.history_id.to_string(),
        })
    }

    /// Newest first, a page at once.
    pub(super) fn list(&self, parameters: &HashMap<String, String>) -> Value {
        let is_junk = parameters
            .get("labelIds")
            .is_some_and(|label| label == "SPAM");
        let is_asked = parameters
            .get("includeSpamTrash")
            .is_some_and(|asked| asked == "true");
        assert!(
            !is_junk || is_asked,
            "spam is listed only where it is asked for"
        );
        let query = parameters.get("q").map_or("", String::as_str);
        let matches = |kept: &&Kept| {
            let label = parameters.get("labelIds");
            label.is_none_or(|label| kept.label == label)
                && match query.split_once(':') {
                    Some(("rfc822msgid", id)) => {
                        let id = format!("<{id}>");
                        (kept.headers.iter()).any(|(name, value)| {
                            name.eq_ignore_ascii_case("message-id") && *value == id
                        })
                    }
                    Some(("after", seconds)) => kept.at > seconds.parse::<i64>().expect("seconds"),
                    _ => panic!("no query of ours: {query}"),
                }
        };
        let hidden = usize::from(self.is_newest_hidden.take());
        let found: Vec<Value> = (self.kept.iter().rev().skip(hidden).filter(matches))
            .map(|kept| json!({ "id": kept.id, "threadId": kept.id }))
            .collect();
        let (page, next) = page(&found, parameters);
        // With nothing to list, the list is left out.
        let mut answer = json!({ "resultSizeEstimate": found.len() });
        if !page.is_empty() {
            answer["messages"] = page.into();
        }
        if let Some(next) = next {
            answer["nextPageToken"] = next.into();
        }
        answer
    }

    pub(super) fn raw(&self, id: &str) -> Option<Value> {
        let kept = self.kept.iter().find(|kept| kept.id == id && !kept.lost)?;
        let raw = URL_SAFE.encode(&kept.raw);
        Some(json!({
            "id": id,
            "threadId": id,
            "labelIds": [kept.label],
            "sizeEstimate": kept.raw.len(),
            "raw": raw,
        }))
    }

    pub(super) fn metadata(&self, id: &str, names: &[String]) -> Option<Value> {
        let kept = self.kept.iter().find(|kept| kept.id == id && !kept.lost)?;
        let headers: Vec<Value> = (kept.headers.iter())
            .filter(|(name, _)| names.contains(&name.to_ascii_lowercase()))
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect();
        Some(json!({
            "id": id,
            "threadId": id,
            "labelIds": [kept.label],
            "historyId": kept.history_id.to_string(),
            "sizeEstimate": kept.raw.len(),
            "internalDate": (kept.at * 1_000).to_string(),
            "payload": { "mimeType": "text/plain", "headers": headers },
        }))
    }

    /// Oldest first, a page at once; nothing where it is asked for too far back.
    pub(super) fn history(&self, parameters: &HashMap<String, String>) -> Option<Value> {
        let start: u64 = parameters["startHistoryId"].parse().expect("a number");
        if start < self.forgotten {
            return None;
        }
        assert_eq!(parameters["historyTypes"], "messageAdded");
        let label = &parameters["labelId"];
        let records: Vec<Value> = (self.kept.iter())
            .filter(|kept| kept.history_id > start && kept.label == label)
            .map(|kept| {
                let message =
                    json!({ "id": kept.id, "threadId": kept.id, "labelIds": [kept.label] });
                json!({
                    "id": kept.history_id.to_string(),
                    "messages": [{ "id": kept.id, "threadId": kept.id }],
                    "messagesAdded": [{ "message": message }],
                })
            })
            .collect();
        let (page, next) = page(&records, parameters);
        let mut answer = json!({ "historyId": self.history_id.to_string() });
        if !page.is_empty() {
            answer["history"] = page.into();
        }
        if let Some(next) = next {
            answer["nextPageToken"] = next.into();
        }
        Some(answer)
    }
}

/// The page that is asked for, and the token of the next one.
fn page(all: &[Value], parameters: &HashMap<String, String>) -> (Vec<Value>, Option<String>) {
    let number = |name: &str| parameters.get(name).map(|value| value.parse().unwrap());
    let start: usize = number("pageToken").unwrap_or(0);
    let end = all.len().min(start + number("maxResults").unwrap_or(100));
    let next = (end < all.len()).then(|| end.to_string());
    (all[start..end].to_vec(), next)
}
