//! A second role takes over with a new password, as `docs/postgres.md` has it: it works as the first one, and the
//! gateway still knows its own backends.

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, PgPool};
use url::Url;

use crate::crash::database::{DurablePostgres, give_to};
use crate::documents::blocks::Page;
use crate::support::gateway::Gateway;
use crate::support::patience;
use mailgate_storage::database::left_backends::LeftBackends;
use mailgate_storage::database::pool::DedicatedConnection;

const PASSWORD: &str = "correct-horse";

const SLOW: &str = "SELECT pg_sleep(600)";

/// The statements of the page.
fn documented() -> String {
    let prose = Page::named("docs/postgres.md").prose();
    let begins = prose.find("CREATE ROLE mailgate2 ").unwrap();
    let (statements, _) = prose[begins..].split_once('`').unwrap();
    statements.replace('…', PASSWORD)
}

/// A database that belongs to the role `mailgate`, and the URL by which `mailgate2` uses it.
async fn taken_over(server: &DurablePostgres) -> (PgConnection, String) {
    let url = server.create_database().await;
    let mut admin = PgConnection::connect(&url).await.unwrap();
    admin.execute("CREATE ROLE mailgate LOGIN").await.unwrap();
    give_to(&mut admin, "mailgate").await;
    admin.execute(AssertSqlSafe(documented())).await.unwrap();
    let mut url = Url::parse(&url).unwrap();
    url.set_username("mailgate2").unwrap();
    url.set_password(Some(PASSWORD)).unwrap();
    (admin, url.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_taken_and_all_belongs_to_the_first_role() {
    let server = DurablePostgres::start().await;
    let (mut admin, url) = taken_over(&server).await;
    let gateway = Gateway::builder().database(&url).start().await;
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    gateway
        .eventually("the message is sent", async |gateway| {
            gateway.arrived().await.len() == 1
        })
        .await;
    let others: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relowner <> 'mailgate'::regrole",
    )
    .fetch_all(&mut admin)
    .await
    .unwrap();
    assert_eq!(others, [] as [&str; 0]);
    gateway.stop().await;
}

async fn sleeping(admin: &mut PgConnection) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE query = $1")
        .bind(SLOW)
        .fetch_one(admin)
        .await
        .unwrap()
}

/// A connection that has left its backend in the middle of a statement.
async fn leaving(
    admin: &mut PgConnection,
    pool: &PgPool,
    left: &LeftBackends,
) -> DedicatedConnection {
    let mut connection = DedicatedConnection::one_at_a_time(pool.clone(), left.clone());
    tokio::select! {
        slow = connection.run(async |connection| connection.execute(SLOW).await) => panic!("{slow:?}"),
        () = patience::until("the statement runs", async || sleeping(admin).await == 1) => {}
    }
    connection
}

async fn role(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
    let role = sqlx::query_scalar("SELECT current_user::text");
    role.fetch_one(connection).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_was_left_is_ended_by_the_next_connection() {
    let server = DurablePostgres::start().await;
    let (mut admin, url) = taken_over(&server).await;
    let pool = PgPool::connect(&url).await.unwrap();
    let mut connection = leaving(&mut admin, &pool, &LeftBackends::default()).await;
    assert_eq!(connection.run(role).await.unwrap(), "mailgate");
    assert_eq!(sleeping(&mut admin).await, 0);
    pool.close().await;
}

/// As when an opening is withdrawn.
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_was_left_is_ended_within_a_transaction() {
    let server = DurablePostgres::start().await;
    let (mut admin, url) = taken_over(&server).await;
    let pool = PgPool::connect(&url).await.unwrap();
    let left = LeftBackends::default();
    let _connection = leaving(&mut admin, &pool, &left).await;
    let mut connection = pool.acquire().await.unwrap();
    let mut transaction = connection.begin().await.unwrap();
    left.end(&mut transaction).await.unwrap();
    assert_eq!(sleeping(&mut admin).await, 0);
    assert_eq!(role(&mut transaction).await.unwrap(), "mailgate");
    transaction.commit().await.unwrap();
    assert_eq!(role(&mut connection).await.unwrap(), "mailgate");
    drop(connection);
    pool.close().await;
}
