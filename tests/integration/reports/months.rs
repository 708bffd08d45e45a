//! Months that no report shows one by one any more: an owner has one row for all of them, and every total stays.

use std::sync::Arc;

use chrono::{DateTime, Months, TimeDelta, Utc};
use mailgate_domain::reports::Reports;
use mailgate_types::clock::{Clock as _, SharedClock};
use reqwest::Method;
use serde_json::Value;
use uuid::Uuid;

use super::Reader;
use crate::support::gateway::{Gateway, create_app};

const RETENTION_DAYS: u32 = 90;

/// Years of a gateway's life.
const MONTHS: u32 = 60;

fn reports(gateway: &Gateway) -> Reports {
    let clock: SharedClock = Arc::<mailgate_types::clock::MovedClock>::clone(&gateway.clock);
    Reports::new(gateway.daemon.pool.clone(), clock)
}

/// An app's messages of all months, in its own counters and its subscriber's: `number` a month, and one more that has
/// bounced.
async fn count(gateway: &Gateway, app: Uuid, number: i64) {
    let now = gateway.clock.now();
    for back in 0..MONTHS {
        let start: DateTime<Utc> = now.checked_sub_months(Months::new(back)).unwrap();
        sqlx::query(
            "INSERT INTO email_counters AS counter
                 (owner_id, unit, start, plugin_a_sent, plugin_a_failed_temp, plugin_a_failed_perm,
                  plugin_b_sent, plugin_b_failed_temp, plugin_b_failed_perm, plugin_a_bounced)
             SELECT owner, 'month', date_trunc('month', $2::timestamptz, 'UTC'),
                    $3 + 1, 0, 1, $3, 0, 2, 1
             FROM apps, unnest(ARRAY[apps.id, apps.subscriber_id]) AS owner WHERE apps.id = $1
             ON CONFLICT (owner_id, unit, start) DO UPDATE
             SET plugin_a_sent = counter.plugin_a_sent + EXCLUDED.plugin_a_sent,
                 plugin_a_failed_perm = counter.plugin_a_failed_perm + EXCLUDED.plugin_a_failed_perm,
                 plugin_b_sent = counter.plugin_b_sent + EXCLUDED.plugin_b_sent,
                 plugin_b_failed_perm = counter.plugin_b_failed_perm + EXCLUDED.plugin_b_failed_perm,
                 plugin_a_bounced = counter.plugin_a_bounced + EXCLUDED.plugin_a_bounced",
        )
        .bind(app)
        .bind(start)
        .bind(number)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    }
}

/// What a subscriber is shown.
async fn shown(reader: &Reader<'_>) -> [Value; 2] {
    [
        reader.get("/stats").await,
        reader.get("/email-stats?period=month").await,
    ]
}

/// The most rows that an owner has of months.
async fn most_months(gateway: &Gateway) -> i64 {
    sqlx::query_scalar(
        "SELECT max(months) FROM (SELECT count(*) AS months FROM email_counters
                                  WHERE unit = 'month' GROUP BY owner_id) AS owners",
    )
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn they_become_one_row_and_every_total_stays() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    let (status, second) = create(&reader).await;
    assert_eq!(status, 201, "{second}");
    let second_id: Uuid = second["id"].as_str().unwrap().parse().unwrap();
    let (_, stranger) = create_app(&gateway.daemon, "Stranger").await;
    let other = Reader::of(&gateway, stranger.id).await;
    for (app, number) in [
        (gateway.app.id.0, 10),
        (second_id, 100),
        (stranger.id.0, 1_000),
    ] {
        count(&gateway, app, number).await;
    }
    let before = [shown(&reader).await, shown(&other).await];
    let all = i64::from(MONTHS);
    assert_eq!(
        before[0][0]["total_emails_sent"],
        all * (10 + 11 + 100 + 101)
    );
    assert_eq!(most_months(&gateway).await, all);

    reports(&gateway).fold_months(RETENTION_DAYS).await.unwrap();
    assert_eq!([shown(&reader).await, shown(&other).await], before);
    let kept = most_months(&gateway).await;
    assert!((13..=16).contains(&kept), "{kept}");

    // An app takes with it what it has sent, folded or not.
    let path = format!("/apps/{}", second["pushable_key"].as_str().unwrap());
    assert_eq!(reader.ask(Method::DELETE, &path).await.0, 200);
    let [figures, _] = shown(&reader).await;
    assert_eq!(figures["total_emails_sent"], all * (10 + 11));
    assert_eq!(figures["total_emails_bounced"], all);
    assert_eq!(shown(&other).await, before[1]);

    // The next ones join them.
    gateway.clock.advance(TimeDelta::days(100));
    reports(&gateway).fold_months(RETENTION_DAYS).await.unwrap();
    let [figures, _] = shown(&reader).await;
    assert_eq!(figures["total_emails_sent"], all * (10 + 11));
    let left = most_months(&gateway).await;
    assert!((kept - 4..=kept - 3).contains(&left), "{left} of {kept}");
    gateway.stop().await;
}

async fn create(reader: &Reader<'_>) -> (u16, Value) {
    let url = format!("{}/apps", reader.gateway.daemon.base_url);
    let request = reader.gateway.http.post(url);
    let request = request.header("x-api-secret", &reader.secret);
    let body = serde_json::json!({ "name": "Second" });
    let response = request.json(&body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_the_log_goes_back_to_stay() {
    let gateway = Gateway::start().await;
    count(&gateway, gateway.app.id.0, 10).await;
    reports(&gateway).fold_months(2_000).await.unwrap();
    assert_eq!(most_months(&gateway).await, i64::from(MONTHS));
    gateway.stop().await;
}

/// More than one round takes, and rows of owners who are gone.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_are_folded_in_rounds() {
    let gateway = Gateway::start().await;
    let mut database = gateway.database().await;
    sqlx::query(
        "INSERT INTO email_counters
             (owner_id, unit, start, plugin_a_sent, plugin_a_failed_temp, plugin_a_failed_perm,
              plugin_b_sent, plugin_b_failed_temp, plugin_b_failed_perm)
         SELECT owner, 'month', month, 1, 0, 0, 0, 0, 0
         FROM (SELECT gen_random_uuid() AS owner FROM generate_series(1, 1000)) AS owners,
              generate_series('2020-01-01T00:00Z'::timestamptz, '2020-03-01T00:00Z', '1 month') AS month",
    )
    .execute(&mut database)
    .await
    .unwrap();
    reports(&gateway).fold_months(RETENTION_DAYS).await.unwrap();
    let (rows, sent): (i64, i64) = sqlx::query_as(
        "SELECT count(*), sum(plugin_a_sent)::bigint FROM email_counters WHERE unit = 'month'",
    )
    .fetch_one(&mut database)
    .await
    .unwrap();
    assert_eq!((rows, sent), (1_000, 3_000));
    gateway.stop().await;
}
