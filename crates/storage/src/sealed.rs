//! Every column that holds a sealed value, so that all of them can be resealed. The names are constants, so these
//! statements contain no user input.

use sqlx::postgres::PgRow;
use sqlx::types::Uuid;
use sqlx::{AssertSqlSafe, PgConnection, Row as _};

/// A sealed column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedColumn {
    /// Its table.
    pub table: &'static str,
    /// Its name.
    pub column: &'static str,
    /// The primary key: columns of type uuid.
    key: &'static [&'static str],
    /// The context that its values are sealed for, as SQL over a row of the table.
    context: &'static str,
    /// The column with the lookup digest of the same value.
    digest: Option<&'static str>,
}

/// The context of a webhook secret in a row that names its endpoint.
const OF_ENDPOINT: &str = "CASE WHEN endpoint_id = app_id THEN 'apps.webhook_secret ' || app_id ELSE 'webhook_configs.secret ' || endpoint_id END";

/// All of them, except [`LAPSING`]: a new column must be added here.
#[rustfmt::skip]
pub const COLUMNS: &[SealedColumn] = &[
    column("subscribers", "api_secret_sealed", &["id"], "'subscribers.api_secret ' || id", Some("api_secret_digest")),
    column("apps", "send_key_sealed", &["id"], "'apps.send_key ' || id", Some("send_key_digest")),
    column("apps", "webhook_secret_sealed", &["id"], "'apps.webhook_secret ' || id", None),
    column("apps", "previous_webhook_secret_sealed", &["id"], "'apps.webhook_secret ' || id", None),
    column("send_keys", "hash_sealed", &["id"], "'send_keys.hash ' || id", Some("digest")),
    column("api_secrets", "hash_sealed", &["id"], "'api_secrets.hash ' || id", Some("digest")),
    column("mailboxes", "refresh_token_sealed", &["id"], "'mailboxes.refresh_token ' || id", None),
    column("mailboxes", "access_token_sealed", &["id"], "'mailboxes.access_token ' || id", None),
    column("webhook_configs", "secret_sealed", &["id"], "'webhook_configs.secret ' || id", None),
    column("webhook_configs", "previous_secret_sealed", &["id"], "'webhook_configs.secret ' || id", None),
    column("webhook_queue", "secret_sealed", &["message_id", "endpoint_id"], OF_ENDPOINT, None),
    column("deleted_webhook_endpoints", "secret_sealed", &["endpoint_id"], OF_ENDPOINT, None),
    column("deleted_webhook_endpoints", "previous_secret_sealed", &["endpoint_id"], OF_ENDPOINT, None),
    column("acme_accounts", "credentials_sealed", &["id"], "'acme_accounts.credentials ' || id", None),
    column("certificates", "pair_sealed", &["id"], "'certificates.pair ' || id", None),
];

/// Columns of rows that are found by a keyed digest of a value that isn't stored: they can't be moved to another key,
/// and expire at `expires_at`.
pub const LAPSING: &[(&str, &str)] = &[("oauth_states", "code_verifier_sealed")];

const fn column(
    table: &'static str,
    column: &'static str,
    key: &'static [&'static str],
    context: &'static str,
    digest: Option<&'static str>,
) -> SealedColumn {
    SealedColumn {
        table,
        column,
        key,
        context,
        digest,
    }
}

/// A sealed value as it was read.
#[derive(Debug)]
pub struct SealedValue {
    /// The row.
    pub key: Vec<Uuid>,
    /// The context that it is sealed for.
    pub context: String,
    /// The value, unless it begins with the given prefix or is NULL.
    pub sealed: Option<Vec<u8>>,
}

/// A replacement for a sealed value.
#[derive(Debug)]
pub struct Replacement {
    /// The row.
    pub key: Vec<Uuid>,
    /// The value that was read.
    pub read: Vec<u8>,
    /// The new value.
    pub sealed: Vec<u8>,
    /// The lookup digest, if the column has one.
    pub digest: Vec<u8>,
}

impl SealedColumn {
    /// Whether the column has a lookup digest.
    #[must_use]
    pub fn has_digest(&self) -> bool {
        self.digest.is_some()
    }

