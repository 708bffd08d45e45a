//! One private Postgres for the whole test process, and a database of its own for each test.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mailgate::workers;
use mailgate_sandbox::postgres::{self, Durability, PrivatePostgres};
use mailgate_settings::DatabaseSettings;
use mailgate_storage::database::{pool, tables};
use mailgate_types::clock::{MovedClock, SharedClock};
use secrecy::SecretString;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection};
use tokio::sync::OnceCell;

use super::failure;

const TEMPLATE: &str = "mailgate_template";

/// Ends with the process: the server's parent-death signal sees to that.
static SERVER: OnceCell<PrivatePostgres> = OnceCell::const_new();

/// A database with this program's tables, the log's next partitions, and nothing in them; answers its address.
pub async fn create() -> String {
    create_from(TEMPLATE).await
}

/// A database with nothing in it at all.
pub async fn create_empty() -> String {
    create_from("template1").await
}

/// A database with nothing in it, and texts in this encoding.
pub async fn create_in(encoding: &str) -> String {
    create_by(&format!(
        "TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"
    ))
    .await
}

async fn create_from(template: &str) -> String {
    create_by(&format!("TEMPLATE {template} STRATEGY file_copy")).await
}

async fn create_by(options: &str) -> String {
    failure::explain();
    let server = SERVER.get_or_init(start).await;
    let name = format!("test_{}", uuid::Uuid::new_v4().simple());
    let mut connection = connect(&server.url("postgres")).await;
    connection
        .execute(AssertSqlSafe(format!("CREATE DATABASE {name} {options}")))
        .await
        .expect("a database can be made");
    connection.close().await.expect("the server closes");
    server.url(&name)
}

/// What was counted by app, hour, plugin and status, added up or not: a query to select from.
pub const COUNTED: &str = "(
    SELECT app_id, hour, plugin, status, sum(messages)::bigint AS messages
    FROM (SELECT owner_id AS app_id, start AS hour, plugin, status, messages
          FROM email_counters
               JOIN apps ON apps.id = owner_id
               CROSS JOIN LATERAL (VALUES
                   ('plugin_a', 'sent', plugin_a_sent),
                   ('plugin_a', 'failed_temp', plugin_a_failed_temp),
                   ('plugin_a', 'failed_perm', plugin_a_failed_perm),
                   ('plugin_b', 'sent', plugin_b_sent),
                   ('plugin_b', 'failed_temp', plugin_b_failed_temp),
                   ('plugin_b', 'failed_perm', plugin_b_failed_perm)
               ) AS kind (plugin, status, messages)
          WHERE unit = 'hour'
          UNION ALL
          SELECT app_id, hour, plugin, status, messages FROM email_counter_changes) AS both_parts
    GROUP BY 1, 2, 3, 4)";

/// One connection, for a test to look into its database.
pub async fn connect(url: &str) -> PgConnection {
    url.parse::<sqlx::postgres::PgConnectOptions>()
        .expect("the address can be read")
        .connect()
        .await
        .expect("the server answers")
}

/// Throws away what an earlier run left, unless its server may live: to drop hundreds of databases one by one
/// takes minutes.
fn discard(folder: &Path) {
    let aside = folder.with_extension("old");
    if !folder.join("postgres/cluster/postmaster.pid").exists() {
        // There is none, or an earlier one is still being removed.
        drop(std::fs::rename(folder, &aside));
    }
    std::thread::spawn(move || std::fs::remove_dir_all(aside));
}

async fn start() -> PrivatePostgres {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("postgres");
    discard(&folder);
    let server = match postgres::start(&folder, Durability::Throwaway).await {
        Ok(server) => server,
        // Left by an earlier run that was cut off, or of another version.
        Err(error) => panic!("{error}\nremove {} and try again", folder.display()),
    };
    let mut connection = connect(&server.url("postgres")).await;
    // What earlier runs left would only grow.
    let left: Vec<String> = sqlx::query_scalar(
        "SELECT datname FROM pg_database WHERE datname LIKE 'test\\_%' OR datname = $1",
    )
    .bind(TEMPLATE)
    .fetch_all(&mut connection)
    .await
    .expect("the databases can be listed");
    for name in left {
        connection
            .execute(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)")))
            .await
            .expect("an old database can be dropped");
    }
    connection.close().await.expect("the server closes");
    server
        .ensure_database(TEMPLATE)
        .await
        .expect("the template can be made");
    let pool = pool::connect(&DatabaseSettings {
        url: SecretString::from(server.url(TEMPLATE)),
        max_connections: 2,
        statement: std::time::Duration::from_mins(1),
    })
    .await
    .expect("the template can be reached");
    tables::migrate(&pool).await.expect("the migrations run");
    let clock: SharedClock = Arc::new(MovedClock::default());
    let partitions = workers::ensure_partitions(&pool, &clock, 90).await;
    partitions.expect("the first partitions can be made");
    pool.close().await;
    server
}
