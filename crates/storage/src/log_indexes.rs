//! The indexes that searches of the log use, on partitions from before there were any: each is built while messages
//! are written, and then attached to the index of the whole log. Names of partitions come from the catalogue and have
//! a fixed form, so these statements contain no user input.

use sqlx::{AssertSqlSafe, PgConnection};

/// An index of the log: its name, the suffix of its partitions' index names, and its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogIndex {
    name: &'static str,
    suffix: &'static str,
    definition: &'static str,
}

/// As the migration has them.
const INDEXES: [LogIndex; 3] = [
    LogIndex {
        name: RECIPIENTS,
        suffix: "by_recipient",
        definition: "(subscriber_id, recipient_key(first_recipient(to_address)), id)",
    },
    LogIndex {
        name: "email_logs_by_credential",
        suffix: "by_credential",
        definition: "(credential_id, id)",
    },
    LogIndex {
        name: MESSAGES,
        suffix: "by_message",
        definition: "(message_id, credential_id) WHERE message_id IS NOT NULL",
    },
];

/// Before a partition gets this one, the further recipients of its rows are written.
const RECIPIENTS: &str = "email_logs_by_recipient";

/// Replaces the one below.
const MESSAGES: &str = "email_logs_by_message";
const FORMER: &str = "email_logs_by_message_id";

/// Rows whose recipients are written by one statement.
const BATCH: i64 = 2_000;

/// How long a statement waits for a lock that blocks other statements, in milliseconds.
const LOCK: u32 = 1_000;

/// A part of an index that a partition lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The partition: `email_logs_` and its day.
    pub partition: String,
    /// The index of the whole log.
    pub index: String,
}

impl Missing {
    fn index(&self) -> Option<LogIndex> {
        INDEXES.into_iter().find(|index| index.name == self.index)
    }
}

/// The missing parts, newest partitions first.
pub async fn missing(connection: &mut PgConnection) -> Result<Vec<Missing>, sqlx::Error> {
    let names = INDEXES.map(|index| index.name);
    sqlx::query_as!(
        Missing,
        r#"SELECT part.relname::text AS "partition!", wanted.name AS "index!"
           FROM unnest($1::text[]) WITH ORDINALITY AS wanted (name, place)
                JOIN pg_index AS whole ON whole.indexrelid = to_regclass(wanted.name)
                                          AND NOT whole.indisvalid
                JOIN pg_inherits AS parts ON parts.inhparent = whole.indrelid
                                             AND NOT parts.inhdetachpending
                JOIN pg_class AS part ON part.oid = parts.inhrelid
           WHERE part.relname ~ '^email_logs_[0-9]{8}$'
                 AND NOT EXISTS (
                     SELECT FROM pg_inherits AS attached
                                 JOIN pg_index ON pg_index.indexrelid = attached.inhrelid
                     WHERE attached.inhparent = whole.indexrelid AND pg_index.indrelid = part.oid
                 )
           ORDER BY part.relname DESC, place"#,
        &names as &[&str],
    )
    .fetch_all(connection)
    .await
}

/// Builds the missing parts, and attaches them. Parts from an interrupted attempt are rebuilt, or attached if they were
/// complete. Only one process at a time may call it, and not within a transaction.
pub async fn build(connection: &mut PgConnection, missing: &Missing) -> Result<(), sqlx::Error> {
    let Some(index) = missing.index() else {
        return Ok(());
    };
    let partition = &missing.partition;
    let name = format!("{partition}_{}", index.suffix);
    let mut is_whole = is_valid(connection, &name).await?;
    if is_whole == Some(false) {
        execute(connection, format!("DROP INDEX CONCURRENTLY {name}")).await?;
        is_whole = None;
    }
    if is_whole.is_none() {
        if index.name == RECIPIENTS {
            write_recipients(connection, partition).await?;
        }
        let definition = index.definition;
        let create = format!("CREATE INDEX CONCURRENTLY {name} ON {partition} {definition}");
        execute(connection, create).await?;
    }
    let attach = format!("ALTER INDEX {} ATTACH PARTITION {name}", index.name);
    briefly(connection, attach).await
}

/// Drops the index that another one has replaced, once that one is complete.
pub async fn drop_former(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    if is_valid(connection, FORMER).await?.is_none() {
        return Ok(());
    }
    briefly(connection, format!("DROP INDEX IF EXISTS {FORMER}")).await
}

/// Whether an index is valid; `None` if there is none of this name.
async fn is_valid(connection: &mut PgConnection, name: &str) -> Result<Option<bool>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)",
        name,
    )
    .fetch_optional(connection)
    .await
}

/// Writes the further recipients of a partition's rows; those that are there stay.
async fn write_recipients(
    connection: &mut PgConnection,
    partition: &str,
) -> Result<(), sqlx::Error> {
    let statement = format!(
        "WITH batch AS MATERIALIZED (
             SELECT id, subscriber_id, to_address, cc_addresses, bcc_addresses
             FROM {partition}
             WHERE id > $1 ORDER BY id LIMIT $2
         ), written AS (
             INSERT INTO email_recipients (subscriber_id, recipient, log_id)
             SELECT subscriber_id, recipient_key(address), id
             FROM batch
                  CROSS JOIN LATERAL log_recipients(to_address, cc_addresses, bcc_addresses)
                             AS named (address)
             WHERE subscriber_id IS NOT NULL
                   AND (cc_addresses <> '{{}}' OR bcc_addresses <> '{{}}'
                        OR strpos(to_address, ', ') > 0)
                   AND address <> lower(first_recipient(to_address) COLLATE \"C\")
             ON CONFLICT DO NOTHING
         )
         SELECT max(id::text)::uuid FROM batch"
    );
    let mut last = Some(sqlx::types::Uuid::nil());
    while let Some(id) = last {
        last = sqlx::query_scalar(AssertSqlSafe(statement.clone()))
            .bind(id)
            .bind(BATCH)
            .fetch_one(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Runs a statement that needs a lock that blocks other statements: it gives up soon. After an error the connection is
/// no longer usable.
async fn briefly(connection: &mut PgConnection, statement: String) -> Result<(), sqlx::Error> {
    let longest = "SET lock_timeout = '1h'";
    let statements = format!("SET lock_timeout = {LOCK}; {statement}; {longest}");
    execute(connection, statements).await
}

async fn execute(connection: &mut PgConnection, statement: String) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(connection)
        .await?;
    Ok(())
}
