//! The table `mailbox_pace`: the recent sends of each mailbox, for providers that limit them.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::CredentialId;

/// The rate limits of a mailbox.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Seconds between two messages at the steady rate.
    pub interval_seconds: f64,
    /// Seconds' worth of unused turns that a mailbox may accumulate.
    pub burst_seconds: f64,
    /// The longest wait for a turn, in seconds; a later turn is not taken.
    pub patience_seconds: f64,
    /// Messages in 24 hours.
    pub per_day: i64,
}

/// The result of requesting a turn.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// The message's turn; beyond the patience, the next free turn, which is not taken.
    pub turn: DateTime<Utc>,
    /// The daily limit is used up until then.
    pub day_over_until: Option<DateTime<Utc>>,
}

/// Takes a turn of a mailbox. If the daily limit is used up, there is none; if the next turn is too far ahead, it is
/// left to others, since this message must try again.
pub async fn take(
    connection: &mut PgConnection,
    id: CredentialId,
    bounds: Bounds,
    now: DateTime<Utc>,
) -> Result<Slot, sqlx::Error> {
    // The row stores when the turn after the last one is; a mailbox that has not sent for a while has accumulated the
    // burst, no more.
    let row = sqlx::query!(
        r#"INSERT INTO mailbox_pace AS pace (credential_id, next_turn, day_began, day_messages)
           VALUES ($1, $2::timestamptz - make_interval(secs => $4) + make_interval(secs => $3), $2, 1)
           ON CONFLICT (credential_id) DO UPDATE
           SET next_turn = CASE
                   WHEN pace.day_began + interval '24 hours' > $2 AND pace.day_messages >= $5
                       THEN pace.next_turn
                   ELSE greatest(pace.next_turn, $2 - make_interval(secs => $4))
                        + make_interval(secs => $3)
               END,
               day_began = CASE
                   WHEN pace.day_began + interval '24 hours' > $2 THEN pace.day_began
                   ELSE $2
               END,
               day_messages = CASE
                   WHEN pace.day_began + interval '24 hours' > $2
                       THEN least(pace.day_messages + 1, $5 + 1)
                   ELSE 1
               END
           WHERE pace.next_turn <= $2 + make_interval(secs => $6)
              OR (pace.day_began + interval '24 hours' > $2 AND pace.day_messages >= $5)
           RETURNING next_turn - make_interval(secs => $3) AS "turn!",
                     day_began + interval '24 hours' AS "day_ends!",
                     day_messages > $5 AS "is_over!""#,
        id.0,
        now,
        bounds.interval_seconds,
        bounds.burst_seconds,
        bounds.per_day,
        bounds.patience_seconds,
    )
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(row) = row {
        return Ok(Slot {
            turn: row.turn,
            day_over_until: row.is_over.then_some(row.day_ends),
        });
    }
    let turn = sqlx::query_scalar!(
        "SELECT next_turn FROM mailbox_pace WHERE credential_id = $1",
        id.0,
    )
    .fetch_one(connection)
    .await?;
    Ok(Slot {
        turn,
        day_over_until: None,
    })
}
