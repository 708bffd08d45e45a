//! The schemas of enumerations in the API description.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::audit::{Actor, AuditAction};
use crate::bounce_type::BounceType;
use crate::door::Door;
use crate::event::DisconnectReason;
use crate::event_name::EventName;
use crate::log_status::LogStatus;
use crate::plugin::Plugin;
use crate::refusal::RefusalReason;
use crate::scope::Scope;
use crate::signing_secret::SecretEncoding;
use crate::subscription::SubscriptionStatus;

/// The schema of an enumeration.
pub fn one_of(description: &str, words: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
        .enum_values(Some(words))
        .into()
}

/// Describes enumerations: name, description, values.
#[macro_export]
macro_rules! enums {
    ($($name:ty, $description:literal, $words:expr;)*) => {$(
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::schemas::one_of($description, $words)
            }
        }

        impl utoipa::ToSchema for $name {}
    )*};
}

enums! {
    Plugin, "The kind of provider: `plugin_a` is Google unless the operator chose otherwise, `plugin_b` Microsoft.",
        Self::ALL.map(Self::as_str);
    LogStatus, "`sent`: the provider accepted it; `failed_temp`: the gateway will try again; `failed_perm`: it failed for \
        good; if the outcome was unknown, it may have arrived all the same (see `error_message`).", Self::ALL.map(Self::as_str);
    SubscriptionStatus, "The subscription's status. Stripe's `incomplete` and `paused` appear as `past_due`, `incomplete_expired` as \
        `canceled`.", Self::ALL.map(Self::as_str);
    BounceType, "`permanent`: it won't arrive; `temporary`: it is delayed, and may still arrive.", Self::ALL.map(Self::as_str);
    EventName, "An event of the catalogue.", Self::ALL.map(Self::as_str);
    DisconnectReason, "Why a mailbox is no longer connected. `invalid_grant`: the provider ended its grant; \
        `interaction_required`, `consent_required`, `login_required`: its user has to connect it again; `replaced`: its \
        user connected another one instead; `removed`: you disconnected it.", Self::ALL.map(Self::as_str);
    RefusalReason, "Why a message was refused before a mailbox was chosen for it.", Self::ALL.map(Self::as_str);
    Door, "How the message came in.", Self::ALL.map(Self::as_str);
    AuditAction, "An action of the audit trail.", Self::ALL.map(Self::as_str);
    Actor, "Who made a change: `subscriber` (your API secret or one of your additional ones), `user` (on the connect pages), `provider` (it refused the \
        grant) or `operator` (of this gateway).", Self::ALL.map(Self::as_str);
    Scope, "What an additional API secret may be used for. Each scope stands alone: `write` doesn't include `read`.",
        Self::ALL.map(Self::as_str);
    SecretEncoding, "`base64`: what follows `whsec_` is the key, in base64, as the libraries of Standard Webhooks expect. \
        `raw`: the secret's own bytes are the key, `whsec_` included.", Self::ALL.map(Self::as_str);
}
