//! `mailgate trust-clock`: the database's clock has jumped, and deletions wait.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use mailgate::workers;
use mailgate_types::clock::{Clock as _, MovedClock, SharedClock};
use mailgate_types::database_clock::DatabaseClock;
use mailgate_types::suspend_aware_instant::SuspendAwareInstant;
use serde_json::Value;
use sqlx::Executor as _;

use super::{answered, check, of, run};
use crate::command_line::process::{certificates, http_client};
use crate::command_line::serve::replica;
use crate::support::gateway::Gateway;
use crate::support::ports;

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
