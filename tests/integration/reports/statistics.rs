//! `GET /stats` and `GET /email-stats`.

use chrono::{Datelike, Months, TimeDelta};
use mailgate_storage::partitions;
use mailgate_types::clock::Clock;
use serde_json::{Value, json};

use super::{Reader, connect_second, send_second};
use crate::support::gateway::Gateway;

/// Days that a test goes on to, further ahead than the gateway looks.
async fn days_ahead(gateway: &Gateway) {
    let today = gateway.clock.now().date_naive();
    let mut connection = gateway.database().await;
    for day in today.iter_days().take(34) {
        partitions::create(&mut connection, day).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_figures_at_a_glance() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    let figures = |sent: i64, today: i64, month: i64, rate: f64, plugins: Value| {
        json!({
            "apps_count": 1, "active_oauth_users": 2, "total_emails_sent": sent,
            "emails_sent_today": today, "emails_sent_month": month, "success_rate": rate,
            "total_emails_bounced": 0, "emails_bounced_today": 0, "emails_bounced_month": 0,
            "plugins": plugins,
        })
    };
    let plugins = |a: i64, b: i64| {
        json!({
            "plugin_a": { "credentials_count": 1, "emails_sent_month": a },
            "plugin_b_alt": { "credentials_count": 1, "emails_sent_month": b },
        })
    };
    days_ahead(&gateway).await;
    connect_second(&gateway).await;
    assert_eq!(
        reader.get("/stats").await,
        figures(0, 0, 0, 1.0, plugins(0, 0))
    );
    // To the next month's second day, so that today is not all of the month.
    let now = gateway.clock.now();
    let next = now.date_naive().with_day(1).unwrap() + Months::new(1);
    let first = next.and_hms_opt(1, 0, 0).unwrap().and_utc();
    gateway.send_to("bob@example.com").await;
    gateway.clock.advance(first - now);
    gateway.send_to("bob@example.com").await;
    gateway.clock.advance(TimeDelta::days(1));
    gateway.send_to("bob@example.com").await;
    gateway.send_to("permfail@example.com").await;
    send_second(&gateway, "bob@example.com").await;
    let expected = figures(4, 2, 3, 0.8, plugins(2, 1));
    assert_eq!(reader.get("/stats").await, expected);
    gateway
        .eventually("the adding up", async |gateway| {
            let left: i64 = sqlx::query_scalar("SELECT count(*) FROM email_counter_changes")
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap();
            left == 0
        })
        .await;
    assert_eq!(reader.get("/stats").await, expected);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_by_day_and_month() {
    let gateway = Gateway::start().await;
    let reader = Reader::owner(&gateway).await;
    days_ahead(&gateway).await;
    connect_second(&gateway).await;
    let days = reader.get("/email-stats?period=day").await;
    assert_eq!(days["data"].as_array().unwrap().len(), 30);
    assert_eq!(days.get("summary"), None);
    gateway.send_to("permfail@example.com").await;
    gateway.clock.advance(TimeDelta::days(29));
    gateway.send_to("bob@example.com").await;
    gateway.send_to("tempfail@example.com").await;
    send_second(&gateway, "bob@example.com").await;
    let today = gateway.clock.now().date_naive();
    let days = reader.get("/email-stats?period=day").await;
    assert_eq!(days["period"], "day");
    let data = days["data"].as_array().unwrap();
    assert_eq!(data.len(), 30);
    assert_eq!(
        data[29],
        json!({ "date": today.to_string(), "total": 3, "sent": 2, "failed_temp": 1, "failed_perm": 0,
                "bounced": 0 })
    );
    assert_eq!(
        data[0],
        json!({ "date": (today - TimeDelta::days(29)).to_string(), "total": 1, "sent": 0,
                "failed_temp": 0, "failed_perm": 1, "bounced": 0 })
    );
    assert_eq!(data[7]["total"], 0);

    let months = reader.get("/email-stats").await;
    assert_eq!(months["period"], "month");
    let data = months["data"].as_array().unwrap();
    assert_eq!(data.len(), 12);
    let this = data[11].clone();
    let month = today.format("%Y-%m").to_string();
    assert_eq!(this["date"], month);
    let total: i64 = data
        .iter()
        .map(|month| month["total"].as_i64().unwrap())
        .sum();
    assert_eq!(total, 4);
    let of_plugin = |name: &str| -> i64 {
        data.iter()
            .map(|month| month["by_plugin"][name].as_i64().unwrap())
            .sum()
    };
    assert_eq!((of_plugin("plugin_a"), of_plugin("plugin_b_alt")), (3, 1));
    assert_eq!(
        months["summary"],
        json!({ "total_12months": 4, "avg_per_month": 0, "best_month": month, "success_rate": 0.5,
                "bounced_12months": 0 })
    );
    gateway.stop().await;
}
