//! The addresses that a Gmail mailbox may send as: `users.settings.sendAs.list`. Gmail silently replaces any other
//! address in a From header with the primary one.

use std::time::Duration;

use reqwest::Client;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::Value;

use super::verdict;
use crate::answer::{ProviderResponse, no_answer};
use crate::mail::reader::ReadError;
use crate::mail::transport::MailboxAccess;
use mailgate_settings::PluginSettings;
use mailgate_types::clock::SharedClock;

/// Scopes that allow reading the list.
pub const SCOPES: [&str; 4] = [
    "https://mail.google.com/",
    "https://www.googleapis.com/auth/gmail.modify",
    "https://www.googleapis.com/auth/gmail.readonly",
    "https://www.googleapis.com/auth/gmail.settings.basic",
];

/// The largest response that is read. Each entry may include a signature of 10,000 characters.
const MAXIMUM_ANSWER: usize = 4 * 1024 * 1024;

const PATH: &str = "/gmail/v1/users/me/settings/sendAs";

/// The fields requested for each address; without this, the response includes signatures.
const FIELDS: (&str, &str) = ("fields", "sendAs(sendAsEmail,isPrimary,verificationStatus)");

/// The send-as list of a Gmail mailbox.
#[derive(Debug)]
pub struct SendAs {
    http: Client,
    base: String,
    limit: Duration,
    clock: SharedClock,
}

/// An entry of the list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    send_as_email: String,
    #[serde(default)]
    is_primary: bool,
    /// Absent for the primary address.
    verification_status: Option<String>,
}

impl SendAs {
    /// Uses the API at `settings.api_base_url`; `limit` is the timeout of a request.
    #[must_use]
    pub fn new(
        settings: &PluginSettings,
        http: Client,
        limit: Duration,
        clock: SharedClock,
    ) -> Self {
        Self {
            http,
            base: settings.api_base_url.clone(),
            limit,
            clock,
        }
    }

    /// Whether the granted scopes allow reading the list.
    #[must_use]
    pub fn may_read(&self, scopes: &[String]) -> bool {
        scopes.iter().any(|scope| SCOPES.contains(&scope.as_str()))
    }

    /// The verified addresses, of any form and number.
    pub async fn list(&self, account: &MailboxAccess) -> Result<Vec<String>, ReadError> {
        let response = self
            .http
            .get(format!("{}{PATH}", self.base))
            .bearer_auth(account.access_token.expose_secret())
            .timeout(self.limit)
            .query(&[FIELDS])
            .send()
            .await
            .map_err(|error| ReadError::unavailable(no_answer(error)))?;
        let now = self.clock.now();
        let answer = ProviderResponse::read(response, MAXIMUM_ANSWER, now).await;
        if answer.status != 200 {
            return Err(verdict::not_read(&answer, now));
        }
        accepted(answer.body).ok_or_else(|| ReadError::unavailable("HTTP 200 of no known form"))
    }
}

/// The addresses in a response that may be sent as, skipping unrecognized entries; `None` if it isn't a response of
/// this call.
pub(super) fn accepted(body: Value) -> Option<Vec<String>> {
    let Value::Object(mut answer) = body else {
        return None;
    };
    // Every account has at least its own address.
    let Some(Value::Array(entries)) = answer.remove("sendAs") else {
        return None;
    };
    let entries = entries
        .into_iter()
        .filter_map(|entry| serde_json::from_value::<Entry>(entry).ok());
    let accepted = entries.filter(|entry| match &entry.verification_status {
        Some(status) => status == "accepted",
        None => entry.is_primary,
    });
    Some(accepted.map(|entry| entry.send_as_email).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn only_what_is_verified_is_told() {
        let answer = json!({ "sendAs": [
            { "sendAsEmail": "ada@example.com", "isPrimary": true, "isDefault": true },
            { "sendAsEmail": "sales@example.com", "verificationStatus": "accepted", "treatAsAlias": true },
            { "sendAsEmail": "new@example.com", "verificationStatus": "pending" },
            { "sendAsEmail": "odd@example.com", "verificationStatus": "verificationStatusUnspecified" },
            { "sendAsEmail": "unsaid@example.com" },
            { "sendAsEmail": 7, "verificationStatus": "accepted" },
            "sales@example.org",
            null,
        ] });
        let expected = ["ada@example.com", "sales@example.com"].map(str::to_owned);
        assert_eq!(accepted(answer), Some(expected.to_vec()));
        assert_eq!(accepted(json!({ "sendAs": [] })), Some(Vec::new()));
        for nonsense in [
            json!({}),
            json!(null),
            json!([]),
            json!({ "sendAs": 7 }),
            json!("x"),
        ] {
            assert_eq!(accepted(nonsense), None);
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(text in ".{0,80}", status in ".{0,20}|accepted", primary: bool) {
            let entry = json!({
                "sendAsEmail": text, "verificationStatus": status, "isPrimary": primary,
            });
            let told = accepted(json!({ "sendAs": [entry] })).unwrap_or_default();
            prop_assert_eq!(told.len(), usize::from(status == "accepted"));
        }
    }
}
