//! Enumerations. Those named in the description become types of generated clients; others are
//! inlined, since in Go the constants of all named lists share one scope.

use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use mailgate_types::enums;
use mailgate_types::event::TestEvent;
use mailgate_types::event_name::EventName;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;
use mailgate_types::waiting_reason;

/// A plugin's name in logs and their filters.
pub(crate) struct LogPlugin;

/// The status of a message that was just accepted.
pub(crate) struct SendStatus;

/// The status of a message that is in the log, or still to be sent.
pub(crate) struct ShownStatus;

/// The reason that a message waits for.
pub(crate) struct WaitingReason;

/// The status of a scheduled message.
pub(crate) const SCHEDULED: &str = "scheduled";

/// A mailbox that is connected.
pub(crate) struct MailboxStatus;

/// Whether the operator has suspended an account.
pub(crate) struct AccountStatus;

/// A delivery's event, or a test.
pub(crate) struct DeliveredEvent;

/// The period of statistics.
pub(crate) struct StatsPeriod;

/// The inlined list, instead of its name.
pub(crate) fn inlined<T: PartialSchema>() -> RefOr<Schema> {
    T::schema()
}

enums! {
    LogPlugin, "The kind of provider, as named in logs and statistics.", Plugin::ALL.map(Plugin::log_name);
    SendStatus, "`sent`: the provider accepted it; `scheduled`: it leaves at `send_at`; `failed_temp`: it is queued, and \
        the gateway will try again.",
        [LogStatus::Sent.as_str(), SCHEDULED, LogStatus::FailedTemp.as_str()];
    ShownStatus, "`sent`: the provider accepted it; `failed_temp`: the gateway will try again; `failed_perm`: it failed for \
        good, or was cancelled; if the outcome was unknown, it may have arrived all the same (see `error_message`); \
        `scheduled`: it leaves at `send_at`.",
        LogStatus::ALL.map(LogStatus::as_str).into_iter().chain([SCHEDULED]);
    WaitingReason, "What messages wait for. `scheduled`: the time that their sender gave; `subscription`: the subscription, \
        which is suspended; `mailbox_limit`: their mailbox's turn, or the end of a pause that its provider asked for; \
        `temporary_failure`: another attempt.", waiting_reason::WaitingReason::ALL.map(waiting_reason::WaitingReason::as_str);
    AccountStatus, "`active`: the subscription alone decides on sending; `suspended`: nothing is sent, and no mailbox \
        connected, until the operator resumes it.", ["active", "suspended"];
    MailboxStatus, "A connected mailbox is always `active`.", ["active"];
    DeliveredEvent, "The event's name; `test` for a test delivery.",
        EventName::ALL.map(EventName::as_str).into_iter().chain([TestEvent::NAME]);
    StatsPeriod, "Days or months (UTC).", ["day", "month"];
}
