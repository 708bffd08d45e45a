//! The words that columns of text hold: a statement gives them as what they stand for, and an unknown one is an error.

use sqlx::error::BoxDynError;
use sqlx::postgres::{PgTypeInfo, PgValueRef, Postgres};
use sqlx::{Decode, Type};

use crate::event_name::EventName;
use crate::log_status::LogStatus;
use crate::plugin::Plugin;
use crate::refusal::RefusalReason;
use crate::sign_in::SignedInBy;
use crate::waiting_reason::WaitingReason;

macro_rules! words {
    ($($name:ty),+) => {$(
        impl Type<Postgres> for $name {
            fn type_info() -> PgTypeInfo {
                <str as Type<Postgres>>::type_info()
            }

            fn compatible(column: &PgTypeInfo) -> bool {
                <str as Type<Postgres>>::compatible(column)
            }
        }

        impl Decode<'_, Postgres> for $name {
            fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
                Ok(<&str as Decode<Postgres>>::decode(value)?.parse()?)
            }
        }
    )+};
}

words!(
    EventName,
    LogStatus,
    Plugin,
    RefusalReason,
    SignedInBy,
    WaitingReason
);
