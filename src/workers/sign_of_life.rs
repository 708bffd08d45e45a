//! Leaves a sign of life in the database each minute, and trusts the database's clock by it: nothing is deleted by its
//! age before the first one, nor while a clock that has jumped is not trusted. One that lies ahead shows that the clock
//! was set back, and what waits is brought forward.

use std::time::Duration;

use chrono::TimeDelta;
use metrics::gauge;
use sqlx::{Connection as _, PgPool};
use tokio_util::sync::CancellationToken;

use super::pause;
use crate::storage::outage::trouble;
use crate::storage::pool::maintenance;
use crate::storage::set_back::bring_forward;
use crate::storage::sign_of_life::{read, replace};
use mailgate_types::clock::{SharedClock, TOLERANCE};
use mailgate_types::sign_of_life::SignOfLife;

/// How often.
const EVERY: Duration = Duration::from_mins(1);

/// Leaves the first one of a process.
pub async fn leave_first(pool: &PgPool, clock: &SharedClock) -> Result<(), sqlx::Error> {
    let (_, sign) = leave(pool, clock).await?;
    if sign.held_since.is_some() {
        tell_held(sign);
    }
    Ok(())
}

/// Leaves further ones until `stop`.
pub async fn run(pool: PgPool, clock: SharedClock, stop: CancellationToken) {
    while pause(EVERY, &stop).await {
        match leave(&pool, &clock).await {
            Ok((last, sign)) if sign.held_since.is_some() && sign.held_since != last.held_since => {
                tell_held(sign);
            }
            Ok((last, sign)) if sign.held_since.is_none() && last.held_since.is_some() => {
                tracing::info!(
                    "the database's clock is trusted again: what is older than it is kept is deleted as before"
                );
            }
            Ok(_) => {}
            Err(error) => trouble!(
                error,
                error,
                "no sign of life can be left: nothing is deleted by its age"
            ),
        }
    }
}

/// Leaves one; returns the last one and it.
async fn leave(
    pool: &PgPool,
    clock: &SharedClock,
) -> Result<(SignOfLife, SignOfLife), sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let (mut last, now) = read(&mut connection).await?;
    let mut sign = last.next(now);
    let set_back = last.observed_at - now;
    let is_left = if set_back > TOLERANCE {
        drop(connection);
        leave_set_back(pool, (last, sign), set_back).await?
    } else {
        replace(&mut connection, last, sign).await?
    };
    if !is_left {
        // Another gateway has left one at the same moment.
        (last, _) = read(&mut *pool.acquire().await?).await?;
        sign = last;
    }
    clock.trust(sign.trusted_at);
    gauge!("mailgate_deletions_held").set(if sign.held_since.is_some() { 1.0 } else { 0.0 });
    Ok((last, sign))
}

/// Leaves one after the database's clock was set back, and brings forward what waits by the old time; `false` if another
/// gateway does.
async fn leave_set_back(
    pool: &PgPool,
    (last, sign): (SignOfLife, SignOfLife),
    by: TimeDelta,
) -> Result<bool, sqlx::Error> {
    let mut connection = maintenance(pool).await?;
    let mut transaction = connection.begin().await?;
    if !replace(&mut transaction, last, sign).await? {
        return Ok(false);
    }
    bring_forward(&mut transaction, by).await?;
    transaction.commit().await?;
    tracing::warn!(
        seconds = by.num_seconds(),
        "the database's clock was set back: what waits for its time was brought forward by as much, scheduled messages never to before theirs"
    );
    Ok(true)
}

fn tell_held(sign: SignOfLife) {
    let until = sign.held_until();
    tracing::warn!(
        trusted_at = %sign.trusted_at,
        now = %sign.observed_at,
        until = until.map(tracing::field::display),
        "the database's clock has moved on by more than a week since a gateway last ran: nothing is deleted by its age until it has gone on for a day; if the clock is right, mailgate trust-clock ends the wait"
    );
}