    /// The next values in primary key order after `after`, `limit` at most. Every call costs the same: a range of the
    /// primary key.
    pub async fn read(
        &self,
        connection: &mut PgConnection,
        after: Option<&[Uuid]>,
        prefix: &[u8],
        limit: i64,
    ) -> Result<Vec<SealedValue>, sqlx::Error> {
        let (table, column, context) = (self.table, self.column, self.context);
        let key = self.key.join(", ");
        let beyond = if after.is_some() {
            let after: Vec<String> = (1..=self.key.len()).map(|n| format!("$3[{n}]")).collect();
            format!("({key}) > ({})", after.join(", "))
        } else {
            "$3::uuid[] IS NULL".to_owned()
        };
        let statement = format!(
            "SELECT ARRAY[{key}] AS key, {context} AS context,
                    CASE WHEN substring({column} FOR length($1)) <> $1 THEN {column} END AS sealed
             FROM {table} WHERE {beyond} ORDER BY {key} LIMIT $2"
        );
        let rows = sqlx::query(AssertSqlSafe(statement))
            .bind(prefix)
            .bind(limit)
            .bind(after)
            .fetch_all(connection)
            .await?;
        rows.iter().map(value).collect()
    }

    /// Replaces values that are still the ones that were read; returns how many. It never waits: rows that are locked
    /// at the moment are skipped.
    pub async fn replace(
        &self,
        connection: &mut PgConnection,
        replacements: &[Replacement],
    ) -> Result<u64, sqlx::Error> {
        let (table, column) = (self.table, self.column);
        let numbers = 1..=self.key.len();
        let keys: Vec<String> = numbers
            .clone()
            .map(|n| format!("${}::uuid[]", n + 3))
            .collect();
        let names: Vec<String> = numbers.map(|n| format!("key{n}")).collect();
        let same = |with: &str| -> String {
            let pairs = self.key.iter().zip(&names);
            let pairs: Vec<String> = pairs
                .map(|(column, name)| format!("kept.{column} = {with}.{name}"))
                .collect();
            pairs.join(" AND ")
        };
        let digest = self
            .digest
            .map_or_else(String::new, |digest| format!(", {digest} = free.digest"));
        let statement = format!(
            "WITH free AS MATERIALIZED (
                 SELECT fresh.* FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], {keys})
                                     AS fresh (before, sealed, digest, {names})
                        JOIN {table} AS kept ON {joined} AND kept.{column} = fresh.before
                 FOR UPDATE OF kept SKIP LOCKED
             )
             UPDATE {table} AS kept SET {column} = free.sealed{digest}
             FROM free WHERE {replaced}",
            keys = keys.join(", "),
            names = names.join(", "),
            joined = same("fresh"),
            replaced = same("free"),
        );
        let column_of = |value: fn(&Replacement) -> &Vec<u8>| -> Vec<&[u8]> {
            replacements.iter().map(|it| value(it).as_slice()).collect()
        };
        let mut query = sqlx::query(AssertSqlSafe(statement))
            .bind(column_of(|it| &it.read))
            .bind(column_of(|it| &it.sealed))
            .bind(column_of(|it| &it.digest));
        for part in 0..self.key.len() {
            let keys: Vec<Uuid> = replacements
                .iter()
                .filter_map(|it| it.key.get(part).copied())
                .collect();
            query = query.bind(keys);
        }
        Ok(query.execute(connection).await?.rows_affected())
    }
}

fn value(row: &PgRow) -> Result<SealedValue, sqlx::Error> {
    Ok(SealedValue {
        key: row.try_get("key")?,
        context: row.try_get("context")?,
        sealed: row.try_get("sealed")?,
    })
}

/// The secret that was sealed for the newest subscriber, with its context; `None` if there is no subscriber.
pub async fn newest_secret(
    connection: &mut PgConnection,
) -> Result<Option<(String, Vec<u8>)>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT 'subscribers.api_secret ' || id AS "context!", api_secret_sealed
           FROM subscribers ORDER BY id DESC LIMIT 1"#
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| (row.context, row.api_secret_sealed)))
}

/// The number of rows of [`LAPSING`] columns that are still valid at `now` and don't begin with the prefix.
pub async fn lapsing(
    connection: &mut PgConnection,
    prefix: &[u8],
    now: chrono::DateTime<chrono::Utc>,
) -> Result<i64, sqlx::Error> {
    let mut all = 0;
    for (table, column) in LAPSING {
        let statement = format!(
            "SELECT count(*) FROM {table}
             WHERE expires_at > $2 AND substring({column} FOR length($1)) <> $1"
        );
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(statement))
            .bind(prefix)
            .bind(now)
            .fetch_one(&mut *connection)
            .await?;
        all += count;
    }
    Ok(all)
}
