//! A client of `POST /send`.

use mailgate_types::ids::LogId;
use serde_json::{Value, json};

use super::clients::{Account, Unreached};
use super::ledger::{Message, Told};
use crate::command_line::process::http_client_trusting;

/// Keeps its connection as long as it lasts.
pub struct RestClient {
    account: Account,
    http: reqwest::Client,
}

impl RestClient {
    pub fn new(account: Account) -> Self {
        Self {
            http: http_client_trusting(&account.ca_file),
            account,
        }
    }

    pub async fn send(&self, message: &Message) -> Result<Told, Unreached> {
        let mut body = json!({
            "pk": self.account.pushable_key,
            "to": message.recipient,
            "subject": message.marker,
            "body": message.body("\n"),
            "plugin": message.plugin.as_str(),
        });
        if let Some(at) = message.send_at {
            body["send_at"] = json!(at.to_rfc3339());
        }
        let mut request = self
            .http
            .post(format!("{}/send", self.account.base_url))
            .header("x-send-key", &self.account.send_key)
            .json(&body);
        if let Some(key) = &message.key {
            request = request.header("idempotency-key", key);
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() => return Err(Unreached),
            Err(_) => return Ok(Told::Nothing),
        };
        let status = response.status().as_u16();
        let Ok(answer) = response.json::<Value>().await else {
            return Ok(Told::Nothing);
        };
        Ok(told(status, &answer).unwrap_or_else(|| Told::Other(format!("{status} {answer}"))))
    }
}

/// What became of the cancellation of a message.
pub enum Cancelled {
    /// It is cancelled.
    Yes,
    /// It can't be any more.
    No,
    /// Ask again.
    Unknown,
}

impl RestClient {
    /// Cancels a message that waits.
    pub async fn cancel(&self, id: LogId) -> Cancelled {
        let request = self
            .http
            .post(format!("{}/logs/{id}/cancel", self.account.base_url))
            .header("x-api-secret", &self.account.api_secret);
        let Ok(response) = request.send().await else {
            return Cancelled::Unknown;
        };
        let status = response.status().as_u16();
        let Ok(answer) = response.json::<Value>().await else {
            return Cancelled::Unknown;
        };
        match (status, answer["code"].as_str()) {
            (200, _) => Cancelled::Yes,
            (409, Some("message_sent" | "message_failed" | "outcome_unknown")) => Cancelled::No,
            (409, Some("message_in_progress")) | (503 | 504, _) => Cancelled::Unknown,
            _ => panic!("{id}: {status} {answer}"),
        }
    }
}

fn told(status: u16, answer: &Value) -> Option<Told> {
    let log = || -> Option<LogId> { answer["log_id"].as_str()?.parse().ok() };
    match (status, answer["status"].as_str(), answer["code"].as_str()) {
        (200, Some("sent"), _) => Some(Told::Sent(log()?)),
        (202, Some("failed_temp"), _) => Some(Told::Queued(log()?)),
        (202, Some("scheduled"), _) => Some(Told::Scheduled(log()?)),
        (422, ..) if answer["errors"][0]["field"] == "send_at" => Some(Told::Late),
        (409, _, Some("idempotency_key_in_flight")) => Some(Told::InFlight),
        (502, _, Some("provider_rejected" | "outcome_unknown")) => {
            let text = answer["detail"].as_str()?.to_owned();
            Some(Told::Refused(Some(log()?), text))
        }
        (500, _, Some("outcome_unknown")) => Some(Told::Nothing),
        (503, _, Some("unavailable" | "overloaded")) => Some(Told::NotTaken),
        _ => None,
    }
}
