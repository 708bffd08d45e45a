//! The events of an app's mail and users, as its webhooks report them: the catalogue.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::bounce_type::BounceType;
use super::event_name::EventName;
use super::ids::{AppId, CredentialId, LogId};
use super::metadata::Metadata;
use super::moment::iso8601;
use super::plugin::Plugin;

/// One event with its data. The fields are exactly those of the API contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// A message was sent.
    EmailSent {
        /// The message.
        #[serde(flatten)]
        email: EmailEvent,
        /// The Message-ID header.
        message_id: Option<String>,
    },
    /// An attempt failed; the gateway will retry.
    EmailFailedTemp {
        /// The message.
        #[serde(flatten)]
        email: EmailEvent,
        /// Why.
        error: String,
        /// Attempts that have failed so far.
        retry_count: i32,
        /// ISO 8601, UTC.
        next_retry_at: String,
    },
    /// Sending a message failed permanently.
    EmailFailedPerm {
        /// The message.
        #[serde(flatten)]
        email: EmailEvent,
        /// Why.
        error: String,
        /// Always true: there is no further attempt.
        r#final: bool,
    },
    /// A server reports that a message was not delivered, or is delayed.
    EmailBounced {
        /// `log_…`
        #[serde(serialize_with = "shown")]
        log_id: LogId,
        /// The Message-ID header.
        message_id: Option<String>,
        /// The mailbox.
        from_address: String,
        /// The recipient that wasn't reached.
        to_address: String,
        /// The message's subject.
        subject: String,
        /// `plugin_a` or `plugin_b`.
        #[serde(serialize_with = "shown")]
        plugin: Plugin,
        /// Whether the failure is permanent.
        bounce_type: BounceType,
        /// RFC 3463, like `5.1.1`.
        status: Option<String>,
        /// The server's diagnostic text.
        diagnostic: Option<String>,
        /// ISO 8601, UTC.
        bounced_at: String,
        /// The app's metadata of the message.
        #[serde(skip_serializing_if = "Metadata::is_empty")]
        metadata: Metadata,
    },
    /// A reply to a message that was sent.
    EmailReply {
        /// The Message-ID of the message replied to.
        message_id: String,
        /// Who replied.
        from_address: String,
        /// The mailbox.
        to_address: String,
        /// The reply's subject.
        subject: String,
        /// The app's metadata of the message replied to.
        #[serde(skip_serializing_if = "Metadata::is_empty")]
        metadata: Metadata,
    },
    /// A mailbox was connected.
    UserConnected(MailboxEvent),
    /// A mailbox is no longer connected.
    UserDisconnected {
        /// The mailbox.
        #[serde(flatten)]
        mailbox: MailboxEvent,
        /// Why.
        reason: DisconnectReason,
    },
    /// The provider no longer lets the gateway read a mailbox: replies and bounces aren't detected for now.
    MailboxDegraded {
        /// The mailbox.
        #[serde(flatten)]
        mailbox: MailboxEvent,
        /// The provider's error.
        error: String,
    },
    /// The gateway can read a mailbox again, after [`Event::MailboxDegraded`].
    MailboxRecovered(MailboxEvent),
    /// An app was created.
    AppCreated(AppEvent),
    /// An app was deleted.
    AppDeleted(AppEvent),
    /// An app's send key was renewed; the old one is invalid.
    SendKeyRenewed {
        /// The app.
        #[serde(serialize_with = "shown")]
        app_id: AppId,
    },
}

/// The app of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppEvent {
    /// Its UUID, as in the envelope.
    #[serde(serialize_with = "shown")]
    pub app_id: AppId,
    /// The name given by the subscriber.
    pub name: String,
}

/// An event to be delivered to webhooks.
#[derive(Debug, Clone)]
pub struct Emission {
    /// The app that it belongs to.
    pub app: AppId,
    /// The event.
    pub event: Event,
    /// The log row concerned, if any.
    pub log: Option<LogId>,
}

impl Emission {
    /// An event that concerns no message.
    #[must_use]
    pub fn of(app: AppId, event: Event) -> Self {
        Self {
            app,
            event,
            log: None,
        }
    }
}

/// The message of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmailEvent {
    /// `log_…`
    #[serde(serialize_with = "shown")]
    pub log_id: LogId,
    /// The mailbox.
    pub from_address: String,
    /// As in the log.
    pub to_address: String,
    /// As in the log.
    pub subject: String,
    /// `plugin_a` or `plugin_b`.
    #[serde(serialize_with = "shown")]
    pub plugin: Plugin,
    /// The app's metadata; absent if there is none.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// The mailbox of an event.
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
    /// The provider reports that the grant has ended: revoked, expired, or its password changed.
    InvalidGrant,
    /// The provider requires the user to act in a browser, because of an organisation's policy, for example.
    InteractionRequired,
    /// The user, or an administrator, must consent again.
    ConsentRequired,
    /// The user must sign in again.
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

    /// The name in events and the database.
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

