//! Many past events delivered again.

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_types::clock::Clock;
use mailgate_types::ids::{AppId, WebhookConfigId, uuid_at};
use mailgate_types::moment::iso8601;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{arrived, builder, create, events, hook, hooks, renew, settled};
use crate::support::caller::{Answer, Caller, has_just, text};
use crate::support::gateway::Gateway;
use crate::support::receiver::{Receiver, Reply};

const RENEWED: &str = "send_key.renewed";

async fn replay(caller: &Caller<'_>, webhook: &Value, body: Value) -> Answer {
    let path = format!("{}/replay", hook(caller.gateway, webhook));
    caller.post(&path, &body).await
}

/// What it answers: queued, skipped, expired, and the cursor.
async fn replayed(caller: &Caller<'_>, webhook: &Value, body: Value) -> ([i64; 3], Option<String>) {
    counts(&replay(caller, webhook, body).await.success(202))
}

fn counts(answer: &Value) -> ([i64; 3], Option<String>) {
    has_just(answer, vec!["queued", "skipped", "expired", "next_cursor"]);
    let counts = ["queued", "skipped", "expired"].map(|name| answer[name].as_i64().unwrap());
    (counts, answer["next_cursor"].as_str().map(str::to_owned))
}

fn today(gateway: &Gateway) -> String {
    iso8601(gateway.clock.now() - TimeDelta::minutes(5))
}

/// Events of which as many attempts failed, the last one a minute ago; the schedule is at its end.
async fn given_up(gateway: &Gateway, webhook: &Value, number: usize, attempts: i32) {
    let id: WebhookConfigId = text(webhook, "id").parse().unwrap();
    let at = gateway.clock.now() - TimeDelta::minutes(2);
    given_up_at(gateway, gateway.app.id, id.0, number, attempts, at).await;
}

async fn given_up_at(
    gateway: &Gateway,
    app: AppId,
    endpoint: Uuid,
    number: usize,
    attempts: i32,
    at: DateTime<Utc>,
) {
    let messages: Vec<Uuid> = (0..number).map(|_| uuid_at(at)).collect();
    let deliveries: Vec<Uuid> = (0..number)
        .map(|_| uuid_at(at + TimeDelta::minutes(1)))
        .collect();
    let mut database = gateway.database().await;
    sqlx::query(
        "INSERT INTO webhook_messages (app_id, id, event, body, created_at)
         SELECT $1, id, 'send_key.renewed', $4, $3
         FROM unnest($2::uuid[]) AS id",
    )
    .bind(app.0)
    .bind(&messages)
    .bind(at)
    .bind(
        json!({ "event": RENEWED, "app_id": "x", "timestamp": "x", "data": { "app_id": "x" } })
            .to_string(),
    )
    .execute(&mut database)
    .await
    .unwrap();
    for attempt in 1..=attempts {
        // Earlier attempts are older.
        let ids: Vec<Uuid> = if attempt == attempts {
            deliveries.clone()
        } else {
            messages.iter().map(|_| uuid_at(at)).collect()
        };
        sqlx::query(
            "INSERT INTO webhook_deliveries
                 (message_id, endpoint_id, attempt_number, id, app_id, event, http_status,
                  response_body, delivered_at, duration_ms, success)
             SELECT message, $1, $2, delivery, $3, 'send_key.renewed', 500, '', $6, 1, false
             FROM unnest($4::uuid[], $5::uuid[]) AS row (message, delivery)",
        )
        .bind(endpoint)
        .bind(attempt)
        .bind(app.0)
        .bind(&messages)
        .bind(&ids)
        .bind(at)
        .execute(&mut database)
        .await
        .unwrap();
    }
}

