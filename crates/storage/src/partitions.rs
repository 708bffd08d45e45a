//! The daily partitions of the tables of the log and the webhooks. Their names and bounds are computed from dates, so
//! these statements contain no user input.

use std::time::Duration;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection, PgPool};

use super::log_retention;
use mailgate_types::ids::lowest_uuid_at;
use mailgate_types::past::Past;

/// Tables with daily partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tables {
    /// By the `UUIDv7` of a log row.
    Log,
    /// By that of a webhook message.
    Webhooks,
}

impl Tables {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Log, Self::Webhooks];

    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Log => &["email_logs", "email_attempts", "email_recipients"],
            Self::Webhooks => &["webhook_messages", "webhook_deliveries"],
        }
    }
}

/// How often to check whether another session has finished.
const WAIT: Duration = Duration::from_millis(100);

const DATE: &str = "%Y%m%d";

fn name(table: &str, day: NaiveDate) -> String {
    format!("{table}_{}", day.format(DATE))
}

/// The start of a day.
#[must_use]
pub fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

/// Creates the missing partitions of a day (UTC) in all tables. Only one process at a time may call it.
pub async fn create(connection: &mut PgConnection, day: NaiveDate) -> Result<(), sqlx::Error> {
    for tables in Tables::ALL {
        create_in(connection, tables, day).await?;
    }
    Ok(())
}

/// As [`create`], in some tables.
///
/// A partition is created as a table and then attached, since creating it in place would block every insert.
pub async fn create_in(
    connection: &mut PgConnection,
    tables: Tables,
    day: NaiveDate,
) -> Result<(), sqlx::Error> {
    let from = lowest_uuid_at(midnight(day));
    let to = lowest_uuid_at(midnight(day.checked_add_days(Days::new(1)).unwrap_or(day)));
    for table in tables.names() {
        let name = name(table, day);
        if is_attached(connection, &name).await? {
            continue;
        }
        for statement in [
            format!(
                "CREATE TABLE IF NOT EXISTS {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
            ),
            format!(
                "ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ('{from}') TO ('{to}')"
            ),
        ] {
            sqlx::query(AssertSqlSafe(statement))
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(())
}

async fn is_attached(connection: &mut PgConnection, name: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass($1)
           ) AS "exists!""#,
        name,
    )
    .fetch_one(connection)
    .await
}

/// Drops whole partitions of these tables, of the days before that of `past`; returns how many. Inserts continue
/// meanwhile. Only one process at a time may call it, and not within a transaction.
pub async fn drop_before(
    connection: &mut PgConnection,
    tables: Tables,
    past: Past,
) -> Result<usize, sqlx::Error> {
    let mut dropped = 0;
    for &table in tables.names() {
        dropped += drop_of(connection, table, past).await?;
    }
    Ok(dropped)
}