/// The envelope around every event's data.
#[derive(Serialize)]
struct Envelope<'a, D> {
    event: &'static str,
    app_id: String,
    timestamp: String,
    data: &'a D,
}

impl<D: Serialize> Envelope<'_, D> {
    fn json(&self) -> String {
        // Serializing strings and numbers can't fail.
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
            Self::EmailBounced { .. } => EventName::EmailBounced,
            Self::EmailReply { .. } => EventName::EmailReply,
            Self::UserConnected(_) => EventName::UserConnected,
            Self::UserDisconnected { .. } => EventName::UserDisconnected,
            Self::MailboxDegraded { .. } => EventName::MailboxDegraded,
            Self::MailboxRecovered(_) => EventName::MailboxRecovered,
            Self::AppCreated(_) => EventName::AppCreated,
            Self::AppDeleted(_) => EventName::AppDeleted,
            Self::SendKeyRenewed { .. } => EventName::SendKeyRenewed,
        }
    }

    /// The webhook body: the envelope with the data in it, as JSON.
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

/// A test delivery. It reports nothing that happened, so it isn't in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestEvent {
    /// The app whose endpoint is tested.
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
            metadata: Metadata::default(),
        };
        let mut metadata = Metadata::default();
        let inserted = metadata.insert("Order", "4711");
        assert_eq!(inserted, Ok(()));
        [
            (
                Event::EmailSent {
                    email: EmailEvent {
                        metadata,
                        ..email.clone()
                    },
                    message_id: Some("<m@example.com>".to_owned()),
                },
                "email.sent",
                json!({"log_id": log.to_string(), "from_address": "ada@example.com",
                       "to_address": "bob@example.org", "subject": "Hi", "plugin": "plugin_a",
                       "metadata": {"Order": "4711"}, "message_id": "<m@example.com>"}),
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
        let log = LogId::at(at);
        let of_app = AppEvent {
            app_id: app,
            name: "My app".to_owned(),
        };
        let app_data = json!({"app_id": app.to_string(), "name": "My app"});
        let mailbox = MailboxEvent {
            credential_id: credential,
            email: "ada@example.com".to_owned(),
            plugin: Plugin::B,
        };
        let (degraded, recovered) = (mailbox.clone(), mailbox.clone());
        let others = [
            (
                Event::AppCreated(of_app.clone()),
                "app.created",
                app_data.clone(),
            ),
            (Event::AppDeleted(of_app), "app.deleted", app_data),
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
                Event::EmailBounced {
                    log_id: log,
                    message_id: Some("<m@example.com>".to_owned()),
                    from_address: "ada@example.com".to_owned(),
                    to_address: "bob@example.org".to_owned(),
                    subject: "Hi".to_owned(),
                    plugin: Plugin::A,
                    bounce_type: BounceType::Permanent,
                    status: Some("5.1.1".to_owned()),
                    diagnostic: None,
                    bounced_at: "2023-11-14T22:13:20.005Z".to_owned(),
                    metadata: Metadata::default(),
                },
                "email.bounced",
                json!({"log_id": log.to_string(), "message_id": "<m@example.com>",
                       "from_address": "ada@example.com", "to_address": "bob@example.org",
                       "subject": "Hi", "plugin": "plugin_a", "bounce_type": "permanent",
                       "status": "5.1.1", "diagnostic": null,
                       "bounced_at": "2023-11-14T22:13:20.005Z"}),
            ),
            (
                Event::EmailReply {
                    message_id: "<m@example.com>".to_owned(),
                    from_address: "bob@example.org".to_owned(),
                    to_address: "ada@example.com".to_owned(),
                    subject: "Re: Hi".to_owned(),
                    metadata: Metadata::default(),
                },
                "email.reply",
                json!({"message_id": "<m@example.com>", "from_address": "bob@example.org",
                       "to_address": "ada@example.com", "subject": "Re: Hi"}),
            ),
            (
                Event::MailboxDegraded {
                    mailbox: degraded,
                    error: "AUTHENTICATIONFAILED no".to_owned(),
                },
                "mailbox.degraded",
                json!({"credential_id": credential.to_string(), "email": "ada@example.com",
                       "plugin": "plugin_b", "error": "AUTHENTICATIONFAILED no"}),
            ),
            (
                Event::MailboxRecovered(recovered),
                "mailbox.recovered",
                json!({"credential_id": credential.to_string(), "email": "ada@example.com",
                       "plugin": "plugin_b"}),
            ),
        ];
        let events: Vec<_> = email_events(log).into_iter().chain(others).collect();
        assert_eq!(events.len(), EventName::ALL.len());
        for (event, name, data) in events {
            let body: Value = serde_json::from_str(&event.body(app, at)).unwrap_or_default();
            let expected = json!({"event": name, "app_id": app.to_string(),
                                  "timestamp": "2023-11-14T22:13:20.005Z", "data": data});
            assert_eq!(body, expected);
        }
    }
}
