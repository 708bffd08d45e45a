//! Metrics of what is done behind the doors: webhooks, billing, notices, and the queues of all of them.

use std::net::SocketAddr;

use mailgate_sandbox::payprov::{Fault, FaultKind};
use mailgate_storage::database::pool;
use mailgate_storage::webhook_queue::backlog;
use mailgate_storage::{billing_jobs, billing_notices, email_counters, payprov_events};
use serde_json::json;
use sqlx::{Connection as _, Executor as _};

use super::observed::value;
use crate::billing::Billed;
use crate::command_line::process::{Invocation, http_client};
use crate::command_line::serve::replica;
use crate::crash::database::DurablePostgres;
use crate::support::database;
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::ports;
use crate::support::receiver::{Receiver, Reply};

async fn scrape(metrics: SocketAddr) -> String {
    let response = http_client().get(format!("http://{metrics}/metrics"));
    response.send().await.unwrap().text().await.unwrap()
}

/// Waits until all of these are there, for longer than the gauges take.
async fn comes_to(metrics: SocketAddr, expected: &[(&str, f64)]) {
    patience::until(&format!("{expected:?}"), async || {
        let scraped = scrape(metrics).await;
        let is_there =
            |(sample, expected): &(&str, f64)| (value(&scraped, sample) - expected).abs() < 1e-9;
        expected.iter().all(is_there)
    })
    .await;
}

/// A `serve` on the database of a gateway that has stopped, billed as it was.
async fn serve(gateway: &Gateway, billed: bool) -> (Invocation, SocketAddr) {
    gateway.stop_daemon().await;
    let metrics = ports::local_address();
    let mut serve = replica(gateway)
        .set("METRICS__LISTEN", metrics.to_string())
        .set("WEBHOOKS__ALLOW_PRIVATE", "true")
        .set("WEBHOOKS__RETRY_SECONDS", "3600");
    if billed {
        for (name, text) in gateway.sandbox.payments.section() {
            let name = format!("PAYPROV__{}", name.to_uppercase());
            serve = serve.set(&name, text.as_str().unwrap());
        }
        // Events by anybody, in this test.
        serve = serve
            .set("PAYPROV__WEBHOOK_SECRET", "")
            .set("PAYPROV__ACCEPT_UNSIGNED", "true");
    }
    (serve, metrics)
}

/// An app that is told of its own beginning.
async fn create_app(gateway: &Gateway, http: SocketAddr, webhook_url: &str) {
    let credentials = gateway
        .daemon
        .accounts
        .app_credentials(gateway.app.id)
        .await;
    let secret = credentials.unwrap().unwrap().api_secret;
    let request = http_client()
        .post(format!("http://{http}/apps"))
        .header("x-api-secret", secret.expose())
        .json(&json!({ "name": "Told", "webhook_url": webhook_url }));
    assert_eq!(request.send().await.unwrap().status().as_u16(), 201);
}