async fn queued(gateway: &Gateway) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM webhook_queue")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_delivered_again() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let webhook = create(&caller, &receiver.url("/"), &[RENEWED, "user.connected"]).await;
    // 410 ends a delivery.
    for status in [410, 200, 410] {
        receiver.then([Reply::Status(status, "")]);
        renew(&caller).await;
        settled(&gateway).await;
    }
    // One that is in wait already, and a test that failed, which is no event.
    receiver.then([Reply::Status(500, ""), Reply::Status(500, "")]);
    renew(&caller).await;
    arrived(&gateway, &receiver, 4).await;
    settled(&gateway).await;
    let test = format!("{}/test", hook(&gateway, &webhook));
    super::post(&caller, &test).await.success(200);
    let first = arrived(&gateway, &receiver, 5).await;

    let since = json!({ "since": today(&gateway) });
    let nothing = json!({ "since": today(&gateway), "event": "user.connected" });
    assert_eq!(replayed(&caller, &webhook, nothing).await, ([0; 3], None));
    let answer = replayed(&caller, &webhook, since.clone()).await;
    assert_eq!(answer, ([2, 1, 0], None));
    let again = arrived(&gateway, &receiver, 7).await;
    settled(&gateway).await;
    let ids = |requests: &[crate::support::receiver::Received]| -> Vec<String> {
        let ids = requests.iter();
        ids.map(|request| request.header("webhook-id").to_owned())
            .collect()
    };
    let (before, after) = (ids(&first), ids(&again[5..]));
    assert_eq!(after, [before[0].clone(), before[2].clone()], "in order");
    assert_eq!(again[5].body, first[0].body);
    let path = format!("{}/deliveries?limit=2", hook(&gateway, &webhook));
    let list = caller.get(&path).await.success(200);
    for item in list["deliveries"].as_array().unwrap() {
        assert_eq!(item["attempt_number"], 2);
        assert_eq!(item["success"], true);
    }
    // They have been delivered now.
    let answer = replayed(&caller, &webhook, since).await;
    assert_eq!(answer, ([0, 1, 0], None));
    let delivered = json!({ "since": today(&gateway), "success": true });
    let answer = replayed(&caller, &webhook, delivered).await;
    assert_eq!(answer, ([3, 0, 0], None));
    arrived(&gateway, &receiver, 10).await;
    settled(&gateway).await;
    assert_eq!(events(&receiver.received()[5..]), [RENEWED; 5]);
    let past = json!({ "since": "2020-01-01", "until": "2020-12-31", "success": true });
    assert_eq!(replayed(&caller, &webhook, past).await, ([0; 3], None));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apps_of_one_subscriber_replay_one_after_another() {
    let gateway = builder().set("DATABASE__MAX_CONNECTIONS", 40).start().await;
    let caller = Caller::owner(&gateway).await;
    let hook = "https://hooks.example.com/";
    let mut apps = Vec::new();
    for name in ["One", "Two", "Three"] {
        let new = json!({ "name": name, "webhook_url": hook });
        let app = caller.post("/apps", &new).await.success(201);
        apps.push(format!("/apps/{}/replay", text(&app, "pushable_key")));
    }
    // Each takes as long as a statement waits for a lock, which is as long as a further one waits for its turn.
    let mut database = gateway.database().await;
    let locked = sqlx::raw_sql("BEGIN; LOCK TABLE webhook_queue IN ACCESS EXCLUSIVE MODE");
    locked.execute(&mut database).await.unwrap();
    let since = json!({ "since": today(&gateway) });
    let (one, two, three) = tokio::join!(
        caller.post(&apps[0], &since),
        caller.post(&apps[1], &since),
        caller.post(&apps[2], &since),
    );
    let answers = [one, two, three];
    let refused = answers.iter().find(|answer| answer.status == 409);
    let refused = refused.expect("one of three has found no turn");
    assert_eq!(refused.problem().1, "replay_under_way");
    let detail = text(&refused.body, "detail");
    assert!(detail.contains("another app"), "{detail}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_once_and_none_that_is_no_longer_kept() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let webhook = create(&caller, &receiver.url("/"), &[RENEWED]).await;
    given_up(&gateway, &webhook, 30, 8).await;
    sqlx::query(
        "DELETE FROM webhook_messages WHERE id IN (SELECT id FROM webhook_messages LIMIT 5)",
    )
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    let since = json!({ "since": today(&gateway) });
    // By one process, and as by another.
    let other = Caller::owner(&gateway).await;
    let (one, two) = tokio::join!(
        replay(&caller, &webhook, since.clone()),
        replay(&other, &webhook, since.clone()),
    );
    let mut all = 0;
    for answer in [one, two] {
        if answer.status == 202 {
            all += answer.body["queued"].as_i64().unwrap();
            assert_eq!(answer.body["expired"], 5);
        } else {
            assert_eq!(answer.problem(), (409, "replay_under_way"));
        }
    }
    assert_eq!(all, 25);
    arrived(&gateway, &receiver, 25).await;
    settled(&gateway).await;
    assert_eq!(receiver.count(), 25);
    let answer = replayed(&caller, &webhook, since).await;
    assert_eq!(answer, ([0, 0, 5], None));
    let attempts: Vec<(i32, i64)> = sqlx::query_as(
        "SELECT attempt_number, count(*) FROM webhook_deliveries WHERE success GROUP BY 1",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap();
    assert_eq!(attempts, [(9, 25)]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_wait_at_most_and_the_rest_follows() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    receiver.always(Reply::Hang);
    let webhook = create(&caller, &receiver.url("/"), &[RENEWED]).await;
    given_up(&gateway, &webhook, 10_050, 2).await;
    let since = json!({ "since": today(&gateway) });
    let (mut all, mut cursor) = (0, None);
    // In one call, unless the machine is slow.
    while all < 10_000 {
        let mut body = since.clone();
        body["cursor"] = json!(cursor);
        let (counts, next) = replayed(&caller, &webhook, body).await;
        all += counts[0];
        assert!(next.is_some(), "there is more: {counts:?}");
        cursor = next;
    }
    let most = queued(&gateway).await;
    assert!((10_000..=10_050).contains(&most), "{most}");
    let answer = replay(&caller, &webhook, since.clone()).await;
    // Those that are being delivered don't wait.
    if answer.status == 202 {
        let queued = answer.body["queued"].as_i64().unwrap();
        assert!((1..=50).contains(&queued), "{}", answer.body);
    } else {
        assert_eq!(answer.problem(), (409, "too_many_waiting"));
    }
    // There is room again, and so for the rest.
    sqlx::query("DELETE FROM webhook_queue WHERE state = 'ready'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let mut body = since;
    body["cursor"] = json!(cursor);
    let (rest, cursor) = replayed(&caller, &webhook, body).await;
    assert!(rest[0] + rest[1] <= 50, "{rest:?}");
    assert_eq!(cursor, None);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_events_go_first() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let webhook = create(&caller, &receiver.url("/"), &["user.connected", RENEWED]).await;
    given_up(&gateway, &webhook, 6_000, 1).await;
    let since = json!({ "since": today(&gateway) });
    let (counts, _) = replayed(&caller, &webhook, since).await;
    assert_eq!(counts, [6_000, 0, 0]);
    gateway
        .connect(
            None,
            mailgate_types::plugin::Plugin::B,
            "eve@sandbox.example",
        )
        .await;
    let told_at = receiver.count();
    gateway
        .eventually("the new event", async |_| {
            events(&receiver.received()).contains(&"user.connected".to_owned())
        })
        .await;
    let position = events(&receiver.received())
        .iter()
        .position(|event| event == "user.connected")
        .unwrap();
    // What was leased already precedes it, and nothing else.
    assert!(position < told_at + 2_500, "{told_at} {position}");
    let due: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM webhook_queue WHERE state = 'ready' AND due_at < $1",
    )
    .bind(gateway.clock.now() + TimeDelta::hours(23))
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    assert_eq!(due, 0, "all that is replayed stands behind");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_replayed_is_made_due_by_its_own_retry() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    receiver.always(Reply::Hang);
    let webhook = create(&caller, &receiver.url("/"), &[RENEWED]).await;
    given_up(&gateway, &webhook, 100, 1).await;
    let since = json!({ "since": today(&gateway) });
    replayed(&caller, &webhook, since).await;
    let waits: Uuid = sqlx::query_scalar(
        "SELECT delivery.id FROM webhook_queue JOIN webhook_deliveries AS delivery USING (message_id)
         WHERE state = 'ready' ORDER BY due_at DESC LIMIT 1",
    )
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    let delivery = mailgate_types::ids::WebhookDeliveryId(waits);
    let retry = format!("{}/deliveries/{delivery}/retry", hook(&gateway, &webhook));
    let retried = super::post(&caller, &retry).await.success(202);
    assert_eq!(retried["attempt_number"], 2);
    let first: bool = sqlx::query_scalar(
        "SELECT message_id = (SELECT message_id FROM webhook_deliveries WHERE id = $1)
         FROM webhook_queue WHERE state = 'ready' ORDER BY due_at LIMIT 1",
    )
    .bind(waits)
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    assert!(first);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn to_the_apps_own_address() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    receiver.then([Reply::Status(410, "")]);
    let body = json!({ "name": "Told", "webhook_url": receiver.url("/") });
    let app = caller.post("/apps", &body).await.success(201);
    let path = format!("/apps/{}", text(&app, "pushable_key"));
    let first = arrived(&gateway, &receiver, 1).await;
    settled(&gateway).await;
    let since = json!({ "since": today(&gateway), "event": "app.created" });
    let answer = caller.post(&format!("{path}/replay"), &since).await;
    assert_eq!(counts(&answer.success(202)), ([1, 0, 0], None));
    let again = arrived(&gateway, &receiver, 2).await;
    assert_eq!(again[1].header("webhook-id"), first[0].header("webhook-id"));
    settled(&gateway).await;
    let emptied = caller.put(&path, &json!({ "webhook_url": "" })).await;
    emptied.success(200);
    let answer = caller.post(&format!("{path}/replay"), &since).await;
    assert_eq!(answer.problem(), (409, "webhook_inactive"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let webhook = create(&caller, "https://hooks.example/", &[RENEWED]).await;
    let cursor = "1793523600000.wdel_01h2xcejqtf2nbrexx3vqjhp41";
    for (body, fields) in [
        (json!({}), vec!["since"]),
        (json!({ "since": 7 }), vec!["since"]),
        (json!({ "since": "yesterday" }), vec!["since"]),
        (
            json!({ "since": "2026-01-01", "until": "x", "success": "no", "event": "test",
                    "cursor": format!("{cursor}x") }),
            vec!["cursor", "event", "success", "until"],
        ),
        (
            json!({ "since": "2026-01-02", "until": "2026-01-01" }),
            vec!["until"],
        ),
    ] {
        let answer = replay(&caller, &webhook, body).await;
        assert_eq!(answer.wrong_fields(), fields);
    }
    let fine = json!({ "since": "2026-01-01", "cursor": cursor });
    let answer = replayed(&caller, &webhook, fine.clone()).await;
    assert_eq!(answer, ([0; 3], None));
    let off = json!({ "is_active": false });
    let changed = caller.put(&hook(&gateway, &webhook), &off).await;
    changed.success(200);
    let answer = replay(&caller, &webhook, fine.clone()).await;
    assert_eq!(answer.problem(), (409, "webhook_inactive"));
    let unknown = format!(
        "{}/wconf_01h2xcejqtf2nbrexx3vqjhp41/replay",
        hooks(&gateway)
    );
    let answer = caller.post(&unknown, &fine).await;
    assert_eq!(answer.problem(), (404, "webhook_not_found"));
    let stranger = Caller::another(&gateway, "Stranger").await;
    let answer = replay(&stranger, &webhook, fine.clone()).await;
    assert_eq!(answer.problem(), (404, "app_not_found"));
    let app = stranger.post("/apps", &json!({ "name": "Theirs" })).await;
    let app = app.success(201);
    let theirs = format!(
        "/apps/{}/webhooks/{}/replay",
        text(&app, "pushable_key"),
        text(&webhook, "id")
    );
    let answer = stranger.post(&theirs, &fine).await;
    assert_eq!(answer.problem(), (404, "webhook_not_found"));
    gateway.stop().await;
}
