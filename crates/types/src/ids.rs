//! Row ids: `UUIDv7`, in external form a prefix and 26 characters of the `TypeID` alphabet.

use std::fmt::{Debug, Display, Formatter};
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::{NoContext, Timestamp, Uuid};

/// Crockford's base 32 in lower case, as in the `TypeID` specification.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The text is not an id of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id of this kind")]
pub struct InvalidId;

/// A `UUIDv7` for the time `at`; ids made later compare greater, to a quarter of a microsecond (RFC 9562, section 6.2,
/// method 3), so that lists ordered by id are chronological.
#[must_use]
pub fn uuid_at(at: DateTime<Utc>) -> Uuid {
    let seconds = u64::try_from(at.timestamp()).unwrap_or(0);
    // A leap second has more than a billion nanoseconds.
    let nanoseconds = at.timestamp_subsec_nanos().min(999_999_999);
    let id = Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanoseconds));
    let fraction = u128::from(nanoseconds % 1_000_000) * 4_096 / 1_000_000;
    Uuid::from_u128(id.as_u128() & !(0xfff << 64) | fraction << 64)
}

/// The smallest `UUIDv7` of the millisecond of `at`, the bound of an id range.
#[must_use]
pub fn lowest_uuid_at(at: DateTime<Utc>) -> Uuid {
    let milliseconds = u128::try_from(at.timestamp_millis()).unwrap_or(0);
    Uuid::from_u128(milliseconds << 80)
}

/// The time in an id, to the millisecond; also for ids from [`lowest_uuid_at`].
#[must_use]
pub fn moment_of(id: Uuid) -> DateTime<Utc> {
    let milliseconds = i64::try_from(id.as_u128() >> 80).unwrap_or(i64::MAX);
    DateTime::from_timestamp_millis(milliseconds).unwrap_or(DateTime::<Utc>::MAX_UTC)
}
/// The header with an outgoing message's log id; bounces that return it are recognized by it.
pub const LOG_ID_HEADER: &str = "X-Mailgate-Id";

/// The version of the app state that sending depends on: its key, its subscription's status, and its sender addresses.
/// It changes with each of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppVersion(pub Uuid);

fn encode(id: Uuid) -> String {
    let value = id.as_u128();
    (0..26_u32)
        .map(|position| {
            let five_bits = (value >> (125 - 5 * position)) & 0x1f;
            char::from(ALPHABET[usize::try_from(five_bits).unwrap_or(0)])
        })
        .collect()
}

fn decode(text: &str) -> Option<Uuid> {
    // The first character encodes only the top 3 bits.
    if text.len() != 26 || text.as_bytes()[0] > b'7' {
        return None;
    }
    text.bytes()
        .try_fold(0_u128, |value, byte| {
            let digit = ALPHABET.iter().position(|letter| *letter == byte)?;
            Some((value << 5) | digit as u128)
        })
        .map(Uuid::from_u128)
}

macro_rules! from_uuid {
    ($($name:ident),+) => {$(
        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }
    )+};
}

from_uuid!(AppId, EndpointId, UserKey);

macro_rules! prefixed_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        #[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
        pub struct $name(pub Uuid);

        from_uuid!($name);

        impl $name {
            /// A new id for the time `at`.
            #[must_use]
            pub fn at(at: DateTime<Utc>) -> Self {
                Self(uuid_at(at))
            }

            /// The time in the id, to the millisecond.
            #[must_use]
            pub fn moment(self) -> Option<DateTime<Utc>> {
                let (seconds, nanoseconds) = self.0.get_timestamp()?.to_unix();
                DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
            }
        }

        impl Display for $name {
            fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
                write!(formatter, concat!($prefix, "_{}"), encode(self.0))
            }
        }

        impl Debug for $name {
            fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
                Display::fmt(self, formatter)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.strip_prefix(concat!($prefix, "_"))
                    .and_then(decode)
                    .map(Self)
                    .ok_or(InvalidId)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }
    };
}

prefixed_id!(
    /// A message that was refused before a mailbox was selected.
    RefusalId,
    "ref"
);
prefixed_id!(
    /// A subscriber: the tenant account.
    SubscriberId,
    "sub"
);
prefixed_id!(
    /// A connected mailbox (the spec's credential).
    CredentialId,
    "cred"
);
prefixed_id!(
    /// A message and its log row.
    LogId,
    "log"
);
prefixed_id!(
    /// A session of the portal.
    PortalSessionId,
    "psess"
);
prefixed_id!(
    /// One run of a gateway process.
    GatewayId,
    "gw"
);

prefixed_id!(
    /// A webhook configuration.
    WebhookConfigId,
    "wconf"
);
prefixed_id!(
    /// One attempt to deliver a webhook message.
    WebhookDeliveryId,
    "wdel"
);
prefixed_id!(
    /// An event as webhooks deliver it: the `webhook-id`.
    WebhookMessageId,
    "msg"
);

