//! Adjusts waiting times after the database's clock was set.

use std::time::Duration;

use chrono::TimeDelta;
use sqlx::PgConnection;

/// Longer than any lease from a correct clock.
const LONGEST_LEASE: Duration = Duration::from_mins(30);

/// Restarts the wait for messages that may have arrived: the clock at their transmission may have been behind.
pub async fn wait_anew(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("UPDATE spool SET left_by = now() WHERE left_by < now()")
        .execute(connection)
        .await?;
    Ok(())
}

/// Brings forward all future due times by `by`, the amount that the clock was ahead, but no scheduled message to before
/// its own time: by the corrected clock they would wait that much longer. A lease that ends within [`LONGEST_LEASE`]
/// may be from before, and is kept: its holder may still be working.
pub async fn bring_forward(
    connection: &mut PgConnection,
    by: TimeDelta,
) -> Result<(), sqlx::Error> {
    let seconds = by.as_seconds_f64();
    sqlx::query!(
        "UPDATE subscribers SET payprov_look_due_at = payprov_look_due_at - make_interval(secs => $1)
         WHERE payprov_look_due_at > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE mailboxes
         SET refresh_due_at = refresh_due_at - make_interval(secs => $1),
             replies_due_at = replies_due_at - make_interval(secs => $1),
             addresses_due_at = addresses_due_at - make_interval(secs => $1),
             parked_until = CASE WHEN parked_until > now()
                                 THEN parked_until - make_interval(secs => $1) ELSE parked_until END
         WHERE status = 'active'
               AND greatest(refresh_due_at, replies_due_at, addresses_due_at, parked_until) > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE billing_jobs SET due_at = due_at - make_interval(secs => $1) WHERE due_at > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE payprov_events SET due_at = due_at - make_interval(secs => $1)
         WHERE state = 'waiting' AND due_at > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE billing_notices SET due_at = due_at - make_interval(secs => $1) WHERE due_at > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE mailbox_pace
         SET next_turn = next_turn - make_interval(secs => $1),
             day_began = CASE WHEN day_began > now()
                              THEN day_began - make_interval(secs => $1) ELSE day_began END
         WHERE greatest(next_turn, day_began) > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE webhook_queue SET due_at = due_at - make_interval(secs => $1)
         WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM webhook_queue
             WHERE due_at > now() AND (state = 'waiting'
                   OR state = 'leased' AND due_at > now() + make_interval(secs => $2))
             FOR UPDATE SKIP LOCKED
         ))",
        seconds,
        LONGEST_LEASE.as_secs_f64(),
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE spool
         SET next_attempt_at = greatest(next_attempt_at - make_interval(secs => $1), send_at),
             left_by = CASE WHEN left_by > now() THEN left_by - make_interval(secs => $1) ELSE left_by END
         WHERE state = 'deferred' AND next_attempt_at > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    bring_forward_leases(connection, seconds).await
}

/// Brings forward the leases that only a clock that was ahead can have given.
async fn bring_forward_leases(
    connection: &mut PgConnection,
    seconds: f64,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "WITH subscribers AS (
             UPDATE subscribers SET reactivation_lease_until = reactivation_lease_until - make_interval(secs => $2)
             WHERE reactivation_lease_until > now() + make_interval(secs => $1)
         ), mailboxes AS (
             UPDATE mailboxes SET refresh_lease_until = refresh_lease_until - make_interval(secs => $2)
             WHERE refresh_lease_until > now() + make_interval(secs => $1)
         ), events AS (
             UPDATE payprov_events SET lease_until = lease_until - make_interval(secs => $2)
             WHERE lease_until > now() + make_interval(secs => $1)
         ), notices AS (
             UPDATE billing_notices SET lease_until = lease_until - make_interval(secs => $2)
             WHERE lease_until > now() + make_interval(secs => $1)
         )
         UPDATE billing_jobs SET lease_until = lease_until - make_interval(secs => $2)
         WHERE lease_until > now() + make_interval(secs => $1)",
        LONGEST_LEASE.as_secs_f64(),
        seconds,
    )
    .execute(connection)
    .await?;
    Ok(())
}
