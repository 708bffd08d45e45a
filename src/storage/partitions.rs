//! The daily partitions of `email_logs`. Their names and bounds are worked out here from dates, so
//! these statements hold nothing that anybody sent.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection};

use crate::types::ids::lowest_uuid_at;

const PREFIX: &str = "email_logs_";
const DATE: &str = "%Y%m%d";

fn name(day: NaiveDate) -> String {
    format!("{PREFIX}{}", day.format(DATE))
}

fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

/// Makes the partition of a day (UTC) unless it is there. Only one process at a time may call it.
///
/// The table is attached and not made in place, since that would lock out every insert.
///
/// # Errors
///
/// What the database said.
pub async fn create(connection: &mut PgConnection, day: NaiveDate) -> Result<(), sqlx::Error> {
    let name = name(day);
    let attached = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass($1)) AS "exists!""#,
        name,
    )
    .fetch_one(&mut *connection)
    .await?;
    if attached {
        return Ok(());
    }
    let from = lowest_uuid_at(midnight(day));
    let to = lowest_uuid_at(midnight(day.checked_add_days(Days::new(1)).unwrap_or(day)));
    for statement in [
        format!(
            "CREATE TABLE IF NOT EXISTS {name} (LIKE email_logs INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
        ),
        format!(
            "ALTER TABLE email_logs ATTACH PARTITION {name} FOR VALUES FROM ('{from}') TO ('{to}')"
        ),
    ] {
        sqlx::query(AssertSqlSafe(statement))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Drops whole partitions of the days before `oldest`; answers how many. Inserts go on meanwhile.
/// Only one process at a time may call it, and not within a transaction.
///
/// # Errors
///
/// What the database said.
pub async fn drop_before(
    connection: &mut PgConnection,
    oldest: NaiveDate,
) -> Result<usize, sqlx::Error> {
    let tables = sqlx::query!(
        r#"SELECT relname AS "name!", inhdetachpending AS "detach_pending?"
           FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
           WHERE relkind = 'r' AND relname LIKE 'email\_logs\_%'
             AND relnamespace = (SELECT relnamespace FROM pg_class
                                 WHERE oid = 'email_logs'::regclass)"#,
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut dropped = 0;
    for table in tables {
        let day = table
            .name
            .strip_prefix(PREFIX)
            .and_then(|day| NaiveDate::parse_from_str(day, DATE).ok());
        let Some(day) = day.filter(|day| *day < oldest) else {
            continue;
        };
        let name = name(day);
        let detach = match table.detach_pending {
            Some(true) => Some("FINALIZE"),
            Some(false) => Some("CONCURRENTLY"),
            None => None,
        };
        if let Some(how) = detach {
            let statement = format!("ALTER TABLE email_logs DETACH PARTITION {name} {how}");
            sqlx::query(AssertSqlSafe(statement))
                .execute(&mut *connection)
                .await?;
        }
        sqlx::query(AssertSqlSafe(format!("DROP TABLE {name}")))
            .execute(&mut *connection)
            .await?;
        dropped += 1;
    }
    Ok(dropped)
}

/// Takes the right to look after the partitions, for this session of the database; `false` when
/// another replica has it.
///
/// # Errors
///
/// What the database said.
pub async fn try_lock(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_lock(hashtext('mailgate partitions')::bigint) AS "locked!""#
    )
    .fetch_one(connection)
    .await
}

/// Waits for that right: at the start, when the tables must be there before the first message.
///
/// # Errors
///
/// What the database said.
pub async fn lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!("SELECT pg_advisory_lock(hashtext('mailgate partitions')::bigint)::text")
        .fetch_one(connection)
        .await?;
    Ok(())
}

/// Gives that right back.
///
/// # Errors
///
/// What the database said.
pub async fn unlock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!("SELECT pg_advisory_unlock(hashtext('mailgate partitions')::bigint)")
        .fetch_one(connection)
        .await?;
    Ok(())
}
