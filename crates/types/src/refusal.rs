//! Why a message was refused before a mailbox was selected.

use std::str::FromStr;

/// The reason for a refusal: the error code of the REST API, or its counterpart in SMTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// 402, or SMTP 451: the operator has suspended the account.
    SubscriberSuspended,
    /// 402, or SMTP 451 and 550: the subscription doesn't permit sending.
    SubscriptionBlocked,
    /// 403: `pk` names another app.
    PkMismatch,
    /// 403, or SMTP 550 5.7.1: the send key may not send from any mailbox that matches.
    MailboxNotAllowed,
    /// 413, or SMTP 552: the message exceeds the size limit.
    MessageTooLarge,
    /// 422: invalid fields in the request.
    InvalidRequest,
    /// 422: no connected mailbox matches.
    NoMailbox,
    /// 422, or SMTP 550 5.1.1: a recipient has bounced, and the app refuses such messages.
    RecipientSuppressed,
    /// SMTP 550 5.7.1: From isn't a single address that a connected mailbox may send as.
    FromNotAuthorized,
    /// SMTP 550 5.6.0: headers that can't be parsed.
    MalformedMessage,
}

/// The text isn't the name of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no reason of a refusal")]
pub struct UnknownReason;

impl RefusalReason {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::SubscriberSuspended,
        Self::SubscriptionBlocked,
        Self::PkMismatch,
        Self::MailboxNotAllowed,
        Self::MessageTooLarge,
        Self::InvalidRequest,
        Self::NoMailbox,
        Self::RecipientSuppressed,
        Self::FromNotAuthorized,
        Self::MalformedMessage,
    ];

    /// The name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SubscriberSuspended => "subscriber_suspended",
            Self::SubscriptionBlocked => "subscription_blocked",
            Self::PkMismatch => "pk_mismatch",
            Self::MailboxNotAllowed => "mailbox_not_allowed",
            Self::MessageTooLarge => "message_too_large",
            Self::InvalidRequest => "invalid_request",
            Self::NoMailbox => "no_mailbox",
            Self::RecipientSuppressed => "recipient_suppressed",
            Self::FromNotAuthorized => "from_not_authorized",
            Self::MalformedMessage => "malformed_message",
        }
    }
}

impl FromStr for RefusalReason {
    type Err = UnknownReason;

    fn from_str(text: &str) -> Result<Self, UnknownReason> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.as_str() == text)
            .ok_or(UnknownReason)
    }
}
