//! Rate limits for opening connect links: each visit queries the database without authentication.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use axum::http::StatusCode;
use governor::Quota;
use governor::clock::DefaultClock;

use super::problem::whole_seconds;
use crate::connect::pages::PageProblem;
use mailgate_settings::Limits;
use mailgate_types::address_limiter::AddressLimiter;
use mailgate_types::ids::AppId;
use mailgate_types::limiter::KeyedLimiter;

/// Maximum number of addresses that are tracked.
const ADDRESSES: usize = 100_000;

/// Visits by address, and by the link's app.
#[derive(Debug)]
pub struct Visits {
    addresses: AddressLimiter,
    apps: KeyedLimiter<uuid::Uuid>,
}

impl Visits {
    /// With these limits.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let some = |per_minute: u32| NonZeroU32::new(per_minute).unwrap_or(NonZeroU32::MIN);
        let clock = DefaultClock::default();
        Self {
            addresses: AddressLimiter::new(
                some(limits.connect_visits_per_minute),
                ADDRESSES,
                clock.clone(),
            ),
            // Only existing apps.
            apps: KeyedLimiter::new(
                Quota::per_minute(some(limits.connect_visits_per_minute_per_app)),
                usize::MAX,
                clock,
            ),
        }
    }

    /// Counts a visit from this address.
    pub(crate) fn from(&self, address: IpAddr) -> Result<(), PageProblem> {
        self.addresses.count(address).map_err(too_many)
    }

    /// Counts a visit through a link of this app.
    pub(crate) fn of(&self, app: AppId) -> Result<(), PageProblem> {
        self.apps.count(&app.0).map(drop).map_err(too_many)
    }
}

fn too_many(wait: Duration) -> PageProblem {
    PageProblem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", |notices| {
        &notices.rate_limited
    })
    .after(u32::try_from(whole_seconds(wait)).unwrap_or(u32::MAX))
}
