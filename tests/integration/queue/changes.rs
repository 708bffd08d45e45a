//! Messages that are tried now, or cancelled.

use chrono::TimeDelta;
use mailgate_types::clock::Clock;
use serde_json::{Value, json};

use super::*;
use crate::support::caller::has_just;
use crate::support::receiver::Receiver;

const HOUR: TimeDelta = TimeDelta::hours(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_message_is_tried_now() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let id = waiting(&gateway).await;
    let before = gateway.clock.now();
    let answer = retry(&owner, &id).await.success(202);
    has_just(&answer, vec!["log_id", "status", "next_retry_at"]);
    assert_eq!(
        (&answer["log_id"], &answer["status"]),
        (&json!(id), &json!("failed_temp"))
    );
    let due: DateTime<Utc> = text(&answer, "next_retry_at").parse().unwrap();
    assert!((due - before).abs() < TimeDelta::minutes(1));
    gateway
        .eventually("the second attempt", async |gateway| {
            let twice = "SELECT count(*) FROM spool WHERE attempts = 2 AND state = 'deferred'";
            number(gateway, twice).await == 1
        })
        .await;
    run(
        &gateway,
        "UPDATE spool SET recipients = '{bob@example.com}'",
    )
    .await;
    retry(&owner, &id).await.success(202);
    emptied(&gateway).await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    let shown = owner.get(&format!("/logs/{id}")).await.success(200);
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 3);
    assert_eq!(retry(&owner, &id).await.problem(), (409, "message_sent"));
    assert_eq!(cancel(&owner, &id).await.problem(), (409, "message_sent"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_message_never_leaves_and_is_told_of_once() {
    let gateway = Gateway::builder()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .start()
        .await;
    let receiver = Receiver::start().await;
    sqlx::query("UPDATE apps SET webhook_url = $1")
        .bind(receiver.url("/"))
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let owner = Caller::owner(&gateway).await;
    let retried = waiting(&gateway).await;
    let later = scheduled(&gateway, "bob@example.com", TimeDelta::days(29)).await;
    for id in [&retried, &later] {
        for _ in 0..2 {
            let answer = cancel(&owner, id).await.success(200);
            let expected =
                json!({ "log_id": id, "status": "failed_perm", "error_message": "Cancelled" });
            assert_eq!(answer, expected);
        }
        let shown = owner.get(&format!("/logs/{id}")).await.success(200);
        assert_eq!(
            (&shown["status"], &shown["error_message"]),
            (&json!("failed_perm"), &json!("Cancelled"))
        );
        assert_eq!(shown["send_at"], Value::Null);
        assert_eq!(retry(&owner, id).await.problem(), (409, "message_failed"));
    }
    assert_eq!(gateway.spooled().await, 0);
    assert_eq!(usage(&gateway).await, 0);
    let told = events(&gateway).await;
    let cancelled: Vec<&str> = (told.iter())
        .filter(|(name, _, error)| {
            name == "email.failed_perm" && error.as_deref() == Some("Cancelled")
        })
        .map(|(_, id, _)| id.as_str())
        .collect();
    assert_eq!(cancelled, [retried.as_str(), later.as_str()]);
    assert_eq!(told.len(), 3, "{told:?}");
    // The deliveries are found, though the id of one lies ahead.
    for (id, deliveries) in [(&retried, 2), (&later, 1)] {
        gateway
            .eventually("the deliveries", async |_| {
                let shown = owner.get(&format!("/logs/{id}")).await.success(200);
                shown["webhook_deliveries"].as_array().unwrap().len() == deliveries
            })
            .await;
    }
    // Totals have both, wherever their times lie, and so has the list.
    let listed = owner.get("/logs?status=failed_perm").await.success(200);
    assert_eq!(listed["total"], 2);
    assert_eq!(listed["logs"][0]["id"], later);
    assert_eq!(
        owner.get("/logs?status=scheduled").await.success(200)["total"],
        0
    );
    // Nobody has made the partitions of what is told by then.
    run(&gateway, "UPDATE apps SET webhook_url = ''").await;
    gateway.clock.advance(TimeDelta::days(29));
    looked_at(&gateway).await;
    assert_eq!(
        gateway.arrived().await.len(),
        1,
        "only what was looked at has left"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_count_a_cancelled_message_at_its_own_time() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let wait = TimeDelta::days(2);
    let id = scheduled(&gateway, "bob@example.com", wait).await;
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    cancel(&owner, &id).await.success(200);
    let today = gateway.clock.now().date_naive();
    let then = (gateway.clock.now() + wait).date_naive();
    let total = async |query: String| {
        let page = owner.get(&format!("/logs?{query}")).await.success(200);
        (
            page["total"].as_i64().unwrap(),
            page["logs"].as_array().unwrap().len(),
        )
    };
    for _ in 0..2 {
        assert_eq!(total(String::new()).await, (2, 2));
        assert_eq!(
            total(format!("from_date={today}&to_date={today}")).await,
            (1, 1)
        );
        assert_eq!(
            total(format!("from_date={then}&to_date={then}")).await,
            (1, 1)
        );
        let at = ahead(&gateway, wait - TimeDelta::minutes(5));
        assert_eq!(
            total(format!("from_date={at}&status=failed_perm")).await,
            (1, 1)
        );
        let stats = owner.get("/stats").await.success(200);
        assert_eq!(
            (&stats["total_emails_sent"], &stats["emails_sent_today"]),
            (&json!(1), &json!(1)),
            "{stats}"
        );
        // Added up, it is the same.
        let mut connection = gateway.database().await;
        mailgate_storage::email_counters::fold(&mut connection, 1_000)
            .await
            .unwrap();
    }
    gateway.clock.advance(wait);
    assert_eq!(
        total(format!("from_date={then}&to_date={then}")).await,
        (1, 1)
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anything_else_is_refused_with_what_it_is() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let later = scheduled(&gateway, "bob@example.com", HOUR).await;
    assert_eq!(
        retry(&owner, &later).await.problem(),
        (409, "message_scheduled")
    );
    let (_, refused) = gateway.send_to("permfail@example.com").await;
    let failed = text(&refused, "log_id");
    assert_eq!(
        cancel(&owner, failed).await.problem(),
        (409, "message_failed")
    );
    assert_eq!(
        retry(&owner, failed).await.problem(),
        (409, "message_failed")
    );

    // It may have arrived: nobody can say that it was not sent.
    let unknown = waiting(&gateway).await;
    run(
        &gateway,
        "UPDATE spool SET outcome_unknown = true WHERE is_logged",
    )
    .await;
    let answer = cancel(&owner, &unknown).await;
    assert_eq!(answer.problem(), (409, "outcome_unknown"));
    assert_eq!(answer.body["log_id"], unknown);
    assert_eq!(gateway.spooled().await, 2);
    retry(&owner, &unknown).await.success(202);

    let stranger = Caller::another(&gateway, "Stranger").await;
    let none = "log_01h2xcejqtf2nbrexx3vqjhp41";
    for (caller, id) in [
        (&stranger, later.as_str()),
        (&owner, none),
        (&owner, "log_x"),
        (&owner, "%00"),
    ] {
        assert_eq!(
            cancel(caller, id).await.problem(),
            (404, "log_not_found"),
            "{id}"
        );
        assert_eq!(
            retry(caller, id).await.problem(),
            (404, "log_not_found"),
            "{id}"
        );
    }
    assert_eq!(stranger.get(&format!("/logs/{later}")).await.status, 404);
    let nobody = crate::support::caller::anonymous(
        &gateway,
        reqwest::Method::POST,
        &format!("/logs/{later}/cancel"),
    );
    assert_eq!(
        Answer::to(nobody).await.problem(),
        (401, "invalid_api_secret")
    );
    gateway.stop().await;
}