async fn drop_of(
    connection: &mut PgConnection,
    table: &str,
    past: Past,
) -> Result<usize, sqlx::Error> {
    let prefix = format!("{table}_");
    let partitions = sqlx::query!(
        r#"SELECT relname AS "name!", inhdetachpending AS "detach_pending?"
           FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
           WHERE relkind = 'r' AND starts_with(relname::text, $1)
             AND relnamespace = (SELECT relnamespace FROM pg_class
                                 WHERE oid = 'email_logs'::regclass)"#,
        prefix,
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut dropped = 0;
    for partition in partitions {
        let day = day_of(&partition.name, &prefix);
        let Some(day) = day.filter(|day| *day < past.day()) else {
            continue;
        };
        let name = name(table, day);
        let detach = match partition.detach_pending {
            Some(true) => Some("FINALIZE"),
            Some(false) => Some("CONCURRENTLY"),
            None => None,
        };
        if let Some(how) = detach {
            let statement = format!("ALTER TABLE {table} DETACH PARTITION {name} {how}");
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

fn day_of(partition: &str, prefix: &str) -> Option<NaiveDate> {
    let day = partition.strip_prefix(prefix)?;
    NaiveDate::parse_from_str(day, DATE).ok()
}

/// The first day that the log has a partition for.
pub async fn first_day(connection: &mut PgConnection) -> Result<Option<NaiveDate>, sqlx::Error> {
    let names = sqlx::query_scalar!(
        r#"SELECT relname::text AS "name!" FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
           WHERE inhparent = 'email_logs'::regclass AND NOT inhdetachpending"#
    )
    .fetch_all(connection)
    .await?;
    let days = names.iter().filter_map(|name| day_of(name, "email_logs_"));
    Ok(days.min())
}

/// Creates the missing ones of these partitions; `false` if another session is creating some at the moment.
pub async fn make(
    connection: &mut PgConnection,
    wanted: &[(Tables, NaiveDate)],
) -> Result<bool, sqlx::Error> {
    if all_missing(connection, wanted).await?.is_empty() {
        return Ok(true);
    }
    if !try_lock(connection, Right::Make).await? {
        return Ok(false);
    }
    let made = make_missing(connection, wanted).await;
    unlock(connection, Right::Make).await?;
    made.map(|()| true)
}

/// As [`make`], on a connection of its own; waits while another session is creating some. Days that the log no longer
/// goes back to get no partition in it.
pub async fn make_now(pool: &PgPool, wanted: &[(Tables, NaiveDate)]) -> Result<(), sqlx::Error> {
    // If the caller is dropped, the lock ends with its connection.
    let mut connection = pool.acquire().await?.detach();
    let since = log_retention::kept_since(&mut connection)
        .await?
        .date_naive();
    let wanted = wanted.iter().copied();
    let wanted: Vec<_> = wanted
        .filter(|(tables, day)| *tables != Tables::Log || *day >= since)
        .collect();
    while !make(&mut connection, &wanted).await? {
        tokio::time::sleep(WAIT).await;
    }
    Ok(())
}

async fn make_missing(
    connection: &mut PgConnection,
    wanted: &[(Tables, NaiveDate)],
) -> Result<(), sqlx::Error> {
    for (tables, day) in all_missing(connection, wanted).await? {
        create_in(connection, tables, day).await?;
    }
    Ok(())
}

async fn all_missing(
    connection: &mut PgConnection,
    wanted: &[(Tables, NaiveDate)],
) -> Result<Vec<(Tables, NaiveDate)>, sqlx::Error> {
    let mut all = Vec::new();
    for tables in Tables::ALL {
        let days = wanted.iter().filter(|(of, _)| *of == tables);
        let days: Vec<NaiveDate> = days.map(|(_, day)| *day).collect();
        let missing = missing(connection, tables, &days).await?;
        all.extend(missing.into_iter().map(|day| (tables, day)));
    }
    Ok(all)
}

/// Which of these days lack a partition in these tables.
async fn missing(
    connection: &mut PgConnection,
    tables: Tables,
    days: &[NaiveDate],
) -> Result<Vec<NaiveDate>, sqlx::Error> {
    let names: Vec<String> = days
        .iter()
        .flat_map(|day| tables.names().iter().map(|table| name(table, *day)))
        .collect();
    let missing = sqlx::query_scalar!(
        r#"SELECT wanted.name AS "name!" FROM unnest($1::text[]) AS wanted (name)
           WHERE NOT EXISTS (
               SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass(wanted.name)
           )"#,
        &names,
    )
    .fetch_all(connection)
    .await?;
    Ok(days
        .iter()
        .copied()
        .filter(|day| (tables.names().iter()).any(|table| missing.contains(&name(table, *day))))
        .collect())
}

/// Which of today and tomorrow lack a partition in any of the tables.
pub async fn missing_soon(
    connection: &mut PgConnection,
    today: NaiveDate,
) -> Result<Vec<NaiveDate>, sqlx::Error> {
    let days: Vec<NaiveDate> = today.iter_days().take(2).collect();
    let mut all = Vec::new();
    for tables in Tables::ALL {
        all.extend(missing(connection, tables, &days).await?);
    }
    Ok(all)
}

/// The lock for changing the partitions, held by one database session at a time. Dropping waits for every reader of an
/// old partition, so creating has a separate lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Creates partitions.
    Make,
    /// Drops partitions.
    Drop,
    /// Builds indexes on partitions.
    Index,
}

impl Right {
    fn key(self) -> &'static str {
        match self {
            Self::Make => "mailgate partitions make",
            Self::Drop => "mailgate partitions drop",
            Self::Index => "mailgate partitions index",
        }
    }
}

/// Takes a lock for this database session; `false` if another session has it.
pub async fn try_lock(connection: &mut PgConnection, right: Right) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_lock(hashtext($1)::bigint) AS "locked!""#,
        right.key(),
    )
    .fetch_one(connection)
    .await
}

/// Releases a lock.
pub async fn unlock(connection: &mut PgConnection, right: Right) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT pg_advisory_unlock(hashtext($1)::bigint)",
        right.key(),
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}