#[tokio::test]
async fn attempts_to_deliver_are_counted_by_what_came_of_them() {
    let gateway = Gateway::start().await;
    let (serve, metrics) = serve(&gateway, false).await;
    let receiver = Receiver::start().await;
    receiver.then([
        Reply::Status(204, ""),
        Reply::Status(500, ""),
        Reply::Status(410, ""),
        Reply::Status(200, ""),
    ]);
    let mut serve = serve.start();
    let http = serve.ready().await.http;
    for number in 1..=4 {
        create_app(&gateway, http, &receiver.url("/")).await;
        patience::until("delivery", async || receiver.count() >= number).await;
        assert_eq!(receiver.count(), number);
    }
    comes_to(
        metrics,
        &[
            (
                "mailgate_webhook_attempts_total{outcome=\"delivered\"}",
                2.0,
            ),
            ("mailgate_webhook_attempts_total{outcome=\"failed\"}", 1.0),
            ("mailgate_webhook_attempts_total{outcome=\"given_up\"}", 1.0),
            ("mailgate_webhook_seconds_count{outcome=\"delivered\"}", 2.0),
            ("mailgate_webhook_unrecorded_total", 0.0),
            // The one that failed.
            ("mailgate_webhook_queue_deliveries{state=\"later\"}", 1.0),
            ("mailgate_webhook_queue_deliveries{state=\"ready\"}", 0.0),
            ("mailgate_webhook_queue_overdue_seconds", 0.0),
        ],
    )
    .await;
    let taken = "UPDATE webhook_queue SET state = 'leased', due_at = now() + interval '1 hour'";
    sqlx::query(taken)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    serve.terminate().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn billing_is_counted_by_what_came_of_it() {
    let billed = Billed::start().await;
    billed.by_hand();
    let gateway = &billed.gateway;
    let (serve, metrics) = serve(gateway, true).await;
    // The mailbox went without anybody's telling the provider, and it is time for a look.
    let mut database = gateway.database().await;
    for statement in [
        "UPDATE mailboxes SET status = 'disconnected', disconnected_at = now()",
        "UPDATE subscribers SET payprov_look_due_at = now()",
        "INSERT INTO billing_notices (id, subscriber_id, kind, event_id, data, created_at, due_at)
         SELECT gen_random_uuid(), id, 'trial_will_end', 'evt_a', '{}', now(), now() FROM subscribers",
        // Far ahead, so that nobody works on them.
        "INSERT INTO billing_notices (id, subscriber_id, kind, event_id, data, created_at, due_at)
         SELECT gen_random_uuid(), id, 'trial_will_end', 'evt_b' || n, '{}', now(), now() + interval '1 day'
         FROM subscribers, generate_series(1, 3) AS n",
        "INSERT INTO billing_jobs (id, subscriber_id, kind, due_at, created_at)
         SELECT gen_random_uuid(), gen_random_uuid(), 'end', now() + interval '1 day', now()
         FROM generate_series(1, 2)",
        "INSERT INTO payprov_events (id, type, received_at, state, due_at)
         VALUES ('evt_c', 'customer.subscription.updated', now(), 'waiting', now() + interval '1 day'),
                ('evt_d', 'customer.subscription.updated', now(), 'applied', now())",
    ] {
        database.execute(statement).await.unwrap();
    }
    let added = gateway.sandbox.payments.add_fault(Fault {
        kind: FaultKind::InternalError,
        method: Some("GET".to_owned()),
        path: None,
        times: 1,
    });
    assert!(added);
    let mut serve = serve.start();
    let http = serve.ready().await.http;
    let customer: String = sqlx::query_scalar("SELECT payprov_customer_id FROM subscribers")
        .fetch_one(&mut database)
        .await
        .unwrap();
    let event = |id: &str, kind: &str| {
        let object = json!({ "id": "sub_other", "customer": customer });
        json!({ "id": id, "type": kind, "data": { "object": object } })
    };
    let updated = event("evt_e", "customer.subscription.updated");
    for event in [&updated, &updated, &event("evt_f", "invoice.paid")] {
        let request = http_client().post(format!("http://{http}/payprov/webhook"));
        let response = request.json(event).send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.status());
    }
    comes_to(
        metrics,
        &[
            ("mailgate_billing_quantity_drift_total", 1.0),
            (
                "mailgate_billing_jobs_total{kind=\"quantity\",outcome=\"done\"}",
                1.0,
            ),
            ("mailgate_payprov_failures_total{reason=\"away\"}", 1.0),
            ("mailgate_payprov_events_total{new=\"yes\"}", 1.0),
            ("mailgate_payprov_events_total{new=\"no\"}", 1.0),
            ("mailgate_payprov_events_total{new=\"ignored\"}", 1.0),
            ("mailgate_notices_total{outcome=\"skipped\"}", 1.0),
            ("mailgate_notices_total{outcome=\"sent\"}", 0.0),
            ("mailgate_billing_queue_entries{queue=\"notices\"}", 3.0),
            ("mailgate_billing_queue_entries{queue=\"jobs\"}", 2.0),
            ("mailgate_billing_queue_entries{queue=\"events\"}", 1.0),
            (
                "mailgate_billing_queue_overdue_seconds{queue=\"jobs\"}",
                0.0,
            ),
        ],
    )
    .await;
    serve.terminate().await;
    drop(database);
    billed.stop().await;
}

