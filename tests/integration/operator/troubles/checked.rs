//! `mailgate check`: what a gateway needs, and what its database holds.

use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor as _};
use uuid::Uuid;

use super::{check, of};
use crate::command_line::process::{Invocation, certificates};
use crate::support::database;
use crate::support::gateway::{Gateway, SEAL_KEY};

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
