//! How fast a mailbox may send, and how much the gateway holds at once.

use chrono::{TimeDelta, Utc};
use mailgate_types::clock::Clock;
use serde_json::json;
use toml::{Table, Value};

use crate::support::gateway::{Builder, Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::stand_in::{self, StandIn};

/// A gateway with the stand-in at `plugin_b`, whose mailboxes have limits.
async fn limited(per_minute: i64, per_day: i64) -> (StandIn, Gateway) {
    let stand_in = StandIn::start().await;
    let gateway = with_limits(Gateway::builder(), &stand_in, per_minute, per_day)
        .start()
        .await;
    stand_in.connect(&gateway).await;
    (stand_in, gateway)
}

fn with_limits(builder: Builder, stand_in: &StandIn, per_minute: i64, per_day: i64) -> Builder {
    let mut plugins = stand_in.plugins();
    let limits = Table::from_iter([
        ("per_minute".to_owned(), Value::Integer(per_minute)),
        ("per_day".to_owned(), Value::Integer(per_day)),
    ]);
    plugins["plugin_b"]
        .as_table_mut()
        .unwrap()
        .insert("limits".to_owned(), Value::Table(limits));
    // A fast machine sends more at once than a key may save up.
    builder
        .plugins(plugins)
        .set("LIMITS__REQUESTS_BURST", 1_000)
}

async fn advance_to_next_attempt(gateway: &Gateway) {
    let at: chrono::DateTime<Utc> = sqlx::query_scalar("SELECT max(next_attempt_at) FROM spool")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    gateway.clock.advance(at - gateway.clock.now());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_exceeds_the_minute_waits_in_the_queue() {
    // A third of the minute's messages may go at once.
    let (stand_in, gateway) = limited(6, 0).await;
    let mut queued = 0;
    for _ in 0..5 {
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        match status {
            200 => {}
            202 => {
                queued += 1;
                assert_eq!(answer["retry_count"], 0);
                let why = answer["error"].as_str().unwrap();
                assert!(why.contains("limit per minute"), "{why}");
            }
            _ => panic!("{status} {answer}"),
        }
    }
    assert!((2..=3).contains(&queued), "{queued} were queued");
    assert_eq!(stand_in.submission.messages().len(), 5 - queued);
    // Another mailbox is not concerned.
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    for _ in 0..6 {
        if gateway.spooled().await > 0 {
            advance_to_next_attempt(&gateway).await;
            gateway.clock.advance(TimeDelta::seconds(30));
        }
        gateway
            .eventually("a queued message's turn", async |gateway| {
                let due: i64 =
                    sqlx::query_scalar("SELECT count(*) FROM spool WHERE next_attempt_at <= $1")
                        .bind(gateway.clock.now())
                        .fetch_one(&mut gateway.database().await)
                        .await
                        .unwrap();
                due == 0
            })
            .await;
    }
    gateway
        .eventually("the queue's end", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
    assert_eq!(stand_in.submission.messages().len(), 5);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_wait_for_their_turn_get_it() {
    let (stand_in, gateway) = limited(30, 100).await;
    let gateway = std::sync::Arc::new(gateway);
    let mut told = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let gateway = gateway.clone();
        told.spawn(async move { stand_in::send(&gateway, "bob@example.com").await.0 });
    }
    let told = told.join_all().await;
    let queued = told.iter().filter(|status| **status == 202).count();
    assert!(queued > 20, "{queued} were queued");
    // The queue is as long as its messages take, a minute and some; those that wait again wait half a
    // minute more.
    for _ in 0..6 {
        gateway.clock.advance(TimeDelta::seconds(30));
        gateway
            .eventually("a queued message's turn", async |gateway| {
                let due: i64 =
                    sqlx::query_scalar("SELECT count(*) FROM spool WHERE next_attempt_at <= $1")
                        .bind(gateway.clock.now())
                        .fetch_one(&mut gateway.database().await)
                        .await
                        .unwrap();
                due == 0
            })
            .await;
    }
    assert_eq!(stand_in.submission.messages().len(), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_scheduled_messages_is_in_nobodys_way() {
    let (_stand_in, gateway) = limited(60, 0).await;
    let send_at = (gateway.clock.now() + TimeDelta::hours(1)).to_rfc3339();
    let schedule = async |plugin: &str| {
        let fields = json!({ "to": "bob@example.com", "subject": "Hello", "body": "Hi",
                             "plugin": plugin, "send_at": send_at });
        let (status, answer) = gateway.send(fields).await;
        assert_eq!(status, 202, "{answer}");
    };
    for _ in 0..120 {
        schedule("plugin_b").await;
    }
    schedule("plugin_a").await;
    gateway.clock.advance(TimeDelta::hours(1));
    gateway
        .eventually("the other mailbox's message", async |gateway| {
            gateway.arrived().await.len() == 1
        })
        .await;
    assert!(gateway.spooled().await > 60, "the others wait");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_message_gets_its_turn_between_submissions() {
    let (stand_in, gateway) = limited(12, 0).await;
    let schedule = json!({ "to": "ada@example.com", "subject": "Hello", "body": "Hi", "plugin": "plugin_b",
                           "send_at": (gateway.clock.now() + TimeDelta::hours(1)).to_rfc3339() });
    assert_eq!(gateway.send(schedule).await.0, 202);
    gateway
        .clock
        .advance(TimeDelta::hours(1) - TimeDelta::milliseconds(1));
    // As submissions leave it that take every turn they get: the next is beyond their patience of 5 s.
    assert_eq!(stand_in::send(&gateway, "bob@example.com").await.0, 200);
    sqlx::query("UPDATE mailbox_pace SET next_turn = $1")
        .bind(gateway.clock.now() + TimeDelta::milliseconds(9_900))
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(stand_in::send(&gateway, "bob@example.com").await.0, 202);
    gateway.clock.advance(TimeDelta::milliseconds(1));
    gateway
        .eventually("the scheduled message", async |_| {
            stand_in.submission.messages().len() == 2
        })
        .await;
    gateway
        .eventually("the submission that waits alone", async |gateway| {
            gateway.spooled().await == 1
        })
        .await;
    assert_eq!(stand_in.submission.messages().len(), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_day_is_shared_by_replicas_and_ends() {
    let (stand_in, gateway) = limited(0, 3).await;
    let replica = with_limits(gateway.replica(), &stand_in, 0, 3)
        .start()
        .await;
    // The replica's door knows the first gateway's app by its keys.
    let mut told = Vec::new();
    for turn in 0..5 {
        let base = if turn % 2 == 0 {
            &gateway.daemon.base_url
        } else {
            &replica.daemon.base_url
        };
        let response = gateway
            .http
            .post(format!("{base}/send"))
            .header("x-send-key", gateway.app.send_key.expose())
            .json(&json!({
                "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com",
                "subject": "Hello", "body": "Hi", "plugin": "plugin_b",
            }))
            .send()
            .await
            .unwrap();
        told.push(response.status().as_u16());
    }
    assert_eq!(told, [200, 200, 200, 202, 202]);
    replica.stop().await;
    advance_to_next_attempt(&gateway).await;
    gateway
        .eventually("the next day", async |gateway| gateway.spooled().await == 0)
        .await;
    assert_eq!(stand_in.submission.messages().len(), 5);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_has_had_enough_is_not_asked_again() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    (stand_in.submission).once(Stage::Mail, Answer::reply("550 5.4.5 Daily limit exceeded"));
    for _ in 0..3 {
        let (status, answer) = stand_in::send(&gateway, "bob@example.com").await;
        assert_eq!(status, 202, "{answer}");
    }
    assert_eq!(stand_in.submission.count("MAIL"), 1);
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    gateway.clock.advance(TimeDelta::hours(6));
    gateway
        .eventually("the mailbox's turn", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
    assert_eq!(stand_in.submission.messages().len(), 3);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_at_once_is_refused_at_once_and_recovers() {
    let gateway = Gateway::builder()
        .set("LIMITS__MESSAGE_BYTES", 1_000_000)
        .set("LIMITS__IN_FLIGHT_BYTES", 4_000_000)
        .start()
        .await;
    // Slow ones keep what they have.
    let hold = gateway.sandbox.slow.hold();
    let large = "x".repeat(900_000);
    let mut answers = tokio::task::JoinSet::new();
    let gateway = std::sync::Arc::new(gateway);
    for _ in 0..6 {
        let (gateway, large) = (gateway.clone(), large.clone());
        answers.spawn(async move {
            let fields = json!({ "to": "slow@example.com", "subject": "Hello", "body": large });
            gateway.send(fields).await
        });
    }
    let mut told = vec![answers.join_next().await.unwrap().unwrap()];
    drop(hold);
    told.extend(answers.join_all().await);
    let sent = told.iter().filter(|(status, _)| *status == 200).count();
    let refused: Vec<_> = told.iter().filter(|(status, _)| *status == 503).collect();
    assert_eq!(sent + refused.len(), 6, "{told:?}");
    assert!(sent >= 1 && !refused.is_empty(), "{sent} were sent");
    assert!(refused.iter().all(|(_, body)| body["code"] == "overloaded"));
    assert_eq!(gateway.arrived().await.len(), sent);
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_by_smtp_that_finds_no_room_stays_with_its_client() {
    let gateway = Gateway::builder()
        .set("LIMITS__MESSAGE_BYTES", 1_000_000)
        .set("LIMITS__IN_FLIGHT_BYTES", 4_000_000)
        .start()
        .await;
    let line = format!("{}\r\n", "x".repeat(76));
    let head = format!("From: {MAILBOX}\r\nTo: bob@example.com\r\nSubject: Hello\r\n\r\n");
    let body = line.repeat(11_500);
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = SmtpClient::authenticated(&gateway).await;
        client.begin_data("bob@example.com").await;
        client.write(head.as_bytes()).await;
        client.write(body.as_bytes()).await;
        clients.push(client);
    }
    let mut refused = 0;
    for client in &mut clients {
        client.write(b".\r\n").await;
        let reply = client.reply().await;
        if reply.starts_with("451 4.3.1 ") {
            refused += 1;
        } else {
            assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
        }
    }
    assert!((1..5).contains(&refused), "{refused} were refused");
    let mut client = SmtpClient::authenticated(&gateway).await;
    let small = format!("{head}Hi");
    let reply = client.submit("bob@example.com", small.as_bytes()).await;
    assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
    gateway.stop().await;
}