/// A notice that nobody sends yet.
const NOTICE_AHEAD: &str = "
    INSERT INTO billing_notices (id, subscriber_id, kind, event_id, data, created_at, due_at)
    SELECT gen_random_uuid(), id, 'trial_will_end', 'evt_a', '{}', now(), now() + interval '1 day'
    FROM subscribers";

#[tokio::test]
async fn where_nobody_is_billed_its_queues_wait_for_nobody() {
    let gateway = Gateway::start().await;
    let (serve, metrics) = serve(&gateway, false).await;
    let mut database = gateway.database().await;
    // A connection leaves one, whether anybody is billed or not.
    let jobs: i64 = sqlx::query_scalar("SELECT count(*) FROM billing_jobs")
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert_eq!(jobs, 1);
    database.execute(NOTICE_AHEAD).await.unwrap();
    let mut serve = serve.start();
    serve.ready().await;
    // What is measured together has been shown by the next scrape.
    let measured = "mailgate_billing_queue_entries{queue=\"notices\"}";
    comes_to(metrics, &[(measured, 1.0)]).await;
    comes_to(
        metrics,
        &[
            ("mailgate_billing_queue_entries{queue=\"jobs\"}", 0.0),
            (
                "mailgate_billing_queue_overdue_seconds{queue=\"jobs\"}",
                0.0,
            ),
        ],
    )
    .await;
    serve.terminate().await;
    gateway.stop().await;
}

