//! What waits for its time when the database's clock has been set.

use chrono::TimeDelta;
use sqlx::PgConnection;

/// Has messages that may have arrived be waited for anew: the clock by which they left may have been behind.
pub async fn wait_anew(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("UPDATE spool SET left_by = now() WHERE left_by < now()")
        .execute(connection)
        .await?;
    Ok(())
}

/// Brings forward by `by`, which the clock was ahead by, what waits for a time to come, a scheduled message never to
/// before its own: by the clock that is right now it would wait for as much longer. Whoever has a webhook delivery in hand
/// loses its lease, so it may be delivered once more.
pub async fn bring_forward(
    connection: &mut PgConnection,
    by: TimeDelta,
) -> Result<(), sqlx::Error> {
    let seconds = by.as_seconds_f64();
    sqlx::query!(
        "UPDATE subscribers
         SET payprov_look_due_at = payprov_look_due_at - make_interval(secs => $1),
             reactivation_lease_until = reactivation_lease_until - make_interval(secs => $1)
         WHERE greatest(payprov_look_due_at, reactivation_lease_until) > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE mailboxes
         SET refresh_due_at = refresh_due_at - make_interval(secs => $1),
             replies_due_at = replies_due_at - make_interval(secs => $1),
             addresses_due_at = addresses_due_at - make_interval(secs => $1),
             refresh_lease_until = refresh_lease_until - make_interval(secs => $1),
             access_token_expires_at = access_token_expires_at - make_interval(secs => $1),
             parked_until = CASE WHEN parked_until > now()
                                 THEN parked_until - make_interval(secs => $1) ELSE parked_until END
         WHERE status = 'active'
               AND greatest(refresh_due_at, replies_due_at, addresses_due_at, refresh_lease_until,
                            access_token_expires_at, parked_until) > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE billing_jobs
         SET due_at = due_at - make_interval(secs => $1),
             lease_until = lease_until - make_interval(secs => $1)
         WHERE greatest(due_at, lease_until) > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE payprov_events
         SET due_at = due_at - make_interval(secs => $1),
             lease_until = lease_until - make_interval(secs => $1)
         WHERE state = 'waiting' AND greatest(due_at, lease_until) > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE billing_notices
         SET due_at = due_at - make_interval(secs => $1),
             lease_until = lease_until - make_interval(secs => $1)
         WHERE due_at IS NOT NULL AND greatest(due_at, lease_until) > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE mailbox_pace
         SET next_turn = next_turn - make_interval(secs => $1),
             day_began = day_began - make_interval(secs => $1)
         WHERE greatest(next_turn, day_began) > now()",
        seconds,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE webhook_queue SET due_at = due_at - make_interval(secs => $1)
         WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM webhook_queue WHERE state <> 'ready' AND due_at > now()
             FOR UPDATE SKIP LOCKED
         ))",
        seconds,
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
    .execute(connection)
    .await?;
    Ok(())
}
