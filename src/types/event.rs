//! What happens to an app's mail and users, as its webhooks tell it: the catalogue.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::ids::{AppId, CredentialId, LogId};
use super::moment::iso8601;
use super::plugin::Plugin;

/// One event with its data. The fields are the contract's, one for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// A message was sent.
    EmailSent {
        /// Which one.
        #[serde(flatten)]
        email: EmailEvent,
        /// The Message-ID header.
        message_id: Option<String>,
    },
    /// An attempt failed; the gateway tries again.
    EmailFailedTemp {
        /// Which message.
        #[serde(flatten)]
        email: EmailEvent,
        /// Why.
        error: String,
        /// Attempts that have failed so far.
        retry_count: i32,
        /// ISO 8601, UTC.
        next_retry_at: String,
    },
    /// A message will not be sent.
    EmailFailedPerm {
        /// Which one.
        #[serde(flatten)]
        email: EmailEvent,
        /// Why.
        error: String,
        /// Always true: no attempt follows.
        r#final: bool,
    },
    /// A reply to a message that was sent.
    EmailReply {
        /// The Message-ID of the message that is answered.
        message_id: String,
        /// Who replied.
        from_address: String,
        /// The mailbox.
        to_address: String,
        /// The reply's subject.
        subject: String,
    },
    /// A mailbox was connected.
    UserConnected(MailboxEvent),
    /// A mailbox is no longer connected.
    UserDisconnected {
        /// Which one.
        #[serde(flatten)]
        mailbox: MailboxEvent,
        /// Why.
        reason: DisconnectReason,
    },
}

/// Which message an event tells of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmailEvent {
    /// `log_…`
    #[serde(serialize_with = "shown")]
    pub log_id: LogId,
    /// The mailbox.
    pub from_address: String,
    /// As the log shows it.
    pub to_address: String,
    /// As the log shows it.
    pub subject: String,
    /// `plugin_a` or `plugin_b`.
    #[serde(serialize_with = "shown")]
    pub plugin: Plugin,
}

/// Which mailbox an event tells of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MailboxEvent {
    /// `cred_…`
    #[serde(serialize_with = "shown")]
    pub credential_id: CredentialId,
    /// Its address.
    pub email: String,
    /// `plugin_a` or `plugin_b`.
    #[serde(serialize_with = "shown")]
    pub plugin: Plugin,
}

/// Why a mailbox is no longer connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DisconnectReason {
    /// The provider says that the grant has ended: withdrawn, lapsed, or its password changed.
    InvalidGrant,
    /// The same user connected another address with the same plugin.
    Replaced,
    /// The subscriber disconnected it.
    Removed,
}

fn shown<S: serde::Serializer, T: std::fmt::Display>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

impl DisconnectReason {
    /// As events and the database spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidGrant => "invalid_grant",
            Self::Replaced => "replaced",
            Self::Removed => "removed",
        }
    }
}

/// What stands around every event's data.
#[derive(Serialize)]
struct Envelope<'a> {
    event: &'static str,
    app_id: String,
    timestamp: String,
    data: &'a Event,
}

impl Event {
    /// Its name in the catalogue.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::EmailSent { .. } => "email.sent",
            Self::EmailFailedTemp { .. } => "email.failed_temp",
            Self::EmailFailedPerm { .. } => "email.failed_perm",
            Self::EmailReply { .. } => "email.reply",
            Self::UserConnected(_) => "user.connected",
            Self::UserDisconnected { .. } => "user.disconnected",
        }
    }

    /// The body of its webhooks: the envelope with the data in it, as JSON.
    #[must_use]
    pub fn body(&self, app: AppId, at: DateTime<Utc>) -> String {
        let envelope = Envelope {
            event: self.name(),
            app_id: app.to_string(),
            timestamp: iso8601(at),
            data: self,
        };
        // Texts only: nothing in there can fail to be written.
        serde_json::to_string(&envelope).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ids::uuid_at;
    use serde_json::{Value, json};

    #[test]
    fn bodies_have_the_fields_of_the_contract() {
        let at = DateTime::from_timestamp(1_700_000_000, 5_000_000).unwrap_or_default();
        let (app, credential) = (AppId(uuid_at(at)), CredentialId::at(at));
        let mailbox = MailboxEvent {
            credential_id: credential,
            email: "ada@example.com".to_owned(),
            plugin: Plugin::B,
        };
        for (event, name, data) in [
            (
                Event::UserConnected(mailbox.clone()),
                "user.connected",
                json!({"credential_id": credential.to_string(), "email": "ada@example.com",
                       "plugin": "plugin_b"}),
            ),
            (
                Event::UserDisconnected {
                    mailbox,
                    reason: DisconnectReason::InvalidGrant,
                },
                "user.disconnected",
                json!({"credential_id": credential.to_string(), "email": "ada@example.com",
                       "plugin": "plugin_b", "reason": "invalid_grant"}),
            ),
            (
                Event::EmailReply {
                    message_id: "<m@example.com>".to_owned(),
                    from_address: "bob@example.org".to_owned(),
                    to_address: "ada@example.com".to_owned(),
                    subject: "Re: Hi".to_owned(),
                },
                "email.reply",
                json!({"message_id": "<m@example.com>", "from_address": "bob@example.org",
                       "to_address": "ada@example.com", "subject": "Re: Hi"}),
            ),
        ] {
            let body: Value = serde_json::from_str(&event.body(app, at)).unwrap_or_default();
            let expected = json!({"event": name, "app_id": app.to_string(),
                                  "timestamp": "2023-11-14T22:13:20.005Z", "data": data});
            assert_eq!(body, expected);
        }
    }
}
