//! A database that answers, and with which no message can be sent: a gateway says that it isn't ready, and why, once.

use std::net::SocketAddr;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::request_log::lines;
use crate::command_line::process::{Running, certificates, http_client};
use crate::command_line::serve::replica;
use crate::crash::database::DurablePostgres;
use crate::operator::troubles::check;
use crate::support::gateway::Gateway;
use crate::support::patience;

/// A gateway in a process of its own, on a Postgres of its own.
struct Served {
    _server: DurablePostgres,
    gateway: Gateway,
    serve: Running,
    http: SocketAddr,
    operator: PgConnection,
}

impl Served {
    async fn start() -> Self {
        let server = DurablePostgres::start().await;
        let url = server.create_database().await;
        let gateway = Gateway::builder().database(&url).start().await;
        let mut serve = replica(&gateway).start();
        let http = serve.ready().await.http;
        let operator = gateway.database().await;
        Self {
            _server: server,
            gateway,
            serve,
            http,
            operator,
        }
    }

    async fn run(&mut self, statement: &str) {
        let run = self.operator.execute(AssertSqlSafe(statement)).await;
        run.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Waits until the process answers the probe with this status.
    async fn probed(&self, status: u16) {
        patience::until("the answer of the probe", async || {
            let answer = http_client().get(format!("http://{}/readyz", self.http));
            answer.send().await.unwrap().status() == status
        })
        .await;
    }

    /// What was logged about the database since the first `known` lines.
    fn told(&self, known: usize) -> Vec<Value> {
        let mut told = lines(&self.serve).split_off(known);
        told.retain(|line| line["target"] == "mailgate_storage::database::readiness");
        told
    }

    /// Waits until the process isn't ready, and says so once, with such a cause.
    async fn says(&self, known: usize, cause: &str) {
        self.probed(503).await;
        let told = self.told(known);
        let [line] = told.as_slice() else {
            panic!("{}", self.serve.stderr());
        };
        assert_eq!(line["level"], "ERROR");
        let told = line["cause"].as_str().unwrap();
        assert!(told.contains(cause), "{told}");
    }

    async fn check(&self, name: &str) -> Value {
        let (_folder, files) = certificates();
        let checked = check(&self.gateway, &["--json"])
            .set("TLS__CERTIFICATE", &files.certificate)
            .set("TLS__KEY", &files.key)
            .finish()
            .await;
        let answer: Value = serde_json::from_str(&checked.stdout).unwrap();
        let checks = answer["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["check"] == name);
        found.unwrap_or_else(|| panic!("{answer}")).clone()
    }

    async fn stop(mut self) {
        self.serve.terminate().await;
        self.gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_database_is_told_whichever_way_it_became_so() {
    let mut served = Served::start().await;
    let role: String = sqlx::query_scalar("SELECT quote_ident(current_user)")
        .fetch_one(&mut served.operator)
        .await
        .unwrap();
    for (on, off) in [
        (
            "ALTER SYSTEM SET default_transaction_read_only = on".to_owned(),
            "ALTER SYSTEM RESET default_transaction_read_only".to_owned(),
        ),
        (
            "ALTER DATABASE mailgate SET default_transaction_read_only = on".to_owned(),
            "ALTER DATABASE mailgate RESET default_transaction_read_only".to_owned(),
        ),
        (
            format!("ALTER ROLE {role} SET default_transaction_read_only = on"),
            format!("ALTER ROLE {role} RESET default_transaction_read_only"),
        ),
    ] {
        let known = lines(&served.serve).len();
        served.run(&on).await;
        served.run("SELECT pg_reload_conf()").await;
        served.says(known, "it is read-only").await;
        assert_eq!(served.check("database_writes").await["ok"], false);
        // Some of its connections begin meanwhile.
        sqlx::query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = 'mailgate' AND pid <> pg_backend_pid()",
        )
        .execute(&mut served.operator)
        .await
        .unwrap();
        patience::until("connections that take no writes", async || {
            let (status, _) =
                crate::fences::send(&served.gateway, served.http, "bob@example.com").await;
            status == 503
        })
        .await;
        served.run("SET default_transaction_read_only = off").await;
        served.run(&off).await;
        served.run("SELECT pg_reload_conf()").await;
        served.probed(200).await;
        assert_eq!(served.check("database_writes").await["ok"], true);
        patience::until("a send that works again", async || {
            let (status, _) =
                crate::fences::send(&served.gateway, served.http, "bob@example.com").await;
            status == 200
        })
        .await;
        let told = served.told(known);
        let back = told.last().unwrap();
        assert_eq!(back["message"], "the database is back", "{told:#?}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_not_confirmed_is_told() {
    let served = Served::start().await;
    let known = lines(&served.serve).len();
    let mut holder = served.gateway.database().await;
    let mut holding = holder.begin().await.unwrap();
    holding
        .execute("SELECT id FROM gateways FOR UPDATE")
        .await
        .unwrap();
    served.says(known, "confirmed this process's lease for seconds: error returned from database: canceling statement due to lock timeout").await;
    holding.rollback().await.unwrap();
    served.probed(200).await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_is_missing_is_made_or_told() {
    let mut served = Served::start().await;
    let tomorrow: String = sqlx::query_scalar(
        "SELECT to_char((now() + interval '1 day') AT TIME ZONE 'UTC', 'YYYYMMDD')",
    )
    .fetch_one(&mut served.operator)
    .await
    .unwrap();
    let known = lines(&served.serve).len();
    served
        .run(&format!("DROP TABLE email_logs_{tomorrow}"))
        .await;
    let is_there = format!("SELECT to_regclass('email_logs_{tomorrow}') IS NOT NULL");
    patience::until("a partition that is made again", async || {
        sqlx::query_scalar::<_, bool>(AssertSqlSafe(is_there.clone()))
            .fetch_one(&mut served.gateway.database().await)
            .await
            .unwrap()
    })
    .await;
    served.probed(200).await;
    // One that can't be made: something else has its name.
    served.run("BEGIN").await;
    served
        .run(&format!("DROP TABLE email_logs_{tomorrow}"))
        .await;
    served
        .run(&format!(
            "CREATE TABLE email_logs_{tomorrow} (else_what text)"
        ))
        .await;
    served.run("COMMIT").await;
    served.probed(503).await;
    let told = served.told(known);
    let cause = told.last().unwrap()["cause"].as_str().unwrap();
    assert!(
        cause.contains("there is no partition of the log and the webhooks for "),
        "{cause}"
    );
    assert_eq!(served.check("database_partitions").await["ok"], false);
    served
        .run(&format!("DROP TABLE email_logs_{tomorrow}"))
        .await;
    served.probed(200).await;
    assert_eq!(served.check("database_partitions").await["ok"], true);
    served.stop().await;
}
