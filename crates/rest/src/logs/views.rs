//! Messages of the log in responses.

use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::enums::{LogPlugin, SCHEDULED, ShownStatus, inlined};
use mailgate_domain::reports::{
    FoundMessage, LogDetail, LogRow, LoggedAttempt, LoggedBounce, Scheduled,
};
use mailgate_types::bounce_type::BounceType;
use mailgate_types::event_name::EventName;
use mailgate_types::log_status::LogStatus;
use mailgate_types::metadata::Metadata;
use mailgate_types::moment::iso8601;

/// A page of the log.
#[derive(Serialize, ToSchema)]
pub(crate) struct LogsShown {
    /// Newest first; with `status=scheduled`, the next to be sent first.
    pub(crate) logs: Vec<LogItem>,
    /// Number of messages that match the filters; null in a search.
    #[schema(required, minimum = 0)]
    pub(crate) total: Option<i64>,
    /// Whether there are more messages; in a search that only got to `searched_until`, whether there may be.
    pub(crate) has_more: bool,
    /// The `cursor` for the next page; null if there is none.
    #[schema(required)]
    pub(crate) next_cursor: Option<String>,
    /// ISO 8601, UTC: a search ran out of time after all messages from now back to this moment; the rest follows with
    /// `next_cursor`. Null if the page is complete.
    #[schema(required, format = DateTime)]
    pub(crate) searched_until: Option<String>,
}

/// A message in the log.
#[derive(Serialize, ToSchema)]
pub(crate) struct LogItem {
    /// `log_…`
    #[schema(example = "log_01h2xcejqtf2nbrexx3vqjhp41")]
    pub(crate) id: String,
    /// The app's UUID.
    #[schema(format = "uuid")]
    pub(crate) app_id: String,
    /// The app's current name.
    pub(crate) app_name: String,
    /// `cred_…`: the mailbox that sent it.
    pub(crate) oauth_credential_id: String,
    /// The sender: the mailbox's address, or one of its aliases.
    pub(crate) from_address: String,
    /// The recipient; if the To header names several, all of them, separated by commas; without a To header, the
    /// envelope's first recipient.
    pub(crate) to_address: String,
    /// Its subject.
    pub(crate) subject: String,
    /// The mailbox's plugin.
    #[schema(schema_with = inlined::<LogPlugin>)]
    pub(crate) plugin: &'static str,
    /// Its status.
    #[schema(schema_with = inlined::<ShownStatus>)]
    pub(crate) status: &'static str,
    /// Why it failed; `Cancelled` if you cancelled it.
    #[schema(required)]
    pub(crate) error_message: Option<String>,
    /// The Message-ID at the provider.
    #[schema(required)]
    pub(crate) message_id: Option<String>,
    /// The message's size.
    pub(crate) size_bytes: i64,
    /// ISO 8601, UTC: the moment of its first attempt. If it was scheduled, its `send_at`, which may lie in the future,
    /// even for a cancelled message.
    #[schema(format = DateTime)]
    pub(crate) sent_at: String,
    /// When it is to be sent, ISO 8601, UTC; null unless its status is `scheduled`.
    #[schema(required, format = DateTime)]
    pub(crate) send_at: Option<String>,
    /// Whether it was sent and has hard-bounced for at least one recipient. Its `status` stays `sent`.
    pub(crate) bounced: bool,
}

/// A message with all details.
#[derive(Serialize, ToSchema)]
pub(crate) struct LogDetailShown {
    #[serde(flatten)]
    log: LogItem,
    /// The addresses of its Cc header.
    cc_addresses: Vec<String>,
    /// Recipients that none of its headers name, except the one in `to_address`.
    bcc_addresses: Vec<String>,
    /// Whether it has attachments.
    has_attachments: bool,
    /// The metadata attached to it, from `POST /send` or `X-Mailgate-Metadata-…` headers.
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    metadata: Metadata,
    /// Why it failed or waits, or has bounced, in plain English; null for a message that was sent and not bounced, or
    /// is scheduled.
    #[schema(required)]
    explanation: Option<ExplanationShown>,
    /// Its attempts, in order.
    attempts: Vec<AttemptShown>,
    /// Bounces and delays of its recipients, in order: one for each recipient and notification; at most 100 of
    /// each type.
    bounces: Vec<BounceShown>,
    /// The webhook deliveries of its events, one per attempt; at most 100.
    webhook_deliveries: Vec<LogDelivery>,
}

/// A failure in plain English, for people who don't know the protocols. The wording may change; programs should use
/// `status`, `error_message` and the `status` of `bounces[]`.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExplanationShown {
    /// What happened, in one sentence.
    #[schema(example = "The recipient's mailbox is full.")]
    meaning: String,
    /// What to do, in one sentence; if the gateway tries again by itself, it says so.
    #[schema(
        example = "Ask the recipient to make room in the mailbox; the gateway tries again by itself."
    )]
    action: String,
}

