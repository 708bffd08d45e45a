//! What happens to an app's mail and users, as its webhooks tell it: the catalogue.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::event_name::EventName;
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
    /// An app was created.
    AppCreated(AppEvent),
    /// An app was deleted.
    AppDeleted(AppEvent),
    /// An app has a new send key; the old one is worthless.
    SendKeyRenewed {
        /// Which one.
        #[serde(serialize_with = "shown")]
        app_id: AppId,
    },
}

/// Which app an event tells of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppEvent {
    /// Its UUID, as in the envelope.
    #[serde(serialize_with = "shown")]
    pub app_id: AppId,
    /// As the subscriber calls it.
    pub name: String,
}

/// Something that happened, on its way to whoever listens.
#[derive(Debug, Clone)]
pub struct Emission {
    /// Whose event it is.
    pub app: AppId,
    /// What happened.
    pub event: Event,
    /// The log row that it tells of.
    pub log: Option<LogId>,
}

impl Emission {
    /// An event that tells of no message.
    #[must_use]
    pub fn of(app: AppId, event: Event) -> Self {
        Self {
            app,
            event,
            log: None,
        }
    }
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
    /// The provider wants its user to do something in a browser: a rule of their organisation, say.
    InteractionRequired,
    /// Its user, or their administrator, has to agree once more.
    ConsentRequired,
    /// Its user has to sign in once more.
    LoginRequired,
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
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::InvalidGrant,
        Self::InteractionRequired,
        Self::ConsentRequired,
        Self::LoginRequired,
        Self::Replaced,
        Self::Removed,
    ];

    /// As events and the database spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidGrant => "invalid_grant",
            Self::InteractionRequired => "interaction_required",
            Self::ConsentRequired => "consent_required",
            Self::LoginRequired => "login_required",
            Self::Replaced => "replaced",
            Self::Removed => "removed",
        }
    }
}

/// What stands around every event's data.
#[derive(Serialize)]
struct Envelope<'a, D> {
    event: &'static str,
    app_id: String,
    timestamp: String,
    data: &'a D,
}

impl<D: Serialize> Envelope<'_, D> {
    fn json(&self) -> String {
        // Texts and numbers only: nothing in there can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Event {
    /// Its name in the catalogue.
    #[must_use]
    pub const fn name(&self) -> EventName {
        match self {
            Self::EmailSent { .. } => EventName::EmailSent,
            Self::EmailFailedTemp { .. } => EventName::EmailFailedTemp,
            Self::EmailFailedPerm { .. } => EventName::EmailFailedPerm,
            Self::EmailReply { .. } => EventName::EmailReply,
            Self::UserConnected(_) => EventName::UserConnected,
            Self::UserDisconnected { .. } => EventName::UserDisconnected,
            Self::AppCreated(_) => EventName::AppCreated,
            Self::AppDeleted(_) => EventName::AppDeleted,
            Self::SendKeyRenewed { .. } => EventName::SendKeyRenewed,
        }
    }

    /// The body of its webhooks: the envelope with the data in it, as JSON.
    #[must_use]
    pub fn body(&self, app: AppId, at: DateTime<Utc>) -> String {
        let envelope = Envelope {
            event: self.name().as_str(),
            app_id: app.to_string(),
            timestamp: iso8601(at),
            data: self,
        };
        envelope.json()
    }
}

/// What a test delivery tells: nothing that happened, so it is no event of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestEvent {
    /// Whose endpoint is tested.
    pub app: AppId,
    /// When.
    pub at: DateTime<Utc>,
}

/// The data of a test delivery.
#[derive(Serialize)]
struct TestData {
    message: &'static str,
}

impl TestEvent {
    /// Its name.
    pub const NAME: &str = "test";

    /// The text in its data.
    pub const MESSAGE: &str = "This is a test of your webhook. Nothing has happened.";

    /// The body of its webhook, as [`Event::body`].
    #[must_use]
    pub fn body(&self) -> String {
        let envelope = Envelope {
            event: Self::NAME,
            app_id: self.app.to_string(),
            timestamp: iso8601(self.at),
            data: &TestData {
                message: Self::MESSAGE,
            },
        };
        envelope.json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::uuid_at;
    use serde_json::{Value, json};

    fn email_events(log: LogId) -> [(Event, &'static str, Value); 3] {
        let email = EmailEvent {
            log_id: log,
            from_address: "ada@example.com".to_owned(),
            to_address: "bob@example.org".to_owned(),
            subject: "Hi".to_owned(),
            plugin: Plugin::A,
        };
        [
            (
                Event::EmailSent {
                    email: email.clone(),
                    message_id: Some("<m@example.com>".to_owned()),
                },
                "email.sent",
                json!({"log_id": log.to_string(), "from_address": "ada@example.com",
                       "to_address": "bob@example.org", "subject": "Hi", "plugin": "plugin_a",
                       "message_id": "<m@example.com>"}),
            ),
            (
                Event::EmailFailedTemp {
                    email: email.clone(),
                    error: "451 later".to_owned(),
                    retry_count: 2,
                    next_retry_at: "2023-11-14T22:14:20.005Z".to_owned(),
                },
                "email.failed_temp",
                json!({"log_id": log.to_string(), "from_address": "ada@example.com",
                       "to_address": "bob@example.org", "subject": "Hi", "plugin": "plugin_a",
                       "error": "451 later", "retry_count": 2,
                       "next_retry_at": "2023-11-14T22:14:20.005Z"}),
            ),
            (
                Event::EmailFailedPerm {
                    email,
                    error: "550 no".to_owned(),
                    r#final: true,
                },
                "email.failed_perm",
                json!({"log_id": log.to_string(), "from_address": "ada@example.com",
                       "to_address": "bob@example.org", "subject": "Hi", "plugin": "plugin_a",
                       "error": "550 no", "final": true}),
            ),
        ]
    }

    #[test]
    fn bodies_have_the_fields_of_the_contract() {
        let at = DateTime::from_timestamp(1_700_000_000, 5_000_000).unwrap_or_default();
        let (app, credential) = (AppId(uuid_at(at)), CredentialId::at(at));
        let of_app = AppEvent {
            app_id: app,
            name: "My app".to_owned(),
        };
        let mailbox = MailboxEvent {
            credential_id: credential,
            email: "ada@example.com".to_owned(),
            plugin: Plugin::B,
        };
        let others = [
            (
                Event::AppCreated(of_app.clone()),
                "app.created",
                json!({"app_id": app.to_string(), "name": "My app"}),
            ),
            (
                Event::AppDeleted(of_app),
                "app.deleted",
                json!({"app_id": app.to_string(), "name": "My app"}),
            ),
            (
                Event::SendKeyRenewed { app_id: app },
                "send_key.renewed",
                json!({"app_id": app.to_string()}),
            ),
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
        ];
        let events: Vec<_> = email_events(LogId::at(at))
            .into_iter()
            .chain(others)
            .collect();
        assert_eq!(events.len(), EventName::ALL.len());
        for (event, name, data) in events {
            let body: Value = serde_json::from_str(&event.body(app, at)).unwrap_or_default();
            let expected = json!({"event": name, "app_id": app.to_string(),
                                  "timestamp": "2023-11-14T22:13:20.005Z", "data": data});
            assert_eq!(body, expected);
        }
    }
}
