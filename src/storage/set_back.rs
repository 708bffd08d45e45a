//! What waits for its time when the database's clock has been set back: it was put off by a clock that was ahead, and
//! would wait for as long again.

use chrono::TimeDelta;
use sqlx::PgConnection;

/// Brings forward by `by` what waits for a time to come, a scheduled message never to before its own. Whoever has a
/// webhook delivery in hand loses its lease, so it may be delivered once more.
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
             addresses_due_at = addresses_due_at - make_interval(secs => $1)
         WHERE status = 'active' AND greatest(refresh_due_at, replies_due_at, addresses_due_at) > now()",
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
