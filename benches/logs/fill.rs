//! Fills a log: rows by `COPY`, day by day, and then the counters to match.

use std::fmt::Write as _;
use std::time::Instant;

use chrono::{DateTime, Days, TimeDelta, Utc};
use mailgate_storage::partitions::midnight;
use mailgate_types::ids::{AppId, CredentialId, SubscriberId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sqlx::{AssertSqlSafe, PgConnection, PgPool};
use uuid::Uuid;

use super::Outcome;
use super::log::{DAYS, Log};

/// One in so many rows has another status, or another plugin, than the rest; and one in so many is of
/// the first app.
const FAILED_PERM: u32 = 5_000;
const FAILED_TEMP: u32 = 10_000;
const PLUGIN_B: u32 = 20;
const FIRST_APP: u32 = 5;

/// One in so many rows goes to the same address, and one in so many to a further one too.
const HOT: u32 = 10;
const FURTHER: u32 = 50;

/// Mailboxes that have sent the rows.
const MAILBOXES: u32 = 10_000;

/// The address that a tenth of all goes to, and the one that gets copies.
pub const HOT_ADDRESS: &str = "hot@customers.example";
pub const COPIED_ADDRESS: &str = "copies@customers.example";

/// One of the mailboxes.
pub fn mailbox(number: u32) -> CredentialId {
    CredentialId(Uuid::from_u128(
        u128::from(number) << 64 | 0x7000_8000_0000_0000_0000,
    ))
}

/// Rows that are handed over together.
const PIECE: usize = 5_000;

pub async fn fill(log: &Log, rows: u64) -> Outcome<()> {
    let began = Instant::now();
    let now = Utc::now();
    let first = now - TimeDelta::days(i64::try_from(DAYS)?) + TimeDelta::minutes(1);
    let length = u64::try_from((now - first).num_milliseconds())?;
    let mut connection = log.pool.acquire().await?;
    let mut random = StdRng::seed_from_u64(rows);
    let mut day = first.date_naive();
    let mut row = 0;
    while row < rows {
        let end = midnight(day + Days::new(1));
        let moment = |row: u64| -> Outcome<DateTime<Utc>> {
            let at = u128::from(row) * u128::from(length) / u128::from(rows);
            Ok(first + TimeDelta::milliseconds(i64::try_from(at)?))
        };
        let statement = format!(
            "COPY email_logs_{} (id, app_id, credential_id, from_address, to_address, cc_addresses,
                                 bcc_addresses, subject, plugin, status, error_message, message_id,
                                 size_bytes, has_attachments, sent_at, subscriber_id) FROM STDIN",
            day.format("%Y%m%d")
        );
        let mut copy = connection.copy_in_raw(&statement).await?;
        let mut text = String::new();
        let mut in_piece = 0;
        while row < rows {
            let at = moment(row)?;
            if at >= end {
                break;
            }
            line(&mut text, &mut random, at, log.subscriber, &log.apps)?;
            (row, in_piece) = (row + 1, in_piece + 1);
            if in_piece == PIECE {
                copy.send(text.as_bytes()).await?;
                text.clear();
                in_piece = 0;
            }
        }
        copy.send(text.as_bytes()).await?;
        copy.finish().await?;
        count(&mut connection, day.format("%Y%m%d").to_string()).await?;
        if rows > 100_000 {
            eprint!(
                "\rbench-logs: {row} of {rows} rows, {:.0} s ",
                began.elapsed().as_secs_f64()
            );
        }
        day = day + Days::new(1);
    }
    log.reports.fold_counters().await?;
    log.reports.vacuum_counters().await?;
    settle(&log.pool).await?;
    eprintln!(
        "\rbench-logs: {rows} rows and their counters in {:.0} s",
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

/// One row as `COPY` reads it.
fn line(
    text: &mut String,
    random: &mut StdRng,
    at: DateTime<Utc>,
    subscriber: SubscriberId,
    apps: &[AppId],
) -> Outcome<()> {
    let app = if random.random_range(0..FIRST_APP) == 0 {
        apps[0]
    } else {
        apps[random.random_range(0..apps.len())]
    };
    // A UUIDv7: milliseconds, then random.
    let milliseconds = u128::try_from(at.timestamp_millis())?;
    let low = random.random::<u128>() & ((1 << 80) - 1);
    let version = (low & !(0xf << 76) & !(0x3 << 62)) | (0x7 << 76) | (0x2 << 62);
    let id = Uuid::from_u128((milliseconds << 80) | version);
    let plugin = if random.random_range(0..PLUGIN_B) == 0 {
        "plugin_b"
    } else {
        "plugin_a"
    };
    let (status, error) = if random.random_range(0..FAILED_PERM) == 0 {
        ("failed_perm", "550 5.1.1 no such user")
    } else if random.random_range(0..FAILED_TEMP) == 0 {
        ("failed_temp", "451 4.3.0 try again")
    } else {
        ("sent", "\\N")
    };
    let number = random.random::<u32>();
    let to = if random.random_range(0..HOT) == 0 {
        HOT_ADDRESS.to_owned()
    } else {
        format!("user{number}@customers.example")
    };
    let cc = if random.random_range(0..FURTHER) == 0 {
        format!("{{{COPIED_ADDRESS}}}")
    } else {
        "{}".to_owned()
    };
    let mailbox = mailbox(random.random_range(0..MAILBOXES)).0;
    writeln!(
        text,
        "{id}\t{app}\t{mailbox}\tada@example.com\t{to}\t{cc}\t{{}}\tYour order {number} has left\t{plugin}\t{status}\t{error}\t<{id}@mail.example.com>\t5120\tf\t{at}\t{subscriber}",
        app = app.0,
        subscriber = subscriber.0,
        at = at.to_rfc3339(),
    )?;
    Ok(())
}

/// Counts a day's rows as the journal would have.
async fn count(connection: &mut PgConnection, day: String) -> Outcome<()> {
    let statement = format!(
        "INSERT INTO email_counter_changes (app_id, hour, plugin, status, messages)
         SELECT app_id, date_trunc('hour', sent_at, 'UTC'), plugin, status, count(*)
         FROM email_logs_{day} GROUP BY 1, 2, 3, 4"
    );
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(connection)
        .await?;
    Ok(())
}

/// What autovacuum does in time.
async fn settle(pool: &PgPool) -> Outcome<()> {
    sqlx::raw_sql("VACUUM (ANALYZE)").execute(pool).await?;
    sqlx::raw_sql("CHECKPOINT").execute(pool).await?;
    Ok(())
}
