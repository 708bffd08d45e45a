//! Leaves a sign of life in the database each minute, and trusts the database's clock by it: nothing is deleted by its
//! age before the first one, nor while a clock that has jumped is not trusted. The last one also tells how the clock was
//! set meanwhile.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use metrics::gauge;
use sqlx::{Connection as _, PgPool};
use tokio_util::sync::CancellationToken;

use super::pause;
use crate::storage::clock_set::{bring_forward, wait_anew};
use crate::storage::outage::trouble;
use crate::storage::pool::maintenance;
use crate::storage::sign_of_life::{read, replace};
use mailgate_types::clock::{SharedClock, TOLERANCE};
use mailgate_types::sign_of_life::SignOfLife;

/// How often, unless the database's clock is set.
const EVERY: Duration = Duration::from_mins(1);

/// How often to ask whether it was.
const ASK: Duration = Duration::from_secs(1);

/// Between two of them at most, as long as a gateway runs and the clock isn't set.
const LONGEST: TimeDelta = TimeDelta::seconds(75);

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
    let (mut left_at, mut steps) = (Instant::now(), clock.steps());
    while pause(ASK, &stop).await {
        let found = clock.steps();
        if left_at.elapsed() < EVERY && found == steps {
            continue;
        }
        left_at = Instant::now();
        let left = leave(&pool, &clock).await;
        if left.is_ok() {
            steps = found;
        }
        match left {
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
    let is_left = match Set::by(last, now, clock) {
        None => replace(&mut connection, last, sign).await?,
        Some(set) => {
            drop(connection);
            leave_set(pool, (last, sign), set).await?
        }
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

/// How the database's clock was set since the last sign of life.
#[derive(Debug, Clone, Copy)]
enum Set {
    /// Back by so much, to a time that is nearer to the machine's: it was ahead.
    Right(TimeDelta),
    /// Forward; or no gateway has run.
    Forward,
}

impl Set {
    fn by(last: SignOfLife, now: DateTime<Utc>, clock: &SharedClock) -> Option<Self> {
        let back = last.observed_at - now;
        if back > TOLERANCE {
            // The clock may not have been synchronized since; one of a single source has nothing to be compared with.
            let machine = clock.ahead().map(|ahead| clock.now() + ahead);
            let off = |time: DateTime<Utc>| machine.map(|machine| (machine - time).abs());
            let is_nearer = machine.is_none() || off(now) < off(last.observed_at);
            return is_nearer.then_some(Self::Right(back));
        }
        (-back > LONGEST).then_some(Self::Forward)
    }
}

/// Leaves one after the database's clock was set, with what follows from that; `false` if another gateway does.
async fn leave_set(
    pool: &PgPool,
    (last, sign): (SignOfLife, SignOfLife),
    set: Set,
) -> Result<bool, sqlx::Error> {
    let mut connection = maintenance(pool).await?;
    let mut transaction = connection.begin().await?;
    if !replace(&mut transaction, last, sign).await? {
        return Ok(false);
    }
    match set {
        Set::Right(by) => bring_forward(&mut transaction, by).await?,
        Set::Forward => wait_anew(&mut transaction).await?,
    }
    transaction.commit().await?;
    if let Set::Right(by) = set {
        tracing::warn!(
            seconds = by.num_seconds(),
            "the database's clock was ahead, and was set back: what waits for its time was brought forward by as much, scheduled messages never to before theirs"
        );
    }
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