#[tokio::test]
async fn an_attempt_that_somebody_else_took_up_meanwhile_is_counted_as_unrecorded() {
    let gateway = Gateway::start().await;
    let (serve, metrics) = serve(&gateway, false).await;
    let receiver = Receiver::start().await;
    receiver.always(Reply::Hang);
    let mut serve = serve.set("WEBHOOKS__EXCHANGE_SECONDS", "3").start();
    let http = serve.ready().await.http;
    create_app(&gateway, http, &receiver.url("/")).await;
    gateway
        .eventually("a request", async |_| receiver.count() == 1)
        .await;
    let taken = "UPDATE webhook_queue SET due_at = due_at + interval '1 hour'";
    sqlx::query(taken)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    comes_to(metrics, &[("mailgate_webhook_unrecorded_total", 1.0)]).await;
    serve.terminate().await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_database_that_goes_and_comes_is_seen() {
    let mut server = DurablePostgres::start().await;
    let url = server.create_database().await;
    let gateway = Gateway::builder().database(&url).start().await;
    let (serve, metrics) = serve(&gateway, false).await;
    let mut serve = serve.start();
    serve.ready().await;
    comes_to(metrics, &[("mailgate_database_up", 1.0)]).await;
    server.kill().await;
    comes_to(metrics, &[("mailgate_database_up", 0.0)]).await;
    server.restart().await;
    comes_to(metrics, &[("mailgate_database_up", 1.0)]).await;
    serve.terminate().await;
    gateway.stop().await;
}

/// Rows of which each measure has to see its own.
const ROWS: [&str; 7] = [
    "INSERT INTO subscribers (id, label, email, api_secret_sealed, api_secret_digest, created_at)
     VALUES ('00000000-0000-7000-8000-000000000001', 'a', 'a@example.com', 'x', 'x', now())",
    // The endpoint with the highest id has the delivery that is due longest among those that are ready.
    "INSERT INTO webhook_queue
         (message_id, endpoint_id, app_id, event, url, secret_sealed, state, due_at)
     SELECT gen_random_uuid(), ('00000000-0000-7000-8000-' || lpad((n % 10)::text, 12, '0'))::uuid,
            gen_random_uuid(), 'email.sent', 'https://example.com/', 'x', state,
            CASE WHEN state <> 'ready' THEN now() + n * interval '1 hour'
                 WHEN n = 39 THEN now() - interval '1 hour' ELSE now() END
     FROM (VALUES ('ready', 40), ('waiting', 5), ('leased', 2)) AS kind (state, many),
          generate_series(1, many) AS n",
    // The oldest event's delivery isn't the one that is due first.
    "INSERT INTO webhook_queue
         (message_id, endpoint_id, app_id, event, url, secret_sealed, state, due_at)
     VALUES ('00000000-0000-7000-8000-000000000007', gen_random_uuid(), gen_random_uuid(), 'email.sent',
             'https://example.com/', 'x', 'waiting', now() + interval '1 day')",
    "INSERT INTO billing_jobs (id, subscriber_id, kind, due_at, created_at)
     SELECT gen_random_uuid(), gen_random_uuid(), 'end', now() - n * interval '1 hour', now()
     FROM generate_series(1, 4) AS n",
    "INSERT INTO payprov_events (id, type, received_at, state, due_at)
     SELECT 'evt_' || n, 'a.b', now(), CASE WHEN n <= 3 THEN 'waiting' ELSE 'applied' END,
            now() - n * interval '1 hour'
     FROM generate_series(1, 9) AS n",
    "INSERT INTO billing_notices (id, subscriber_id, kind, event_id, data, created_at, due_at)
     SELECT gen_random_uuid(), '00000000-0000-7000-8000-000000000001', 'trial_will_end', 'evt_' || n,
            '{}', now(), CASE WHEN n <= 2 THEN now() - n * interval '1 hour' END
     FROM generate_series(1, 9) AS n",
    "INSERT INTO email_counter_changes
     SELECT gen_random_uuid(), now(), 'plugin_a', 'sent', 1 FROM generate_series(1, 6)",
];

#[tokio::test]
async fn each_queue_is_measured_by_what_waits_in_it() {
    let url = database::create().await;
    let mut connection = database::connect(&url).await;
    for rows in ROWS {
        connection.execute(rows).await.unwrap();
    }
    let hours_ago = |moment: Option<chrono::DateTime<chrono::Utc>>| {
        let age = chrono::Utc::now() - moment.unwrap();
        (age.as_seconds_f64() / 360.0).round() / 10.0
    };
    let mut transaction = connection.begin().await.unwrap();
    pool::force_index_scans(&mut transaction).await.unwrap();
    let webhooks = backlog::measure(&mut transaction).await.unwrap();
    assert_eq!((webhooks.ready, webhooks.later), (40, 8));
    let oldest = webhooks.oldest.unwrap().0.to_string();
    assert_eq!(oldest, "00000000-0000-7000-8000-000000000007");
    assert!((hours_ago(webhooks.due_first) - 1.0).abs() < 1e-9);
    for (waiting, entries, hours) in [
        (billing_jobs::waiting(&mut transaction).await, 4, 4.0),
        (payprov_events::waiting(&mut transaction).await, 3, 3.0),
        (billing_notices::waiting(&mut transaction).await, 2, 2.0),
    ] {
        let waiting = waiting.unwrap();
        assert_eq!(waiting.entries, entries);
        assert!((hours_ago(waiting.due_first) - hours).abs() < 1e-9);
    }
    let changes = email_counters::changes(&mut transaction).await.unwrap();
    assert_eq!(changes, 6);
    let sorts = async |connection: &mut sqlx::PgConnection| -> String {
        sqlx::query_scalar("SHOW enable_sort")
            .fetch_one(connection)
            .await
            .unwrap()
    };
    assert_eq!(sorts(&mut transaction).await, "off");
    transaction.rollback().await.unwrap();
    assert_eq!(sorts(&mut connection).await, "on");
    // A retry or a lease whose time has come counts too, before anybody has made it ready.
    let late =
        "UPDATE webhook_queue SET due_at = now() - interval '2 hours' WHERE state = 'leased'";
    connection.execute(late).await.unwrap();
    let webhooks = backlog::measure(&mut connection).await.unwrap();
    assert!((hours_ago(webhooks.due_first) - 2.0).abs() < 1e-9);
}
