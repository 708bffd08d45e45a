//! What one send key does with its rate and its names, it doesn't do to the others; and a stored answer is for keys that
//! may send from its mailbox.

use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use mailgate_types::plugin::Plugin;

use super::*;
use crate::support::database;

const BEA: &str = "bea@sandbox.example";
const NOT_ALLOWED: (u16, &str) = (403, "mailbox_not_allowed");
const NOT_AUTHORIZED: &str = "550 5.7.1 From address not authorized";

/// A gateway whose app has a second mailbox, and an additional send key: its id and itself.
async fn with_a_key() -> (Gateway, String, String) {
    add_key(Gateway::start().await).await
}

async fn add_key(gateway: Gateway) -> (Gateway, String, String) {
    sqlx::query("UPDATE apps SET multilink = true")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway.clock.advance(TimeDelta::seconds(1));
    gateway.connect(None, Plugin::B, BEA).await;
    let created = create(&gateway, &json!({ "name": "Other" })).await;
    let (id, key) = (text(&created, "id"), text(&created, "send_key"));
    let (id, key) = (id.to_owned(), key.to_owned());
    (gateway, id, key)
}

/// `POST /send` under a name, with further fields.
async fn named(gateway: &Gateway, key: &str, name: &str, further: &Value) -> Answer {
    let mut body = json!({
        "pk": gateway.app.pushable_key.expose(),
        "to": "bob@example.com", "subject": "Hello", "body": "Hi.",
    });
    for (field, value) in further.as_object().unwrap() {
        body[field] = value.clone();
    }
    let request = anonymous(gateway, Method::POST, "/send").header("x-send-key", key);
    Answer::to(request.header("idempotency-key", name).json(&body)).await
}

fn is_replayed(answer: &Answer) -> bool {
    answer.headers.contains_key("idempotent-replayed")
}

/// A message by SMTP under a name.
async fn submit_named(client: &mut SmtpClient, from: &str, to: &str, name: &str) -> String {
    let content =
        format!("From: {from}\r\nTo: {to}\r\nSubject: Hello\r\nIdempotency-Key: {name}\r\n\r\nHi.");
    client.submit(to, content.as_bytes()).await
}

