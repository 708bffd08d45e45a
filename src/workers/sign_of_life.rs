//! Records a sign of life in the database every minute, to decide whether the database's clock is trusted: nothing is
//! deleted by age before the first one, nor while a clock that has jumped isn't trusted. The last one also shows how
//! the clock was set in between.

use std::time::{Duration, Instant};

use metrics::gauge;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::pause;
use mailgate_domain::sending::ClockSet;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::sign_of_life::{read, replace};
use mailgate_types::clock::SharedClock;
use mailgate_types::sign_of_life::SignOfLife;

/// How often, unless the database's clock is set.
const EVERY: Duration = Duration::from_mins(1);

/// How often to check whether it was set.
const ASK: Duration = Duration::from_secs(1);

/// Records a process's first sign of life.
pub async fn leave_first(pool: &PgPool, clock: &SharedClock) -> Result<(), sqlx::Error> {
    let (_, sign) = leave(pool, clock).await?;
    if sign.held_since.is_some() {
        tell_held(sign);
    }
    Ok(())
}

/// Records further signs of life until `stop`.
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

/// Records a sign of life; returns the previous one and the new one.
async fn leave(
    pool: &PgPool,
    clock: &SharedClock,
) -> Result<(SignOfLife, SignOfLife), sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let (mut last, now) = read(&mut connection).await?;
    let mut sign = last.next(now);
    let is_left = match ClockSet::since(last, now, clock) {
        None => replace(&mut connection, last, sign).await?,
        Some(set) => {
            drop(connection);
            set.apply(pool, (last, sign)).await?
        }
    };
    if !is_left {
        // Another gateway has recorded one at the same moment.
        (last, _) = read(&mut *pool.acquire().await?).await?;
        sign = last;
    }
    clock.trust(sign.trusted_at);
    gauge!("mailgate_deletions_held").set(if sign.held_since.is_some() { 1.0 } else { 0.0 });
    Ok((last, sign))
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
