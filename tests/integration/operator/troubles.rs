//! `mailgate queue`, `mailgate mailboxes` and `mailgate check`, as child processes beside a gateway.

use std::net::SocketAddr;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use mailgate::workers;
use mailgate_types::clock::{Clock as _, MovedClock, SharedClock};
use mailgate_types::database_clock::DatabaseClock;
use mailgate_types::suspend_aware_instant::SuspendAwareInstant;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::just_logs;
use crate::command_line::process::{Finished, Invocation, certificates, http_client};
use crate::command_line::serve::replica;
use crate::support::database;
use crate::support::gateway::{Gateway, MAILBOX, SEAL_KEY};
use crate::support::patience;
use crate::support::ports;

async fn run(gateway: &Gateway, arguments: &[&str]) -> Finished {
    Invocation::new(arguments)
        .set("DATABASE__URL", &gateway.database_url)
        .set("SEAL__KEYS", SEAL_KEY)
        .finish()
        .await
}

async fn answered(gateway: &Gateway, arguments: &[&str]) -> Value {
    let finished = run(gateway, &[arguments, &["--json"]].concat()).await;
    finished.succeeds();
    just_logs(&finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// A message that waits for its second attempt.
async fn waiting(gateway: &Gateway) -> String {
    let (status, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202, "{answer}");
    answer["log_id"].as_str().unwrap().to_owned()
}

fn ids(listed: &Value) -> Vec<&str> {
    let messages = listed["messages"].as_array().unwrap().iter();
    messages.map(|it| it["log_id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_is_listed_shown_and_changed() {
    let gateway = Gateway::start().await;
    let (one, two) = (waiting(&gateway).await, waiting(&gateway).await);
    let app = gateway.app.id.to_string();
    let listed = answered(&gateway, &["queue", "list"]).await;
    let mut found = ids(&listed);
    // Due when their waits end, which chance spreads.
    found.sort_unstable();
    assert_eq!(found, [one.as_str(), two.as_str()]);
    let message = &listed["messages"][0];
    assert_eq!(message["app_id"], app);
    assert_eq!(message["reason"], "temporary_failure");
    assert_eq!(message["attempts"], 1);
    assert_eq!(message["from_address"], MAILBOX);
    let mailbox = message["credential_id"].as_str().unwrap();
    for (arguments, expected) in [
        (vec!["--app", &app], 2),
        (vec!["--mailbox", mailbox], 2),
        (vec!["--mailbox", "cred_01h2xcejqtf2nbrexx3vqjhp41"], 0),
        (vec!["--reason", "temporary_failure"], 2),
        (vec!["--reason", "scheduled"], 0),
        (vec!["--limit", "1"], 1),
        (vec!["--offset", "2"], 0),
    ] {
        let arguments = [vec!["queue", "list"], arguments].concat();
        let listed = answered(&gateway, &arguments).await;
        assert_eq!(ids(&listed).len(), expected, "{arguments:?}");
    }
    let shown = answered(&gateway, &["queue", "show", &one]).await;
    assert_eq!(shown["log_id"], one);
    assert_eq!(shown["in_progress"], false);
    assert!(shown["error"].as_str().is_some_and(|it| !it.is_empty()));
    let table = run(&gateway, &["queue", "list"]).await;
    table.succeeds();
    assert!(table.stdout.starts_with("MESSAGE "), "{}", table.stdout);
    assert!(table.stdout.contains(&one) && table.stdout.contains(MAILBOX));
    assert!(!table.stdout.contains("tempfail"), "{}", table.stdout);

    let retried = answered(&gateway, &["queue", "retry", &one]).await;
    assert_eq!(retried["log_id"], one);
    let canceled = answered(&gateway, &["queue", "cancel", &two]).await;
    assert_eq!(canceled, json!({ "canceled": 1, "left": 0 }));
    let listed = answered(&gateway, &["queue", "list"]).await;
    assert!(!ids(&listed).contains(&two.as_str()));
    let unknown = "log_01h2xcejqtf2nbrexx3vqjhp41";
    for action in ["show", "retry", "cancel"] {
        let finished = run(&gateway, &["queue", action, unknown]).await;
        finished.fails(1, &[unknown]);
    }
    run(&gateway, &["queue", "list", "--app", "nobody"])
        .await
        .fails(1, &["--app"]);
    // Usage.
    for arguments in [
        vec!["queue", "cancel"],
        vec!["queue", "cancel", "--app", &app],
        vec!["queue", "show", "nonsense"],
        vec!["queue", "list", "--reason", "x"],
        vec!["queue", "list", "--limit", "0"],
    ] {
        let finished = run(&gateway, &arguments).await;
        assert_eq!(finished.status.code(), Some(2), "{arguments:?}");
    }
    waiting(&gateway).await;
    gateway
        .eventually("nothing is in hand", async |gateway| {
            let all = ["queue", "cancel", "--app", &app, "--yes", "--json"];
            let finished = run(gateway, &all).await;
            let listed = answered(gateway, &["queue", "list"]).await;
            finished.status.success() && ids(&listed).is_empty()
        })
        .await;
    let statuses: Vec<(String,)> = sqlx::query_as("SELECT DISTINCT status FROM email_logs")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(statuses, [("failed_perm".to_owned(),)]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mailboxes_in_trouble_are_listed() {
    let gateway = Gateway::start().await;
    let listed = answered(&gateway, &["mailboxes", "list"]).await;
    let all = listed["mailboxes"].as_array().unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["email"], MAILBOX);
    assert_eq!(all[0]["status"], "active");
    assert_eq!(all[0]["problems"], json!([]));
    let failing = ["mailboxes", "list", "--failing"];
    let none = answered(&gateway, &failing).await;
    assert_eq!(none, json!({ "mailboxes": [] }));

    waiting(&gateway).await;
    for (statement, problems) in [
        ("SELECT 1", vec!["messages_fail"]),
        (
            "UPDATE mailboxes SET parked_until = now() + interval '1 hour'",
            vec!["parked", "messages_fail"],
        ),
        (
            "UPDATE mailboxes SET parked_until = NULL, refresh_due_at = now(),
                    access_token_expires_at = now() - interval '1 hour'",
            vec!["token_not_refreshed", "messages_fail"],
        ),
        (
            "UPDATE mailboxes SET status = 'disconnected', disconnect_reason = 'invalid_grant',
                    disconnected_at = now()",
            vec!["disconnected", "messages_fail"],
        ),
    ] {
        sqlx::query(statement)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        let listed = answered(&gateway, &failing).await;
        assert_eq!(listed["mailboxes"][0]["problems"], json!(problems));
    }
    let table = run(&gateway, &failing).await;
    table.succeeds();
    assert!(
        table.stdout.contains("disconnected: invalid_grant"),
        "{}",
        table.stdout
    );
    // Its user took it away: nobody has to do anything.
    for statement in [
        "UPDATE mailboxes SET disconnect_reason = 'removed'",
        "DELETE FROM spool",
    ] {
        sqlx::query(statement)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }
    assert_eq!(answered(&gateway, &failing).await, none);
    gateway.stop().await;
}

/// `mailgate check` with the gateway's own providers.
pub fn check(gateway: &Gateway, arguments: &[&str]) -> Invocation {
    let all = ["check"].iter().chain(arguments);
    let mut check = Invocation::new(all)
        .set("DATABASE__URL", &gateway.database_url)
        .set("SEAL__KEYS", SEAL_KEY)
        // As many as any machine that tests run on lets be open.
        .set("LIMITS__HTTP_CONNECTIONS", "100")
        .set("LIMITS__HTTP_CONNECTIONS_PER_ADDRESS", "100")
        .set("LIMITS__SMTP_CONNECTIONS", "100")
        .set("LIMITS__SMTP_CONNECTIONS_PER_ADDRESS", "100");
    for (plugin, settings) in gateway.sandbox.plugins(&gateway.ca_file) {
        for (name, value) in settings.as_table().unwrap() {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let name = format!("PLUGINS__{plugin}__{name}").to_uppercase();
            check = check.set(&name, value);
        }
    }
    check
}

fn of<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let mut checks = answer["checks"].as_array().unwrap().iter();
    let found = checks.find(|check| check["check"] == name);
    found.unwrap_or_else(|| panic!("{name} in {answer}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gateway_needs_is_checked() {
    let gateway = Gateway::start().await;
    let (_folder, files) = certificates();
    let with_files = |check: Invocation| {
        check
            .set("TLS__CERTIFICATE", &files.certificate)
            .set("TLS__KEY", &files.key)
    };
    let fine = with_files(check(&gateway, &["--json"])).finish().await;
    let answer: Value = serde_json::from_str(&fine.stdout).unwrap();
    fine.succeeds();
    assert_eq!(answer["ok"], true);
    for name in [
        "settings",
        "open_files",
        "memory",
        "database",
        "database_tables",
        "database_writes",
        "database_partitions",
        "database_clock",
        "deletions",
        "seal_keys",
        "certificate",
        "plugin_a_oauth",
        "plugin_a_smtp",
        "plugin_b_oauth",
        "provider_clock",
    ] {
        let check = of(&answer, name);
        assert_eq!(check["ok"], true, "{check}");
        assert_eq!(check.as_object().unwrap().len(), 5, "{check}");
    }
    let table = with_files(check(&gateway, &[])).finish().await;
    table.succeeds();
    assert!(table.stdout.starts_with("CHECK "), "{}", table.stdout);

    let small = with_files(check(&gateway, &["--json"]))
        .set("LIMITS__IN_FLIGHT_BYTES", "1099511627776")
        .finish()
        .await;
    small.fails(1, &["1 of "]);
    let answer: Value = serde_json::from_str(&small.stdout).unwrap();
    let detail = of(&answer, "memory")["detail"].as_str().unwrap();
    assert!(detail.contains("limits.in_flight_bytes"), "{detail}");

    let (_other, others) = certificates();
    let new = "new:ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
    let wrong = check(&gateway, &["--json"])
        .set("TLS__CERTIFICATE", &files.certificate)
        .set("TLS__KEY", &others.key)
        .set("SEAL__KEYS", new)
        .set("PLUGINS__PLUGIN_A__TOKEN_URL", "http://127.0.0.1:1/token")
        .set("RELAY__HOST", "127.0.0.1")
        .set("RELAY__PORT", "1")
        .set("RELAY__FROM", "billing@gateway.example")
        .finish()
        .await;
    wrong.fails(1, &["checks failed"]);
    let answer: Value = serde_json::from_str(&wrong.stdout).unwrap();
    assert_eq!(answer["ok"], false);
    for (name, is_ok) in [
        ("database", true),
        ("seal_keys", false),
        ("certificate", false),
        ("plugin_a_oauth", false),
        ("plugin_b_oauth", true),
        ("relay", false),
    ] {
        let check = of(&answer, name);
        assert_eq!(check["ok"], is_ok, "{check}");
    }
    for secret in [SEAL_KEY, new, "postgres://"] {
        assert!(!wrong.stdout.contains(secret), "{}", wrong.stdout);
    }

    let unreachable = with_files(check(&gateway, &["--json"]))
        .set("DATABASE__URL", "postgres://x:hidden@127.0.0.1:1/x")
        .finish()
        .await;
    unreachable.fails(1, &["checks failed"]);
    let answer: Value = serde_json::from_str(&unreachable.stdout).unwrap();
    assert_eq!(of(&answer, "database")["ok"], false);
    assert!(!unreachable.stdout.contains("hidden"));
    Invocation::new(["check"]).finish().await.fails(
        2,
        &["database.url", "seal.keys", "tls.certificate", "tls.key"],
    );
    gateway.stop().await;
}

/// What a database's tables are, as `mailgate check` sees it.
async fn tables_of(gateway: &Gateway, url: &str) -> (bool, String) {
    let (_folder, files) = certificates();
    let checked = check(gateway, &["--json"])
        .set("DATABASE__URL", url)
        .set("TLS__CERTIFICATE", &files.certificate)
        .set("TLS__KEY", &files.key)
        .finish()
        .await;
    let answer: Value = serde_json::from_str(&checked.stdout).unwrap();
    let tables = of(&answer, "database_tables");
    let is_ok = tables["ok"] == true;
    assert_eq!(answer["ok"], is_ok, "{answer}");
    (is_ok, tables["detail"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_checked_as_a_start_would_find_them() {
    let gateway = Gateway::start().await;
    let empty = database::create_empty().await;
    let found = tables_of(&gateway, &empty).await;
    let first = "none yet: the gateway creates them at its first start";
    assert_eq!(found, (true, first.to_owned()));

    let mut admin = database::connect(&empty).await;
    let role = format!("r{}", Uuid::new_v4().simple());
    for statement in [
        format!("CREATE ROLE {role} LOGIN"),
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC".to_owned(),
    ] {
        admin.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    let (is_ok, detail) = tables_of(
        &gateway,
        &empty.replacen("postgres@", &format!("{role}@"), 1),
    )
    .await;
    assert!(!is_ok && detail.contains("may not create any"), "{detail}");

    let (is_ok, detail) = tables_of(&gateway, &database::create_in("SQL_ASCII").await).await;
    assert!(!is_ok && detail.contains("SQL_ASCII"), "{detail}");

    for (change, told) in [
        (
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (99999, 'from the future', true, '', 0)",
            "belongs to a newer mailgate: its migration 99999",
        ),
        (
            "UPDATE _sqlx_migrations SET checksum = 'x' WHERE version = 1",
            "its migration 1 differs",
        ),
        (
            "DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)",
            "older than this program; serve and migrate bring them up to date",
        ),
    ] {
        let url = database::create().await;
        database::connect(&url).await.execute(change).await.unwrap();
        let (is_ok, detail) = tables_of(&gateway, &url).await;
        assert!(!is_ok && detail.contains(told), "{detail}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_end_their_connections_as_postgres_wants_it() {
    let gateway = Gateway::start().await;
    // No gateway's, which ends connections of its own.
    let url = database::create().await;
    let mut own = database::connect(&url).await;
    let before = sessions(&mut own).await;
    let run = async |arguments: &[&str]| {
        let command = Invocation::new(arguments).set("DATABASE__URL", &url);
        command.set("SEAL__KEYS", SEAL_KEY).finish().await
    };
    for command in [
        &["subscriber", "list"][..],
        &["apps", "list"],
        &["queue", "list"],
        &["mailboxes", "list"],
        &["certificates", "list"],
        &["trust-clock"],
        &["reseal"],
        &["migrate"],
    ] {
        run(command).await.succeeds();
    }
    // One that fails.
    let missing = "log_01m8ge5vtrfbhvmb9xpzganz65";
    run(&["queue", "show", missing]).await.fails(1, &[missing]);
    let (_folder, files) = certificates();
    let checked = check(&gateway, &[])
        .set("DATABASE__URL", &url)
        .set("TLS__CERTIFICATE", &files.certificate)
        .set("TLS__KEY", &files.key);
    checked.finish().await.succeeds();
    patience::until("their sessions in the statistics", async || {
        sessions(&mut own).await.0 >= before.0 + 10
    })
    .await;
    let after = sessions(&mut own).await;
    assert_eq!(after.1, before.1, "connections that just broke off");
    gateway.stop().await;
}

/// The sessions that this database has had, and those that broke off.
async fn sessions(connection: &mut PgConnection) -> (i64, i64) {
    sqlx::query_as(
        "SELECT sessions, sessions_abandoned FROM pg_stat_database WHERE datname = current_database()",
    )
    .fetch_one(connection)
    .await
    .unwrap()
}

/// A proxy that refuses all that it is asked for; tells what that was.
async fn refusing_proxy() -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut request = String::new();
            while !request.ends_with("\r\n\r\n")
                && stream
                    .read_line(&mut request)
                    .await
                    .is_ok_and(|read| read > 0)
            {}
            let line = request.lines().next().unwrap_or_default();
            asked.send(line.to_owned()).unwrap();
            drop(stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await);
        }
    });
    (address, requests)
}

#[tokio::test(flavor = "multi_thread")]
async fn http_to_the_servers_of_the_settings_leaves_by_the_proxy() {
    let gateway = Gateway::start().await;
    let (proxy, mut requests) = refusing_proxy().await;
    let (_folder, files) = certificates();
    let checked = check(&gateway, &["--json"])
        .set("TLS__CERTIFICATE", &files.certificate)
        .set("TLS__KEY", &files.key)
        .variable("HTTPS_PROXY", format!("http://{proxy}"))
        .variable("NO_PROXY", "near.example")
        .set(
            "PLUGINS__PLUGIN_A__TOKEN_URL",
            "https://oauth.example/token",
        )
        .set("PLUGINS__PLUGIN_B__TOKEN_URL", "https://near.example/token")
        .set("PAYPROV__BASE_URL", "https://payments.example")
        .set("PAYPROV__SECRET_KEY", "sk_test_1")
        .set("PAYPROV__WEBHOOK_SECRET", "whsec_1")
        .set("PAYPROV__PRICE", "price_1")
        .set("RELAY__HOST", "relay.example")
        .set("RELAY__FROM", "billing@gateway.example")
        .finish()
        .await;
    assert!(!checked.status.success());
    requests.close();
    let mut asked = Vec::new();
    while let Some(line) = requests.recv().await {
        asked.push(line);
    }
    asked.sort();
    // Nothing by SMTP, nothing to the hosts that need none, and nothing to this machine.
    let expected = [
        "CONNECT oauth.example:443 HTTP/1.1",
        "CONNECT payments.example:443 HTTP/1.1",
    ];
    assert_eq!(asked, expected, "{}{}", checked.stdout, checked.stderr);
    gateway.stop().await;
}

/// No gateway has run for eight days.
const SILENT: &str = "UPDATE sign_of_life SET observed_at = now() - interval '8 days',
                      trusted_at = now() - interval '8 days', held_since = NULL";

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_has_jumped_is_trusted_after_a_day_or_when_the_operator_says_so() {
    let gateway = Gateway::start().await;
    let pool = &gateway.daemon.pool;
    let mut database = gateway.database().await;
    let machine: SharedClock = Arc::new(MovedClock::default());
    let fresh = || -> SharedClock {
        let clock = Arc::new(DatabaseClock::new(Arc::clone(&machine)));
        clock.synchronize(Utc::now(), SuspendAwareInstant::now());
        clock
    };
    let kept = |clock: &SharedClock| machine.now() - clock.certainly_past();
    // A process that has just started, and one that has run all the time.
    let clock = fresh();
    assert_eq!(clock.certainly_past(), DateTime::UNIX_EPOCH);
    workers::leave_sign_of_life(pool, &clock).await.unwrap();
    assert!(kept(&clock) < TimeDelta::minutes(1), "{}", kept(&clock));

    database.execute(SILENT).await.unwrap();
    for clock in [clock, fresh()] {
        workers::leave_sign_of_life(pool, &clock).await.unwrap();
        assert!(kept(&clock) > TimeDelta::days(7), "{}", kept(&clock));
    }
    let (_folder, files) = certificates();
    let held = check(&gateway, &["--json"])
        .set("TLS__CERTIFICATE", &files.certificate)
        .set("TLS__KEY", &files.key)
        .finish()
        .await;
    held.fails(1, &["1 of "]);
    let answer: Value = serde_json::from_str(&held.stdout).unwrap();
    let deletions = of(&answer, "deletions");
    assert_eq!(deletions["ok"], false);
    let detail = deletions["detail"].as_str().unwrap();
    assert!(detail.contains("mailgate trust-clock"), "{detail}");

    let trusted = answered(&gateway, &["trust-clock"]).await;
    assert_eq!(trusted["was_held"], true);
    assert_eq!(trusted.as_object().unwrap().len(), 2, "{trusted}");
    let again = answered(&gateway, &["trust-clock"]).await;
    assert_eq!(again["was_held"], false);
    let clock = fresh();
    workers::leave_sign_of_life(pool, &clock).await.unwrap();
    assert!(kept(&clock) < TimeDelta::minutes(1), "{}", kept(&clock));

    // It has gone on for a day.
    database.execute(SILENT).await.unwrap();
    workers::leave_sign_of_life(pool, &clock).await.unwrap();
    assert!(kept(&clock) > TimeDelta::days(7));
    let later = "UPDATE sign_of_life SET held_since = held_since - interval '1 day'";
    database.execute(later).await.unwrap();
    workers::leave_sign_of_life(pool, &clock).await.unwrap();
    assert!(kept(&clock) < TimeDelta::minutes(1));
    let table = run(&gateway, &["trust-clock"]).await;
    table.succeeds();
    assert!(
        table.stdout.starts_with("Nothing was held back."),
        "{}",
        table.stdout
    );
    gateway.stop().await;
}

#[tokio::test]
async fn a_gateway_says_that_it_holds_deletions_back() {
    let gateway = Gateway::start().await;
    gateway.stop_daemon().await;
    let mut database = gateway.database().await;
    database.execute(SILENT).await.unwrap();
    let metrics = ports::local_address();
    let mut serve = replica(&gateway)
        .set("METRICS__LISTEN", metrics.to_string())
        .start();
    serve.ready().await;
    let line = serve
        .logged("the database's clock has moved on by more than a week since a gateway last ran: nothing is deleted by its age until it has gone on for a day; if the clock is right, mailgate trust-clock ends the wait")
        .await;
    assert_eq!(line["level"], "WARN");
    let scrape = http_client().get(format!("http://{metrics}/metrics"));
    let scrape = scrape.send().await.unwrap().text().await.unwrap();
    assert!(scrape.contains("\nmailgate_deletions_held 1\n"), "{scrape}");
    serve.terminate().await;
    gateway.stop().await;
}