/// Restricts the key to the second mailbox.
async fn restrict(gateway: &Gateway, id: &str) {
    let mailbox: uuid::Uuid = sqlx::query_scalar("SELECT id FROM mailboxes WHERE email = $1")
        .bind(BEA)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    let mailbox = mailgate_types::ids::CredentialId(mailbox).to_string();
    let owner = Caller::owner(gateway).await;
    let path = format!("{}/{id}", keys_path(gateway));
    let fields = json!({ "credential_ids": [mailbox] });
    owner.put(&path, &fields).await.success(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_calls_too_often_leaves_the_others_their_rate() {
    let gateway = Gateway::builder()
        .set("LIMITS__REQUESTS_PER_SECOND", 1)
        .set("LIMITS__REQUESTS_BURST", 4)
        .start()
        .await;
    let created = create(&gateway, &json!({ "name": "Other" })).await;
    let (main, other) = (gateway.app.send_key.expose(), text(&created, "send_key"));
    let mut client = session(&gateway, &gateway.app.slug, other).await;
    let mut refused = (0, 0);
    for _ in 0..6 {
        refused.0 += usize::from(send(&gateway, other).await.status == 429);
        let reply = submit(&mut client, MAILBOX).await;
        refused.1 += usize::from(reply.starts_with("451 4.7.0 Too many messages"));
    }
    assert!(refused.0 > 0 && refused.1 > 0, "by both doors: {refused:?}");
    for _ in 0..2 {
        send(&gateway, main).await.success(200);
        let mut client = session(&gateway, &gateway.app.slug, main).await;
        let reply = submit(&mut client, MAILBOX).await;
        assert!(reply.starts_with("250 "), "{reply}");
    }
    // The main key's own is bounded all the same.
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(send(&gateway, main).await.status);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_key_has_its_own_names() {
    let (gateway, _, key) = with_a_key().await;
    let main = gateway.app.send_key.expose();
    // What one key has taken first, by either door, and with another message too.
    for (name, first, second) in [("order 1", &*key, main), ("order 2", main, &*key)] {
        let one = named(&gateway, first, name, &json!({})).await;
        for further in [json!({}), json!({ "subject": "Another" })] {
            let two = named(&gateway, second, name, &further).await;
            if further == json!({}) {
                assert!(!is_replayed(&two), "{name}: {}", two.body);
                assert_ne!(one.body["log_id"], two.success(200)["log_id"]);
            } else {
                assert_eq!(two.problem(), (422, "idempotency_key_reused"));
            }
        }
        for key in [first, second] {
            let again = named(&gateway, key, name, &json!({})).await;
            assert!(is_replayed(&again), "{name}: {}", again.body);
        }
    }
    assert_eq!(gateway.sandbox.inbox.count(), 4);
    let mut clients = [
        session(&gateway, &gateway.app.slug, main).await,
        session(&gateway, &gateway.app.slug, &key).await,
    ];
    let mut replies = Vec::new();
    for _ in 0..2 {
        for client in &mut clients {
            let reply = submit_named(client, MAILBOX, "bob@example.com", "order 3").await;
            assert!(reply.starts_with("250 "), "{reply}");
            replies.push(reply);
        }
    }
    assert_eq!(replies[..2], replies[2..]);
    assert_ne!(replies[0], replies[1]);
    assert_eq!(gateway.sandbox.inbox.count(), 6);
    // The longest one, and what looks like another key's.
    let long = "x".repeat(255);
    named(&gateway, &key, &long, &json!({})).await.success(200);
    assert!(is_replayed(&named(&gateway, &key, &long, &json!({})).await));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_and_scheduled_messages_have_names_of_their_keys() {
    let (gateway, _, key) = with_a_key().await;
    let main = gateway.app.send_key.expose();
    let later = json!({ "send_at": gateway.clock.now() + TimeDelta::hours(1) });
    let deferred = json!({ "to": "tempfail@example.com" });
    for (name, further) in [("later", &later), ("deferred", &deferred)] {
        let mut ids = Vec::new();
        for key in [main, &key] {
            let first = named(&gateway, key, name, further).await;
            assert!(!is_replayed(&first), "{name}: {}", first.body);
            let again = named(&gateway, key, name, further).await;
            assert!(is_replayed(&again), "{name}: {}", again.body);
            let id = again.success(202)["log_id"].clone();
            assert_eq!(first.success(202)["log_id"], id);
            ids.push(id);
        }
        assert_ne!(ids[0], ids[1]);
    }
    // When they have left, too.
    gateway.clock.advance(TimeDelta::hours(2));
    gateway
        .eventually("the later ones have left", async |gateway| {
            gateway.spooled().await == 2 && gateway.sandbox.inbox.count() == 2
        })
        .await;
    for key in [main, &key] {
        let again = named(&gateway, key, "later", &later).await;
        assert!(is_replayed(&again), "{}", again.body);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_answer_is_for_keys_that_may_send_from_its_mailbox() {
    let (gateway, id, key) = with_a_key().await;
    let deferred = json!({ "to": "tempfail@example.com" });
    let later = json!({ "send_at": gateway.clock.now() + TimeDelta::hours(1) });
    let cases = [("sent", json!({})), ("waiting", deferred), ("later", later)];
    let own = json!({ "from": BEA });
    for (name, further) in &cases {
        let answer = named(&gateway, &key, name, further).await;
        assert!(answer.status < 300, "{}", answer.body);
    }
    named(&gateway, &key, "own", &own).await.success(200);
    let mut client = session(&gateway, &gateway.app.slug, &key).await;
    for (from, to) in [
        (MAILBOX, "bob@example.com"),
        (MAILBOX, "tempfail@example.com"),
        (BEA, "bob@example.com"),
    ] {
        let reply = submit_named(&mut client, from, to, &format!("{from} {to}")).await;
        assert!(reply.starts_with("250 "), "{reply}");
    }
    restrict(&gateway, &id).await;
    for (name, further) in &cases {
        let answer = named(&gateway, &key, name, further).await;
        assert_eq!(answer.problem(), NOT_ALLOWED, "{name}");
        let text = answer.body.to_string();
        assert!(!text.contains(MAILBOX) && !text.contains("log_"), "{text}");
    }
    assert!(is_replayed(&named(&gateway, &key, "own", &own).await));
    for (from, to, is_answered) in [
        (MAILBOX, "bob@example.com", false),
        (MAILBOX, "tempfail@example.com", false),
        (BEA, "bob@example.com", true),
    ] {
        let reply = submit_named(&mut client, from, to, &format!("{from} {to}")).await;
        if is_answered {
            assert!(reply.starts_with("250 "), "{reply}");
        } else {
            assert_eq!(reply, NOT_AUTHORIZED, "{from} {to}");
        }
    }
    // Nor once the time of a scheduled one has come, and whatever its end was.
    gateway.clock.advance(TimeDelta::hours(2));
    let (name, further) = &cases[2];
    let answer = named(&gateway, &key, name, further).await;
    assert_eq!(answer.problem(), NOT_ALLOWED);
    gateway.stop().await;
}

/// A gateway of the release before, which says nothing of names.
const OF_BEFORE: &str = "INSERT INTO gateways (id, started_at, lease_until)
                         VALUES (gen_random_uuid(), now(), now() + interval '1 hour')";

/// Once none of the release before is left, a name is looked up only with its message.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_gives_names_is_remembered_as_any_other() {
    let (gateway, _, key) = with_a_key().await;
    gateway
        .eventually("what is remembered", async |gateway| {
            named(gateway, &key, &uuid::Uuid::new_v4().to_string(), &json!({}))
                .await
                .success(200);
            // Who isn't remembered is proven by what stands in here.
            let mut database = gateway.database().await;
            let locked = sqlx::raw_sql("BEGIN; LOCK TABLE send_keys IN ACCESS EXCLUSIVE MODE");
            locked.execute(&mut database).await.unwrap();
            let answer = named(gateway, &key, "a name", &json!({})).await;
            answer.status == 200
        })
        .await;
    gateway.stop().await;
}

/// The release before knew names of the app alone. What it took is not sent again.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_the_release_before_has_stored_still_stands() {
    // As during an upgrade: the gateway that has these names still runs.
    let database = database::create().await;
    sqlx::query(OF_BEFORE)
        .execute(&mut database::connect(&database).await)
        .await
        .unwrap();
    let gateway = Gateway::builder().database(&database).start().await;
    let (gateway, _, key) = add_key(gateway).await;
    let main = gateway.app.send_key.expose();
    let later = json!({ "send_at": gateway.clock.now() + TimeDelta::hours(1) });
    named(&gateway, &key, "old", &json!({})).await.success(200);
    named(&gateway, &key, "later", &later).await.success(202);
    named(&gateway, main, "new", &json!({})).await.success(200);
    let before = "UPDATE idempotency_keys SET key = split_part(key, E'\\x1f', 2), is_of_key = false
                  WHERE key LIKE '%' || E'\\x1f' || '%'";
    let changed = sqlx::query(before)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(changed.rows_affected(), 2);
    for (name, further) in [("old", &json!({})), ("later", &later)] {
        let again = named(&gateway, &key, name, further).await;
        assert!(is_replayed(&again), "{name}: {}", again.body);
    }
    // Another message under that name, and a name of the main key's since, are free.
    let another = json!({ "subject": "Another" });
    named(&gateway, &key, "old", &another).await.success(200);
    let fresh = named(&gateway, &key, "new", &json!({})).await;
    assert!(!is_replayed(&fresh), "{}", fresh.body);
    gateway.clock.advance(TimeDelta::hours(2));
    let again = named(&gateway, &key, "later", &later).await;
    assert!(is_replayed(&again), "{}", again.body);
    gateway.stop().await;
}
