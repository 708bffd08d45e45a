//! A database that goes on running, and takes no connection of the gateway's any more: its role's password was changed,
//! it may not sign in, or there is no place left.

use futures_util::future::join_all;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use url::Url;

use super::request_log::{lines, send};
use crate::command_line::serve::replica;
use crate::crash::database::{DurablePostgres, give_to};
use crate::support::gateway::Gateway;
use crate::support::patience;

const ROLE: &str = "keeper";
const PASSWORD: &str = "correct-horse";

const GONE: &str = "the database can't be used; nothing more is logged about it until it is back";

/// Before all that was open has ended.
const SHUT: &str = "the database refuses new connections";

const END_ALL: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keeper'";

/// What is done to the role, what takes it back, and how the cause begins in the log.
const REFUSALS: [(&str, &str, &str); 3] = [
    (
        "PASSWORD 'another'",
        "PASSWORD 'correct-horse'",
        "password authentication failed",
    ),
    (
        "NOLOGIN",
        "LOGIN",
        "role \"keeper\" is not permitted to log in",
    ),
    (
        "CONNECTION LIMIT 0",
        "CONNECTION LIMIT -1",
        "too many connections for role",
    ),
];

/// Lets the role in with its password alone, and gives it the database. Answers its URL.
async fn with_password(server: &DurablePostgres, admin: &mut PgConnection, url: &str) -> String {
    let rules = server.cluster().join("pg_hba.conf");
    let former = std::fs::read_to_string(&rules).unwrap();
    let rule = format!("local all {ROLE} scram-sha-256\n{former}");
    std::fs::write(&rules, rule).unwrap();
    let create = format!("CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'");
    admin.execute(AssertSqlSafe(create)).await.unwrap();
    give_to(admin, ROLE).await;
    admin.execute("SELECT pg_reload_conf()").await.unwrap();
    let mut url = Url::parse(url).unwrap();
    url.set_username(ROLE).unwrap();
    url.set_password(Some(PASSWORD)).unwrap();
    url.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_sign_in_is_an_outage_that_is_told_once() {
    let server = DurablePostgres::start().await;
    let url = server.create_database().await;
    let mut admin = PgConnection::connect(&url).await.unwrap();
    let url = with_password(&server, &mut admin, &url).await;
    let gateway = Gateway::builder().database(&url).start().await;
    let mut serve = replica(&gateway).start();
    let http = serve.ready().await.http;
    let key = gateway.app.send_key.expose().to_owned();
    gateway.stop_daemon().await;
    for (nth, (change, back, cause)) in REFUSALS.into_iter().enumerate() {
        let alter = async |admin: &mut PgConnection, what: &str| {
            let statement = format!("ALTER ROLE {ROLE} {what}");
            admin.execute(AssertSqlSafe(statement)).await.unwrap();
        };
        let known = lines(&serve).len();
        alter(&mut admin, change).await;
        // One that was just being made is ended by the next round.
        patience::until("the line of the outage", async || {
            admin.execute(END_ALL).await.unwrap();
            let told = lines(&serve);
            told[known..].iter().any(|line| line["message"] == GONE)
        })
        .await;
        let asked = (0..10).map(|_| send(&gateway, http, &key, "bob@example.com"));
        for (status, _) in join_all(asked).await {
            assert_eq!(status, 503, "{change}\n{}", serve.stderr());
        }
        alter(&mut admin, back).await;
        patience::until("a send that works again", async || {
            send(&gateway, http, &key, "bob@example.com").await.0 == 200
        })
        .await;
        patience::until("the line of its end", async || {
            let ends = lines(&serve);
            ends.iter()
                .filter(|line| line["message"] == "the database is back")
                .count()
                > nth
        })
        .await;
        let told = loud(&lines(&serve)[known..]);
        let [line] = told.as_slice() else {
            panic!("{change}: {} lines: {told:#?}", told.len());
        };
        assert!(line["cause"].as_str().unwrap().contains(cause), "{line}");
    }
    serve.terminate().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_password_is_told_while_open_connections_go_on() {
    let server = DurablePostgres::start().await;
    let url = server.create_database().await;
    let mut admin = PgConnection::connect(&url).await.unwrap();
    let url = with_password(&server, &mut admin, &url).await;
    let gateway = Gateway::builder().database(&url).start().await;
    let mut serve = replica(&gateway).start();
    serve.ready().await;
    let statement = format!("ALTER ROLE {ROLE} PASSWORD 'another'");
    admin.execute(AssertSqlSafe(statement)).await.unwrap();
    let said = |begins: &str| {
        let mut lines = lines(&serve);
        lines.retain(|line| {
            line["message"]
                .as_str()
                .is_some_and(|it| it.starts_with(begins))
        });
        lines
    };
    patience::until("a line of it", async || !said(SHUT).is_empty()).await;
    let error = said(SHUT)[0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("password authentication failed"), "{error}");
    let statement = format!("ALTER ROLE {ROLE} PASSWORD '{PASSWORD}'");
    admin.execute(AssertSqlSafe(statement)).await.unwrap();
    let open = "the database takes new connections again";
    patience::until("a line of its end", async || !said(open).is_empty()).await;
    assert_eq!((said(SHUT).len(), said(open).len()), (1, 1));
    assert_eq!(said(GONE), [] as [Value; 0], "what is open goes on");
    serve.terminate().await;
    gateway.stop().await;
}

/// The errors and warnings that no request has caused, but for the one of the moment before all connections had ended.
fn loud(lines: &[Value]) -> Vec<Value> {
    let mut loud = lines.to_vec();
    loud.retain(|line| {
        let is_loud = matches!(line["level"].as_str(), Some("ERROR" | "WARN"));
        let message = line["message"].as_str().unwrap_or_default();
        is_loud && line["spans"].is_null() && !message.starts_with(SHUT)
    });
    loud
}
