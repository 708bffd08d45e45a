//! Why a message was refused before a mailbox was selected.

use crate::words::words;

words! {
    /// The reason for a refusal: the error code of the REST API, or its counterpart in SMTP.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum RefusalReason {
        /// 402, or SMTP 451: the operator has suspended the account.
        SubscriberSuspended = "subscriber_suspended",
        /// 402, or SMTP 451 and 550: the subscription doesn't permit sending.
        SubscriptionBlocked = "subscription_blocked",
        /// 403: `pk` names another app.
        PkMismatch = "pk_mismatch",
        /// 403, or SMTP 550 5.7.1: the send key may not send from any mailbox that matches.
        MailboxNotAllowed = "mailbox_not_allowed",
        /// 413, or SMTP 552: the message exceeds the size limit.
        MessageTooLarge = "message_too_large",
        /// 422: invalid fields in the request.
        InvalidRequest = "invalid_request",
        /// 422: no connected mailbox matches.
        NoMailbox = "no_mailbox",
        /// 422, or SMTP 550 5.1.1: a recipient has bounced, and the app refuses such messages.
        RecipientSuppressed = "recipient_suppressed",
        /// SMTP 550 5.7.1: From isn't a single address that a connected mailbox may send as.
        FromNotAuthorized = "from_not_authorized",
        /// SMTP 550 5.6.0: headers that can't be parsed.
        MalformedMessage = "malformed_message",
    }

    /// The text isn't the name of a reason.
    else UnknownReason("is no reason of a refusal");
}
