//! Closed lists of words. Those with a name of their own in the description become types of generated clients; fields
//! write the others out, since in Go the constants of all named lists share one scope.

use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use mailgate_types::enums;
use mailgate_types::event::TestEvent;
use mailgate_types::event_name::EventName;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// A plugin as logs and their filters spell it.
pub(super) struct LogPlugin;

/// A message that was just taken.
pub(super) struct SendStatus;

/// A mailbox that is connected.
pub(super) struct MailboxStatus;

/// What a delivery carried: an event, or a test.
pub(super) struct DeliveredEvent;

/// What statistics are given by.
pub(super) struct StatsPeriod;

/// The list where it stands, instead of its name.
pub(super) fn written_out<T: PartialSchema>() -> RefOr<Schema> {
    T::schema()
}

enums! {
    LogPlugin, "The kind of provider, as logs and statistics spell it.", Plugin::ALL.map(Plugin::log_name);
    SendStatus, "`sent`: the provider accepted it; `failed_temp`: it is queued, and the gateway will try again.",
        [LogStatus::Sent.as_str(), LogStatus::FailedTemp.as_str()];
    MailboxStatus, "A connected mailbox is always `active`.", ["active"];
    DeliveredEvent, "The event's name; `test` for a test delivery.",
        EventName::ALL.map(EventName::as_str).into_iter().chain([TestEvent::NAME]);
    StatsPeriod, "Days or months (UTC).", ["day", "month"];
}
