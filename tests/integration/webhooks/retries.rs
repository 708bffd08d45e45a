//! What becomes of a delivery that fails: when it is tried again, and when not.

use chrono::TimeDelta;
use mailgate_domain::webhooks::RedeliverError;
use mailgate_types::clock::Clock;
use mailgate_types::ids::{WebhookConfigId, WebhookDeliveryId, WebhookMessageId};

use super::{
    SECRET, attempted, configure, connected, deliveries, gateway, happen, queued, set_own_url,
};
use crate::support::gateway::{Gateway, OPERATOR};
use crate::support::patience;
use crate::support::receiver::{Receiver, Reply};

/// When the only row of the queue is due, from now on.
async fn due_in(gateway: &Gateway) -> TimeDelta {
    let at: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("SELECT due_at FROM webhook_queue WHERE state = 'waiting'")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    at - gateway.clock.now()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_delivery_follows_the_schedule_to_its_end() {
    let gateway = gateway().start().await;
    let receiver = Receiver::start().await;
    receiver.always(Reply::Status(500, "no"));
    set_own_url(&gateway, &receiver.url("/")).await;
    happen(&gateway, &[connected(gateway.app.id)]).await;
    let schedule = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];
    for (number, seconds) in (1..).zip(schedule) {
        attempted(&gateway, number).await;
        assert_eq!(queued(&gateway).await, [("waiting".to_owned(), 1)]);
        let due = due_in(&gateway).await;
        assert!(
            due <= TimeDelta::seconds(seconds) * 11 / 10,
            "{number}: {due}"
        );
        assert!(due > TimeDelta::seconds(seconds - 5), "{number}: {due}");
        gateway.clock.advance(due);
    }
    let deliveries = attempted(&gateway, 8).await;
    assert!(queued(&gateway).await.is_empty());
    let numbers: Vec<i32> = deliveries
        .iter()
        .map(|delivery| delivery.attempt_number)
        .collect();
    assert_eq!(numbers, (1..=8).collect::<Vec<i32>>());
    for delivery in &deliveries {
        assert!(!delivery.success);
        assert_eq!(
            (delivery.http_status, delivery.response_body.as_str()),
            (Some(500), "no")
        );
        assert!(
            delivery
                .error_message
                .as_deref()
                .unwrap()
                .contains("HTTP status 500")
        );
    }
    let all = receiver.received();
    assert_eq!(all.len(), 8);
    assert!(
        all.iter()
            .all(|one| one.header("webhook-id") == all[0].header("webhook-id"))
    );
    assert!(all.iter().all(|one| one.body == all[0].body));
    // Each attempt is signed in its own time.
    let signatures: std::collections::HashSet<&str> = all
        .iter()
        .map(|one| one.header("webhook-signature"))
        .collect();
    assert_eq!(signatures.len(), 8);
    let counted: (bool, i64) =
        sqlx::query_as("SELECT success, sum(deliveries)::bigint FROM webhook_counters GROUP BY 1")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    assert_eq!(counted, (false, 8));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repaired_address_heals_the_retries() {
    let gateway = gateway().start().await;
    let receiver = Receiver::start().await;
    let config = configure(
        &gateway,
        gateway.app.id,
        "http://127.0.0.1:9/",
        &["user.connected"],
        SECRET,
    )
    .await;
    happen(&gateway, &[connected(gateway.app.id)]).await;
    let first = attempted(&gateway, 1).await;
    assert_eq!(first[0].http_status, None);
    assert!(first[0].error_message.is_some());
    sqlx::query("UPDATE webhook_configs SET url = $2 WHERE id = $1")
        .bind(config.0)
        .bind(receiver.url("/repaired"))
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway.clock.advance(TimeDelta::seconds(6));
    let both = attempted(&gateway, 2).await;
    assert!(both[1].success && both[1].attempt_number == 2);
    assert_eq!(receiver.received()[0].path, "/repaired");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_before_an_end_is_still_told() {
    let gateway = gateway().start().await;
    let receiver = Receiver::start().await;
    let app = gateway.app.id;
    receiver.then([Reply::Status(500, ""), Reply::Status(500, "")]);
    set_own_url(&gateway, &receiver.url("/own")).await;
    let config = configure(
        &gateway,
        app,
        &receiver.url("/config"),
        &["user.connected"],
        SECRET,
    )
    .await;
    happen(&gateway, &[connected(app)]).await;
    attempted(&gateway, 2).await;
    sqlx::query("DELETE FROM webhook_configs WHERE id = $1")
        .bind(config.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    assert!(
        gateway
            .daemon
            .mailboxes
            .delete_app(app, OPERATOR)
            .await
            .unwrap()
    );
    gateway.clock.advance(TimeDelta::seconds(6));
    // Beside the end itself, which its own address is told of.
    gateway
        .eventually("the retries", async |_| receiver.count() == 5)
        .await;
    let paths: std::collections::HashSet<String> = receiver.received()[2..]
        .iter()
        .map(|one| one.path.clone())
        .collect();
    assert_eq!(paths.len(), 2);
    // Then all of it goes.
    gateway
        .eventually("its traces go", async |gateway| {
            let left: i64 = sqlx::query_scalar(
                "SELECT (SELECT count(*) FROM webhook_messages) + (SELECT count(*) FROM webhook_queue)
                        + (SELECT count(*) FROM webhook_deliveries)
                        + (SELECT count(*) FROM webhook_counters)",
            )
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
            left == 0
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_end_or_put_off() {
    let gateway = gateway().start().await;
    let receiver = Receiver::start().await;
    set_own_url(&gateway, &receiver.url("/")).await;
    for (reply, status, wait) in [
        (Reply::Status(410, "gone"), 410, None),
        (
            Reply::Header(429, "retry-after", "90".to_owned()),
            429,
            Some(90),
        ),
        (
            Reply::Header(503, "retry-after", "9999999".to_owned()),
            503,
            Some(86_400),
        ),
        (
            Reply::Header(503, "retry-after", "soon".to_owned()),
            503,
            Some(5),
        ),
        (
            Reply::Header(302, "location", receiver.url("/elsewhere")),
            302,
            Some(5),
        ),
        (
            Reply::Header(301, "location", "http://169.254.169.254/".to_owned()),
            301,
            Some(5),
        ),
        (Reply::Status(404, ""), 404, Some(5)),
        (Reply::Status(204, ""), 204, None),
        (Reply::Status(299, ""), 299, None),
    ] {
        let before = deliveries(&gateway).await.len();
        receiver.then([reply]);
        happen(&gateway, &[connected(gateway.app.id)]).await;
        let delivery = attempted(&gateway, before + 1).await.pop().unwrap();
        assert_eq!(delivery.http_status, Some(status));
        assert_eq!(delivery.success, status < 300);
        match wait {
            None => assert!(queued(&gateway).await.is_empty(), "{status}"),
            Some(seconds) => {
                let due = due_in(&gateway).await.as_seconds_f64();
                let wanted = f64::from(seconds);
                assert!(
                    (wanted - 5.0..wanted * 1.1).contains(&due),
                    "{status}: {due}"
                );
            }
        }
        sqlx::query("DELETE FROM webhook_queue")
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }
    // No redirect was followed.
    assert_eq!(receiver.count(), 9);
    assert!(receiver.received().iter().all(|one| one.path == "/"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_made_again_when_somebody_asks() {
    let gateway = gateway().start().await;
    let receiver = Receiver::start().await;
    let app = gateway.app.id;
    let config = configure(
        &gateway,
        app,
        &receiver.url("/"),
        &["user.connected"],
        SECRET,
    )
    .await;
    let webhooks = &gateway.daemon.webhooks;
    let delivery = |row: &super::DeliveryRow| WebhookDeliveryId(row.id);
    let again =
        |row: &super::DeliveryRow| webhooks.redeliver(app, Some(config), delivery(row), OPERATOR);
    receiver.then([Reply::Status(410, "")]);
    happen(&gateway, &[connected(app)]).await;
    let first = attempted(&gateway, 1).await;

    // Ended: it is queued anew, under the next number.
    again(&first[0]).await.unwrap();
    let second = attempted(&gateway, 2).await;
    assert_eq!((second[1].attempt_number, second[1].success), (2, true));
    let told = receiver.received();
    assert_eq!(told[0].header("webhook-id"), told[1].header("webhook-id"));
    assert_eq!(
        told[1].header("webhook-id"),
        WebhookMessageId(first[0].message_id).to_string()
    );
    // Waiting: it is due at once, and keeps its numbers.
    receiver.then([Reply::Status(500, "")]);
    happen(&gateway, &[connected(app)]).await;
    let third = attempted(&gateway, 3).await;
    again(&third[2]).await.unwrap();
    let fourth = attempted(&gateway, 4).await;
    assert_eq!((fourth[3].attempt_number, fourth[3].success), (2, true));
    assert!(queued(&gateway).await.is_empty());
    // By many at once: each message goes out once more.
    let asked = (0..8).map(|_| again(&first[0]));
    for asked in futures_util::future::join_all(asked).await {
        assert!(
            matches!(asked, Ok(_) | Err(RedeliverError::InFlight)),
            "{asked:?}"
        );
    }
    gateway
        .eventually("all of it is delivered", async |gateway| {
            queued(gateway).await.is_empty()
        })
        .await;
    let mut numbers: Vec<i32> = (deliveries(&gateway).await.iter())
        .filter(|row| row.message_id == first[0].message_id)
        .map(|row| row.attempt_number)
        .collect();
    numbers.sort_unstable();
    assert_eq!(
        numbers,
        (1..=i32::try_from(numbers.len()).unwrap()).collect::<Vec<_>>()
    );
    assert_eq!(receiver.count(), deliveries(&gateway).await.len());

    // Under way; not there; of another app or configuration; aged away.
    receiver.then([Reply::Hang]);
    let count = receiver.count();
    again(&first[0]).await.unwrap();
    gateway
        .eventually("it is under way", async |_| receiver.count() == count + 1)
        .await;
    let asked = webhooks
        .redeliver(app, Some(config), delivery(&first[0]), OPERATOR)
        .await;
    assert!(matches!(asked, Err(RedeliverError::InFlight)), "{asked:?}");
    let (_, other) = crate::support::gateway::create_app(&gateway.daemon, "Other").await;
    let others = configure(&gateway, other.id, &receiver.url("/"), &[], SECRET).await;
    for (app, config, delivery) in [
        (app, config, WebhookDeliveryId::at(chrono::Utc::now())),
        (other.id, others, delivery(&first[0])),
        (other.id, config, delivery(&first[0])),
        (
            app,
            WebhookConfigId::at(chrono::Utc::now()),
            delivery(&first[0]),
        ),
    ] {
        let asked = webhooks
            .redeliver(app, Some(config), delivery, OPERATOR)
            .await;
        assert!(matches!(asked, Err(RedeliverError::NotFound)), "{asked:?}");
    }
    sqlx::query("DELETE FROM webhook_messages WHERE id = $1")
        .bind(third[2].message_id)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let asked = webhooks
        .redeliver(app, Some(config), delivery(&third[2]), OPERATOR)
        .await;
    assert!(matches!(asked, Err(RedeliverError::Gone)), "{asked:?}");
    drop(receiver);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_hangs_delays_no_other() {
    let gateway = gateway()
        .set("WEBHOOKS__CONCURRENCY", 16)
        .set("WEBHOOKS__EXCHANGE_SECONDS", 300)
        .start()
        .await;
    let (hanging, quick) = (Receiver::start().await, Receiver::start().await);
    hanging.always(Reply::Hang);
    set_own_url(&gateway, &hanging.url("/")).await;
    let app = gateway.app.id;
    let many: Vec<_> = (0..5_000).map(|_| connected(app)).collect();
    happen(&gateway, &many).await;
    gateway
        .eventually("it hangs", async |_| hanging.count() > 0)
        .await;
    let (_, other) = crate::support::gateway::create_app(&gateway.daemon, "Other").await;
    configure(
        &gateway,
        other.id,
        &quick.url("/"),
        &["user.connected"],
        SECRET,
    )
    .await;
    for number in 1..=20 {
        happen(&gateway, &[connected(other.id)]).await;
        let what = "delivery that waits for no other one";
        patience::until(what, async || quick.count() >= number).await;
    }
    assert!(hanging.count() <= 4, "{}", hanging.count());
    // At the end of the process nothing stays leased but what is under way.
    drop(hanging);
    gateway.stop_daemon().await;
    let left = queued(&gateway).await;
    assert!(left.iter().all(|(state, _)| state != "leased"), "{left:?}");
}