prefixed_id!(
    /// A certificate from an ACME server.
    CertificateId,
    "cert"
);
prefixed_id!(
    /// An account at an ACME server.
    AcmeAccountId,
    "acct"
);
prefixed_id!(
    /// An entry of the audit trail.
    AuditEntryId,
    "audit"
);

prefixed_id!(
    /// A send key of an app. The main one has the app's own id.
    SendKeyId,
    "skey"
);
prefixed_id!(
    /// An additional API secret of a subscriber.
    ApiSecretId,
    "asec"
);

/// A webhook endpoint: a webhook configuration, or an app's own `webhook_url`, which has the app's id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EndpointId(pub Uuid);

impl From<WebhookConfigId> for EndpointId {
    fn from(config: WebhookConfigId) -> Self {
        Self(config.0)
    }
}

impl From<AppId> for EndpointId {
    fn from(app: AppId) -> Self {
        Self(app.0)
    }
}

impl EndpointId {
    /// The webhook configuration; `None` for the app's own `webhook_url`.
    #[must_use]
    pub fn config(self, app: AppId) -> Option<WebhookConfigId> {
        (self.0 != app.0).then_some(WebhookConfigId(self.0))
    }
}

/// An app: a UUID, shown as one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AppId(pub Uuid);

/// An end user of an app: a UUID, shown as one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UserKey(pub Uuid);

/// The owner of messages: an app, or a subscriber with all of its apps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Owner {
    /// One app.
    App(AppId),
    /// All apps of a subscriber.
    Subscriber(SubscriberId),
}

impl Owner {
    /// The id of either.
    #[must_use]
    pub const fn id(self) -> Uuid {
        match self {
            Self::App(AppId(id)) | Self::Subscriber(SubscriberId(id)) => id,
        }
    }
}

impl Display for AppId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(&self.0, formatter)
    }
}

impl FromStr for UserKey {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        text.parse().map(Self).map_err(|_| InvalidId)
    }
}

impl Display for UserKey {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(&self.0, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_typeid_specifications_own_example() {
        let id = Uuid::from_u128(0x0188_bac7_4afa_78aa_bc3b_bd1e_ef28_d881);
        assert_eq!(encode(id), "01h2xcejqtf2nbrexx3vqjhp41");
    }

    #[test]
    fn refuses_what_is_no_id() {
        for text in [
            "",
            "log_",
            "cred_01h2xcejqtf2nbrexx3vqjhp41",
            "log_01h2xcejqtf2nbrexx3vqjhp4",
            "log_81h2xcejqtf2nbrexx3vqjhp41",
            "log_01H2XCEJQTF2NBREXX3VQJHP41",
            "log_01h2xcejqtf2nbrexx3vqjhpé1",
        ] {
            assert_eq!(text.parse::<LogId>(), Err(InvalidId), "{text}");
        }
    }

    #[test]
    fn ids_follow_time() {
        let now = Utc::now();
        assert!(lowest_uuid_at(now) <= uuid_at(now));
        let told = LogId::at(now)
            .moment()
            .map(|moment| moment.timestamp_millis());
        assert_eq!(told, Some(now.timestamp_millis()));
        let told = moment_of(uuid_at(now)).timestamp_millis();
        assert_eq!(told, now.timestamp_millis());
        assert_eq!(moment_of(Uuid::max()).timestamp_millis(), (1 << 48) - 1);
        assert!(uuid_at(now) < lowest_uuid_at(now + chrono::TimeDelta::milliseconds(1)));
        let mut last = uuid_at(now);
        for step in 1..3_000 {
            let id = uuid_at(now + chrono::TimeDelta::microseconds(step));
            assert!(last < id && id.get_version_num() == 7, "{last} {id}");
            last = id;
        }
        let leap = DateTime::from_timestamp(1_483_228_799, 1_999_999_999).unwrap_or(now);
        assert!(uuid_at(leap) < lowest_uuid_at(leap + chrono::TimeDelta::milliseconds(1)));
    }

    proptest! {
        #[test]
        fn any_id_has_a_moment_or_none(value in any::<u128>(), version in 0_u128..16) {
            let value = value & !(0xf << 76) | version << 76;
            for value in [value, value & !(0xf << 60) | 0x8 << 60] {
                let moment = LogId(Uuid::from_u128(value)).moment();
                let _ = moment.map(lowest_uuid_at);
            }
        }

        #[test]
        fn round_trips(value in any::<u128>()) {
            let id = LogId(Uuid::from_u128(value));
            prop_assert_eq!(id.to_string().parse::<LogId>(), Ok(id));
        }
    }
}
