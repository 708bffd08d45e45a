//! Closed lists of words. Those with a name of their own in the description become types of generated clients; fields
//! write the others out, since in Go the constants of all named lists share one scope.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::types::audit::{Actor, AuditAction};
use crate::types::event::{DisconnectReason, TestEvent};
use crate::types::event_name::EventName;
use crate::types::log_status::LogStatus;
use crate::types::plugin::Plugin;
use crate::types::refusal::{Door, RefusalReason};
use crate::types::signing_secret::SecretEncoding;
use crate::types::subscription::SubscriptionStatus;

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

fn one_of(description: &str, words: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
        .enum_values(Some(words))
        .into()
}

macro_rules! enums {
    ($($name:ty, $description:literal, $words:expr;)*) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                one_of($description, $words)
            }
        }

        impl ToSchema for $name {}
    )*};
}

enums! {
    Plugin, "The kind of provider: `plugin_a` is Google unless the operator chose otherwise, `plugin_b` Microsoft.",
        Self::ALL.map(Self::as_str);
    LogPlugin, "The kind of provider, as logs and statistics spell it.", Plugin::ALL.map(Plugin::log_name);
    LogStatus, "`sent`: the provider accepted it; `failed_temp`: the gateway will try again; `failed_perm`: it failed for \
        good; if the outcome was unknown, it may have arrived all the same (see `error_message`).", Self::ALL.map(Self::as_str);
    SendStatus, "`sent`: the provider accepted it; `failed_temp`: it is queued, and the gateway will try again.",
        [LogStatus::Sent.as_str(), LogStatus::FailedTemp.as_str()];
    MailboxStatus, "A connected mailbox is always `active`.", ["active"];
    SubscriptionStatus, "The subscription's status. Stripe's `incomplete` and `paused` appear as `past_due`, `incomplete_expired` as \
        `canceled`.", Self::ALL.map(Self::as_str);
    EventName, "An event of the catalogue.", Self::ALL.map(Self::as_str);
    DeliveredEvent, "The event's name; `test` for a test delivery.",
        EventName::ALL.map(EventName::as_str).into_iter().chain([TestEvent::NAME]);
    DisconnectReason, "Why a mailbox is no longer connected. `invalid_grant`: the provider ended its grant; \
        `interaction_required`, `consent_required`, `login_required`: its user has to connect it again; `replaced`: its \
        user connected another one instead; `removed`: you disconnected it.", Self::ALL.map(Self::as_str);
    RefusalReason, "Why a message was refused before a mailbox was chosen for it.", Self::ALL.map(Self::as_str);
    Door, "How the message came in.", Self::ALL.map(Self::as_str);
    AuditAction, "An action of the audit trail.", Self::ALL.map(Self::as_str);
    Actor, "Who made a change: `subscriber` (your API secret), `user` (on the connect pages), `provider` (it refused the \
        grant) or `operator` (of this gateway).", Self::ALL.map(Self::as_str);
    SecretEncoding, "`base64`: what follows `whsec_` is the key, in base64, as the libraries of Standard Webhooks expect. \
        `raw`: the secret's own bytes are the key, `whsec_` included.", Self::ALL.map(Self::as_str);
    StatsPeriod, "Days or months (UTC).", ["day", "month"];
}