/// An attempt to deliver one of a message's events to an endpoint.
#[derive(Serialize, ToSchema)]
pub(crate) struct LogDelivery {
    /// `wdel_…`
    #[schema(example = "wdel_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// The event's name.
    #[schema(value_type = EventName)]
    event: String,
    /// Whether the endpoint responded with 2xx.
    success: bool,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    delivered_at: String,
}

/// An attempt to send a message through its provider.
#[derive(Serialize, ToSchema)]
pub(crate) struct AttemptShown {
    /// Counted from 1.
    attempt_number: i32,
    /// ISO 8601, UTC: when it began.
    #[schema(format = DateTime)]
    attempted_at: String,
    /// Duration; null for a message that was sent at its first attempt.
    #[schema(required)]
    duration_ms: Option<i64>,
    /// Its outcome.
    #[schema(value_type = LogStatus)]
    status: &'static str,
    /// Why it failed.
    #[schema(required)]
    error_message: Option<String>,
}

/// A recipient that a message didn't reach, or a delay on the way to one.
#[derive(Serialize, ToSchema)]
pub(crate) struct BounceShown {
    /// The recipient, as the notification names it: after forwarding, it may be one that you didn't send to.
    to_address: String,
    /// Whether it is final.
    #[schema(value_type = BounceType)]
    bounce_type: String,
    /// The status code of RFC 3463, like `5.1.1`; null if the notification has none.
    #[schema(required, example = "5.1.1")]
    status: Option<String>,
    /// The server's text; null if the notification has none.
    #[schema(required)]
    diagnostic: Option<String>,
    /// When the gateway read the notification, ISO 8601, UTC.
    #[schema(format = DateTime)]
    bounced_at: String,
}

impl LogItem {
    pub(crate) fn new(row: LogRow) -> Self {
        Self {
            id: row.id.to_string(),
            app_id: row.app.to_string(),
            app_name: row.app_name,
            oauth_credential_id: row.credential.to_string(),
            from_address: row.from_address,
            to_address: row.to_address,
            subject: row.subject,
            plugin: row.plugin.log_name(),
            status: row.status.as_str(),
            error_message: row.error_message,
            message_id: row.message_id,
            size_bytes: row.size_bytes,
            sent_at: iso8601(row.sent_at),
            send_at: None,
            bounced: row.bounced,
        }
    }

    pub(crate) fn scheduled(message: Scheduled) -> Self {
        let send_at = iso8601(message.send_at);
        Self {
            id: message.id.to_string(),
            app_id: message.app.to_string(),
            app_name: message.app_name,
            oauth_credential_id: message.credential.to_string(),
            from_address: message.from_address,
            to_address: message.to_address,
            subject: message.subject,
            plugin: message.plugin.log_name(),
            status: SCHEDULED,
            error_message: None,
            message_id: message.message_id,
            size_bytes: message.size_bytes,
            sent_at: send_at.clone(),
            send_at: Some(send_at),
            bounced: false,
        }
    }
}

impl LogDetailShown {
    pub(crate) fn found(message: FoundMessage) -> Self {
        match message {
            FoundMessage::Logged(detail) => Self::new(*detail),
            FoundMessage::Scheduled(message) => Self::scheduled(*message),
        }
    }

    fn scheduled(message: Scheduled) -> Self {
        Self {
            cc_addresses: message.cc_addresses.clone(),
            bcc_addresses: message.bcc_addresses.clone(),
            has_attachments: message.has_attachments,
            metadata: message.metadata.clone(),
            log: LogItem::scheduled(message),
            explanation: None,
            attempts: Vec::new(),
            bounces: Vec::new(),
            webhook_deliveries: Vec::new(),
        }
    }

    fn new(detail: LogDetail) -> Self {
        let explanation = detail.explanation().map(|explanation| ExplanationShown {
            meaning: explanation.meaning,
            action: explanation.action,
        });
        Self {
            explanation,
            log: LogItem::new(detail.details.log),
            cc_addresses: detail.details.cc_addresses,
            bcc_addresses: detail.details.bcc_addresses,
            has_attachments: detail.details.has_attachments,
            metadata: detail.details.metadata,
            attempts: (detail.attempts.into_iter())
                .map(AttemptShown::new)
                .collect(),
            bounces: detail.bounces.into_iter().map(BounceShown::new).collect(),
            webhook_deliveries: (detail.webhook_deliveries.into_iter())
                .map(|delivery| LogDelivery {
                    id: delivery.id.to_string(),
                    event: delivery.event,
                    success: delivery.success,
                    delivered_at: iso8601(delivery.delivered_at),
                })
                .collect(),
        }
    }
}

impl BounceShown {
    fn new(bounce: LoggedBounce) -> Self {
        Self {
            to_address: bounce.recipient,
            bounce_type: bounce.bounce_type,
            status: bounce.status,
            diagnostic: bounce.diagnostic,
            bounced_at: iso8601(bounce.bounced_at),
        }
    }
}

impl AttemptShown {
    fn new(attempt: LoggedAttempt) -> Self {
        Self {
            attempt_number: attempt.number,
            attempted_at: iso8601(attempt.at),
            duration_ms: attempt.duration_ms,
            status: attempt.status.as_str(),
            error_message: attempt.error_message,
        }
    }
}
