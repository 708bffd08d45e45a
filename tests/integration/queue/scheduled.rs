//! Messages that leave at a time of their sender's own.

use std::collections::HashSet;

use chrono::{DateTime, Days, TimeDelta, Utc};
use mailgate_types::clock::Clock;
use mailgate_types::plugin::Plugin;
use reqwest::Method;
use serde_json::{Value, json};

use super::*;
use crate::support::caller::{anonymous, has_just};
use crate::support::gateway::MAILBOX;
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::StandIn;

const HOUR: TimeDelta = TimeDelta::hours(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_message_by_rest_leaves_at_its_time_and_not_before() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let send_at = ahead(&gateway, HOUR);
    let message = json!({
        "to": "bob@example.com", "subject": "Later", "body": "It works.", "send_at": send_at,
        "cc": ["carol@example.com"],
    });
    let (status, answer) = gateway.send(message).await;
    assert_eq!(status, 202, "{answer}");
    has_just(
        &answer,
        vec![
            "status",
            "from",
            "to",
            "plugin",
            "message_id",
            "log_id",
            "send_at",
        ],
    );
    assert_eq!(answer["status"], "scheduled");
    assert_eq!(answer["send_at"], send_at);
    assert_eq!(answer["from"], MAILBOX);
    let id = text(&answer, "log_id");

    // It is shown by itself and where it is asked for, and nowhere else.
    let shown = owner.get(&format!("/logs/{id}")).await.success(200);
    assert_eq!(shown["status"], "scheduled");
    assert_eq!(
        (&shown["send_at"], &shown["sent_at"]),
        (&answer["send_at"], &answer["send_at"])
    );
    assert_eq!(shown["message_id"], answer["message_id"]);
    assert_eq!(shown["subject"], "Later");
    assert_eq!(shown["cc_addresses"], json!(["carol@example.com"]));
    assert_eq!(
        (&shown["attempts"], &shown["webhook_deliveries"]),
        (&json!([]), &json!([]))
    );
    let listed = owner.get("/logs?status=scheduled").await.success(200);
    assert_eq!(
        (&listed["total"], &listed["has_more"]),
        (&json!(1), &json!(false))
    );
    assert_eq!(listed["logs"][0]["id"], id);
    for path in [
        "/logs",
        "/logs?status=failed_temp",
        "/logs?to_date=2200-01-01",
    ] {
        let listed = owner.get(path).await.success(200);
        assert_eq!(
            (&listed["total"], &listed["logs"]),
            (&json!(0), &json!([])),
            "{path}"
        );
    }
    assert_eq!(usage(&gateway).await, 1);

    gateway.clock.advance(HOUR - TimeDelta::seconds(10));
    looked_at(&gateway).await;
    assert_eq!(
        gateway.arrived().await.len(),
        1,
        "only what was looked at has left"
    );
    gateway.clock.advance(TimeDelta::seconds(10));
    emptied(&gateway).await;
    let arrived = gateway.arrived().await;
    assert_eq!(arrived.len(), 2);
    let content = String::from_utf8_lossy(&arrived[1]);
    assert!(content.contains(text(&answer, "message_id")), "{content}");
    let due: DateTime<Utc> = send_at.parse().unwrap();
    let date = format!("Date: {}\r\n", due.to_rfc2822());
    assert!(content.contains(&date), "{date} {content}");

    let shown = owner.get(&format!("/logs/{id}")).await.success(200);
    assert_eq!(
        (&shown["status"], &shown["send_at"]),
        (&json!("sent"), &Value::Null)
    );
    assert_eq!(shown["sent_at"], send_at);
    let listed = owner.get("/logs?status=scheduled").await.success(200);
    assert_eq!(listed["total"], 0);
    assert_eq!(owner.get("/logs").await.success(200)["total"], 2);
    assert_eq!(usage(&gateway).await, 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_by_smtp_names_its_time_in_a_header_that_is_taken_off() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let due: DateTime<Utc> = ahead(&gateway, HOUR).parse().unwrap();
    let due = DateTime::from_timestamp(due.timestamp(), 0).unwrap();
    for (header, date) in [
        (due.to_rfc3339(), "Date: Mon, 1 Jan 2024 00:00:00 +0000\r\n"),
        (due.to_rfc2822(), ""),
    ] {
        let content = format!(
            "From: {MAILBOX}\r\n{date}X-Mailgate-Send-At: {header}\r\nSubject: x\r\n\r\nHi\r\n"
        );
        let reply = client.submit("bob@example.com", content.as_bytes()).await;
        let expected = format!("scheduled for {}", due.format("%Y-%m-%dT%H:%M:%SZ"));
        assert!(
            reply.starts_with("250 2.0.0 log_") && reply.ends_with(&expected),
            "{reply}"
        );
    }
    let twice = "X-Mailgate-Send-At: 2030-01-01T00:00:00Z\r\n".repeat(2);
    for headers in [
        &twice,
        "X-Mailgate-Send-At: tomorrow\r\n",
        "X-Mailgate-Send-At:\r\n",
        "X-Mailgate-Send-At: 2020-01-01T00:00:00Z\r\n",
        "X-Mailgate-Send-At: 2220-01-01T00:00:00Z\r\n",
    ] {
        let content = format!("From: {MAILBOX}\r\n{headers}Subject: x\r\n\r\nHi\r\n");
        let reply = client.submit("bob@example.com", content.as_bytes()).await;
        assert!(
            reply.starts_with("550 5.6.0 X-Mailgate-Send-At m"),
            "{headers}: {reply}"
        );
    }
    assert_eq!(gateway.spooled().await, 2);
    gateway.clock.advance(HOUR);
    emptied(&gateway).await;
    let arrived = gateway.arrived().await;
    assert_eq!(arrived.len(), 2);
    let ours = format!("Date: {}\r\n", due.to_rfc2822());
    for content in &arrived {
        let content = String::from_utf8_lossy(content);
        assert!(!content.contains("X-Mailgate-Send-At"), "{content}");
        assert_eq!(content.matches("Date: ").count(), 1, "{content}");
        let has_date = content.contains("Date: Mon, 1 Jan 2024") || content.contains(&ours);
        assert!(has_date, "{content}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_is_none_or_not_ahead_is_refused() {
    let gateway = Gateway::start().await;
    let message = |send_at: Value| json!({ "to": "bob@example.com", "subject": "x", "body": "x", "send_at": send_at });
    let month = TimeDelta::days(30);
    let wrong = [
        json!(ahead(&gateway, TimeDelta::zero())),
        json!(ahead(&gateway, -HOUR)),
        json!(ahead(&gateway, month + TimeDelta::minutes(1))),
        json!("2030-01-01"),
        json!("2030-01-01T00:00:00"),
        json!(""),
        json!(1_900_000_000),
        json!(true),
    ];
    for send_at in wrong {
        let (status, answer) = gateway.send(message(send_at.clone())).await;
        assert_eq!(status, 422, "{send_at}: {answer}");
        assert_eq!(
            answer["errors"][0]["field"], "send_at",
            "{send_at}: {answer}"
        );
    }
    // By its own field, and by no header.
    let mut with_header = message(Value::Null);
    with_header["headers"] = json!({ "X-Mailgate-Send-At": ahead(&gateway, HOUR) });
    let (status, answer) = gateway.send(with_header).await;
    assert_eq!(
        (status, &answer["errors"][0]["field"]),
        (422, &json!("headers.X-Mailgate-Send-At"))
    );
    // Null is as good as none.
    assert_eq!(gateway.send(message(Value::Null)).await.0, 200);
    let (status, answer) = gateway
        .send(message(json!(ahead(
            &gateway,
            month - TimeDelta::minutes(1)
        ))))
        .await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(gateway.spooled().await, 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_filters_of_what_is_scheduled() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    gateway
        .connect(None, Plugin::B, "grace@sandbox.example")
        .await;
    let mut ids = Vec::new();
    // Taken in another order than they leave.
    for hours in [5, 2, 4, 1, 3] {
        let plugin = if hours % 2 == 0 {
            "plugin_b"
        } else {
            "plugin_a"
        };
        let message = json!({
            "to": "bob@example.com", "subject": "x", "body": "x", "plugin": plugin,
            "send_at": ahead(&gateway, TimeDelta::hours(24 * hours)),
        });
        let (status, answer) = gateway.send(message).await;
        assert_eq!(status, 202, "{answer}");
        ids.push((hours, text(&answer, "log_id").to_owned()));
    }
    ids.sort_unstable();
    let ids: Vec<&str> = ids.iter().map(|(_, id)| id.as_str()).collect();
    let page = async |query: &str| {
        let page = owner.get(&format!("/logs?status=scheduled{query}")).await;
        let page = page.success(200);
        let logs = page["logs"].as_array().unwrap().iter();
        let found: Vec<String> = logs.map(|log| text(log, "id").to_owned()).collect();
        let more = page["has_more"].as_bool().unwrap();
        (found, page["total"].as_i64().unwrap(), more)
    };
    let expected = |ids: &[&str], total: i64, more: bool| {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        (ids, total, more)
    };
    assert_eq!(page("").await, expected(&ids, 5, false));
    assert_eq!(page("&limit=2").await, expected(&ids[..2], 5, true));
    assert_eq!(
        page("&limit=2&offset=2").await,
        expected(&ids[2..4], 5, true)
    );
    assert_eq!(
        page("&limit=2&offset=4").await,
        expected(&ids[4..], 5, false)
    );
    assert_eq!(page("&offset=5").await, expected(&[], 5, false));
    let even = [ids[1], ids[3]];
    assert_eq!(
        page("&plugin=plugin_b_alt").await,
        expected(&even, 2, false)
    );
    let slug = &gateway.app.slug;
    assert_eq!(
        page(&format!("&app_id={slug}")).await,
        expected(&ids, 5, false)
    );
    assert_eq!(page("&app_id=another").await, expected(&[], 0, false));
    let day = (gateway.clock.now().date_naive() + Days::new(3)).to_string();
    let of_day = page(&format!("&from_date={day}&to_date={day}")).await;
    assert_eq!(of_day, expected(&ids[2..3], 1, false));
    assert_eq!(
        page(&format!("&from_date={day}")).await,
        expected(&ids[2..], 3, false)
    );

    // Nobody else's.
    let stranger = Caller::another(&gateway, "Stranger").await;
    let theirs = stranger.get("/logs?status=scheduled").await.success(200);
    assert_eq!(theirs["total"], 0);
    let shown = stranger.get(&format!("/logs/{}", ids[0])).await;
    assert_eq!(shown.problem(), (404, "log_not_found"));
    let all: HashSet<&str> = ids.into_iter().collect();
    assert_eq!(all.len(), 5);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_key_replays_the_answer_and_sends_nothing_twice() {
    let gateway = Gateway::start().await;
    let send_at = ahead(&gateway, HOUR);
    let send = async |key: &str, to: &str| {
        let request = anonymous(&gateway, Method::POST, "/send")
            .header("x-send-key", gateway.app.send_key.expose())
            .header("idempotency-key", key);
        let body = json!({
            "pk": gateway.app.pushable_key.expose(), "to": to, "subject": "x", "body": "x",
            "send_at": send_at,
        });
        Answer::to(request.json(&body)).await
    };
    let first = send("a", "bob@example.com").await;
    assert_eq!(first.status, 202, "{}", first.body);
    let twins = futures_util::future::join_all((0..10).map(|_| send("a", "bob@example.com"))).await;
    for twin in twins {
        assert_eq!((twin.status, &twin.body), (202, &first.body));
        assert_eq!(twin.header("idempotent-replayed"), "true");
    }
    let other = send("a", "eve@example.com").await;
    assert_eq!(other.problem(), (422, "idempotency_key_reused"));
    // Many that come together are one too.
    let twins = futures_util::future::join_all((0..20).map(|_| send("b", "bob@example.com"))).await;
    let ids: HashSet<&str> = twins
        .iter()
        .map(|twin| text(&twin.body, "log_id"))
        .collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(gateway.spooled().await, 2);
    gateway.clock.advance(HOUR);
    emptied(&gateway).await;
    assert_eq!(gateway.arrived().await.len(), 2);
    // The first answer stands, whatever has become of the message.
    let again = send("a", "bob@example.com").await;
    assert_eq!((again.status, &again.body), (202, &first.body));
    // Without an answer to repeat, the time has passed.
    let late = send("c", "bob@example.com").await;
    assert_eq!(late.wrong_fields(), ["send_at"]);
    let other = send("a", "eve@example.com").await;
    assert_eq!(other.problem(), (422, "idempotency_key_reused"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_counts_among_what_waits_and_is_refused_past_the_quota() {
    let gateway = Gateway::builder()
        .set("LIMITS__WAITING_MESSAGES_PER_APP", 2)
        .start()
        .await;
    let owner = Caller::owner(&gateway).await;
    let first = scheduled(&gateway, "bob@example.com", HOUR).await;
    waiting(&gateway).await;
    assert_eq!(usage(&gateway).await, 2);
    for _ in 0..2 {
        let (status, answer) = schedule(&gateway, "bob@example.com", HOUR).await;
        assert_eq!(
            (status, &answer["code"]),
            (429, &json!("waiting_quota_full"))
        );
        assert_eq!(gateway.send_to("tempfail@example.com").await.0, 429);
    }
    // What leaves immediately is not concerned.
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    assert_eq!(usage(&gateway).await, 2);
    cancel(&owner, &first).await.success(200);
    assert_eq!(usage(&gateway).await, 1);
    scheduled(&gateway, "bob@example.com", HOUR).await;
    assert_eq!(usage(&gateway).await, 2);
    // A first attempt that fails changes nothing of what is counted.
    run(
        &gateway,
        "UPDATE spool SET recipients = '{tempfail@example.com}'",
    )
    .await;
    gateway.clock.advance(HOUR);
    gateway
        .eventually("its first attempt", async |gateway| {
            let logged = "SELECT count(*) FROM spool WHERE is_logged AND send_at IS NOT NULL
                          AND state = 'deferred'";
            number(gateway, logged).await == 1
        })
        .await;
    assert_eq!(usage(&gateway).await, 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_what_is_scheduled_to_the_message() {
    const MESSAGES: usize = 40;
    let builder = Gateway::builder().set("LIMITS__REQUESTS_BURST", 1_000);
    let (stand_in, gateway) = StandIn::with(builder).await;
    let ids = futures_util::future::join_all((0..MESSAGES).map(|_| async {
        let message = json!({
            "to": "bob@example.com", "subject": "x", "body": "x", "plugin": "plugin_b",
            "send_at": ahead(&gateway, HOUR),
        });
        let (status, answer) = gateway.send(message).await;
        assert_eq!(status, 202, "{answer}");
        text(&answer, "log_id").to_owned()
    }))
    .await;
    let replica = gateway.replica().plugins(stand_in.plugins()).start().await;
    replica.clock.advance(HOUR);
    gateway.clock.advance(HOUR);
    emptied(&gateway).await;
    let messages = stand_in.submission.messages();
    assert_eq!(messages.len(), MESSAGES);
    for id in &ids {
        let copies = messages.iter().filter(|message| {
            String::from_utf8_lossy(&message.content).contains(&format!("Message-ID: <{id}@"))
        });
        assert_eq!(copies.count(), 1, "{id}");
    }
    assert_eq!(
        gateway.logged().await,
        vec![("sent".to_owned(), None); MESSAGES]
    );
    assert_eq!(usage(&gateway).await, 0);
    replica.stop().await;
    gateway.stop().await;
}
