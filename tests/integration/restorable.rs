//! Subscribers whom the operator has deleted: for a week nothing of them opens anything, on any gateway, and all of it
//! does again once they are restored.

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_domain::accounts::{Deleted, SubscriberChange};
use mailgate_storage::mailboxes::{addresses, due};
use mailgate_types::audit::{Author, Credential};
use mailgate_types::clock::Clock as _;
use mailgate_types::ids::PortalSessionId;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _};
use tokio_util::sync::CancellationToken;

use crate::connecting::grants;
use crate::operator::answered;
use crate::portal::visitor::{Visitor, api_secret};
use crate::support::caller::{Answer, Caller, anonymous, path, text};
use crate::support::gateway::{Gateway, OPERATOR, create_app};
use crate::support::lock_waits::until_waiting;
use crate::support::smtp_client::SmtpClient;
use crate::support::stand_in::StandIn;

/// Deletes the gateway's subscriber in another process.
async fn delete(gateway: &Gateway) -> Value {
    let id = gateway.subscriber.to_string();
    let arguments = ["delete", &id, "--yes", "--label", "Demo"];
    answered(&gateway.database_url, &arguments).await
}

async fn restore(gateway: &Gateway) {
    let id = gateway.subscriber.to_string();
    let told = answered(&gateway.database_url, &["restore", &id]).await;
    assert_eq!(told["changed"], true, "{told}");
}

/// `POST /send` at one of the gateways that share the subscriber.
async fn send(at: &Gateway, of: &Gateway, key: &str) -> Answer {
    let body = json!({
        "pk": of.app.pushable_key.expose(), "to": "bob@example.com", "subject": "Hello", "body": "Hi",
        "plugin": "plugin_b",
    });
    let request = anonymous(at, Method::POST, "/send").json(&body);
    Answer::to(request.header("x-send-key", key)).await
}

/// `GET /me` at one of them.
async fn me(at: &Gateway, secret: &str) -> u16 {
    let request = anonymous(at, Method::GET, "/me").header("x-api-secret", secret);
    Answer::to(request).await.status
}

const MESSAGE: &[u8] = b"From: ada@sandbox.example\r\nSubject: s\r\n\r\nHi\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn no_key_opens_anything_until_the_account_is_restored() {
    let stand_in = StandIn::start().await;
    let gateway = Gateway::builder().plugins(stand_in.plugins()).start().await;
    stand_in.connect(&gateway).await;
    let replica = gateway.replica().plugins(stand_in.plugins());
    let other = replica.start().await;
    let owner = Caller::owner(&gateway).await;
    let main_secret = api_secret(&gateway).await;
    let body = json!({ "name": "Reports", "scopes": ["me:read"] });
    let additional = owner.post("/me/api-secrets", &body).await.success(201);
    let additional = text(&additional, "api_secret");
    let way = path(&gateway.app);
    let (name, none) = (json!({ "name": "Shop" }), json!({}));
    let key = owner.post(&format!("{way}/send-keys"), &name).await;
    let key = key.success(201);
    let send_keys = [gateway.app.send_key.expose(), text(&key, "send_key")];
    let session = owner.post(&format!("{way}/connect-sessions"), &none).await;
    let session = session.success(201);
    let links = [
        format!(
            "{}{}",
            gateway.daemon.base_url,
            way.replace("/apps", "/connect")
        ),
        text(&session, "url").to_owned(),
    ];
    let visitor = Visitor::signed_in(&gateway).await;
    // Every one is known to both.
    for at in [&gateway, &other] {
        for key in send_keys {
            send(at, &gateway, key).await.success(200);
        }
        for secret in [&main_secret, additional] {
            assert_eq!(me(at, secret).await, 200);
        }
    }
    let mut open = SmtpClient::authenticated(&gateway).await;
    let arrived = || stand_in.submission.messages().len();
    let sent = arrived();

    delete(&gateway).await;
    for at in [&gateway, &other] {
        for key in send_keys {
            assert_eq!(
                send(at, &gateway, key).await.problem(),
                (401, "invalid_send_key")
            );
        }
        for secret in [&main_secret, additional] {
            assert_eq!(me(at, secret).await, 401);
        }
    }
    let reply = open.submit("bob@example.com", MESSAGE).await;
    assert!(
        reply.starts_with("535 ") || reply.starts_with("421 "),
        "{reply}"
    );
    for link in &links {
        let page = reqwest::get(link).await.unwrap();
        assert_eq!(page.status(), 404, "{link}");
    }
    assert_eq!(visitor.get("/portal").await.status, 303);
    let mut again = Visitor::new(&gateway.daemon.base_url);
    assert_eq!(again.sign_in(&main_secret).await.status, 401);
    assert_eq!(arrived(), sent);

    restore(&gateway).await;
    for at in [&gateway, &other] {
        for key in send_keys {
            send(at, &gateway, key).await.success(200);
        }
        for secret in [&main_secret, additional] {
            assert_eq!(me(at, secret).await, 200);
        }
    }
    assert_eq!(arrived(), sent + 4);
    for link in &links {
        assert_eq!(reqwest::get(link).await.unwrap().status(), 200, "{link}");
    }
    assert_eq!(visitor.get("/portal").await.status, 303, "it has ended");
    assert_eq!(again.sign_in(&main_secret).await.status, 303);
    other.stop_daemon().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_held_and_leaves_after_the_restore() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let later = gateway.clock.now() + TimeDelta::minutes(10);
    let body = json!({
        "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "Hello", "body": "Hi",
        "send_at": later.to_rfc3339(),
    });
    let request = anonymous(&gateway, Method::POST, "/send").json(&body);
    let request = request.header("x-send-key", gateway.app.send_key.expose());
    let scheduled = Answer::to(request).await.success(202);
    delete(&gateway).await;
    let sent = gateway.sandbox.inbox.count();
    gateway.clock.advance(TimeDelta::minutes(11));
    gateway
        .eventually("the postponement", async |gateway| {
            let waits =
                "SELECT count(*) FROM spool WHERE state = 'deferred' AND awaits_subscription";
            let waits = sqlx::query_scalar::<_, i64>(waits);
            waits
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap()
                == 1
        })
        .await;
    // It is asked again, and waits on.
    let next = "SELECT next_attempt_at FROM spool WHERE state = 'deferred' AND awaits_subscription";
    let next = async |gateway: &Gateway| {
        sqlx::query_scalar::<_, DateTime<Utc>>(next)
            .fetch_optional(&mut gateway.database().await)
            .await
            .unwrap()
    };
    let first = next(&gateway).await.unwrap();
    gateway.clock.advance(TimeDelta::hours(20));
    gateway
        .eventually("another attempt", async |gateway| {
            next(gateway).await.is_some_and(|next| next > first)
        })
        .await;
    assert_eq!(gateway.spooled().await, 1);
    assert_eq!(gateway.sandbox.inbox.count(), sent);

    restore(&gateway).await;
    gateway
        .eventually("the message", async |gateway| gateway.spooled().await == 0)
        .await;
    assert_eq!(gateway.sandbox.inbox.count(), sent + 1);
    let log = format!("/logs/{}", text(&scheduled, "log_id"));
    assert_eq!(owner.get(&log).await.success(200)["status"], "sent");
    gateway.stop().await;
}

/// When its mailbox is next due for whatever it is asked.
async fn dues(gateway: &Gateway) -> [Option<DateTime<Utc>>; 3] {
    let query = "SELECT replies_due_at, refresh_due_at, addresses_due_at FROM mailboxes";
    let (replies, refresh, addresses) = sqlx::query_as(query)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    [replies, refresh, addresses]
}

#[tokio::test(flavor = "multi_thread")]
async fn its_mailboxes_are_asked_nothing_until_then() {
    let gateway = Gateway::start().await;
    // Its first look is over, and its addresses were asked for.
    let now = gateway.clock.now();
    gateway
        .eventually("rest", async |gateway| {
            let [replies, _, addresses] = dues(gateway).await;
            replies.is_none() && addresses.is_some_and(|due| due > now + TimeDelta::hours(1))
        })
        .await;
    let before = dues(&gateway).await;
    delete(&gateway).await;
    let year = TimeDelta::days(365);
    let shifted = before.map(|due| due.map(|due| due + year));
    assert_eq!(dues(&gateway).await, shifted);
    // Whatever makes one due meanwhile, such as a message that was under way.
    let make_due = "UPDATE mailboxes SET replies_due_at = now() - interval '1 hour',
                                         refresh_due_at = now() - interval '1 hour',
                                         addresses_due_at = now() - interval '1 hour'";
    let mut database = gateway.database().await;
    sqlx::query(make_due).execute(&mut database).await.unwrap();
    let (pool, later) = (&mut database, now + TimeDelta::hours(1));
    let looks = due::claim_reply_looks(pool, later, later, 10)
        .await
        .unwrap();
    assert!(looks.is_empty(), "{looks:?}");
    let looks = addresses::claim_due(pool, later, later, 10).await.unwrap();
    assert!(looks.is_empty(), "{looks:?}");
    let refreshes = due::claim_idle_refreshes(pool, later, later, 10).await;
    assert!(refreshes.unwrap().is_empty());
    let put_back =
        "UPDATE mailboxes SET replies_due_at = NULL, refresh_due_at = $2, addresses_due_at = $1";
    sqlx::query(put_back)
        .bind(shifted[2])
        .bind(shifted[1])
        .execute(&mut database)
        .await
        .unwrap();
    restore(&gateway).await;
    assert_eq!(dues(&gateway).await, before);
    gateway.stop().await;
}

/// Its rows as a subscriber and as apps.
async fn rows(gateway: &Gateway) -> i64 {
    let counted = "SELECT (SELECT count(*) FROM subscribers WHERE id = $1)
                          + (SELECT count(*) FROM apps WHERE subscriber_id = $1)";
    sqlx::query_scalar(counted)
        .bind(gateway.subscriber.0)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_removed_after_a_week_and_not_before() {
    let gateway = Gateway::start().await;
    let accounts = &gateway.daemon.accounts;
    let mailboxes = &gateway.daemon.mailboxes;
    let stop = CancellationToken::new();
    let deleted = accounts.delete_restorably(gateway.subscriber, OPERATOR);
    let Deleted::Until(until) = deleted.await.unwrap() else {
        panic!("it is deleted");
    };
    let length = until - gateway.clock.now();
    assert!(
        length > TimeDelta::days(7) - TimeDelta::minutes(1),
        "{length}"
    );
    gateway
        .clock
        .advance(TimeDelta::days(7) - TimeDelta::minutes(2));
    mailboxes.delete_due_subscribers(&stop).await.unwrap();
    assert_eq!(rows(&gateway).await, 2);
    gateway.clock.advance(TimeDelta::minutes(3));
    mailboxes.delete_due_subscribers(&stop).await.unwrap();
    assert_eq!(rows(&gateway).await, 0);
    gateway
        .eventually("the revoked grant", async |gateway| grants(gateway) == 0)
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_under_way_is_waited_for_and_nothing_is_removed() {
    let gateway = Gateway::start().await;
    // A second one, which is removed whatever becomes of the first.
    let (other, _) = create_app(&gateway.daemon, "Another").await;
    let mut connection = gateway.database().await;
    // The gateway's own worker meets nothing that is due before this lock.
    let later = "UPDATE subscribers SET deletion_due_at = now() + interval '7 days'";
    connection.execute(later).await.unwrap();
    let mut restoring = connection.begin().await.unwrap();
    sqlx::query("SELECT FROM subscribers WHERE id = $1 FOR UPDATE")
        .bind(gateway.subscriber.0)
        .execute(&mut *restoring)
        .await
        .unwrap();
    gateway.clock.advance(TimeDelta::days(8));
    let mailboxes = gateway.daemon.mailboxes.clone();
    let removal = tokio::spawn(async move {
        let stop = CancellationToken::new();
        mailboxes.delete_due_subscribers(&stop).await
    });
    until_waiting(&gateway, "FROM subscribers WHERE id = $1 FOR UPDATE", 1).await;
    sqlx::query("UPDATE subscribers SET deletion_due_at = NULL WHERE id = $1")
        .bind(gateway.subscriber.0)
        .execute(&mut *restoring)
        .await
        .unwrap();
    restoring.commit().await.unwrap();
    removal.await.unwrap().unwrap();
    assert_eq!(rows(&gateway).await, 2);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM subscribers WHERE id = $1")
        .bind(other.0)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(left, 0);
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_can_t_be_removed_holds_up_no_other() {
    let gateway = Gateway::start().await;
    let (other, _) = create_app(&gateway.daemon, "Another").await;
    let mut database = gateway.database().await;
    for statement in [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN IF OLD.label = 'Demo' THEN RAISE 'no'; END IF; RETURN OLD; END $$",
        "CREATE TRIGGER refuse BEFORE DELETE ON subscribers FOR EACH ROW EXECUTE FUNCTION refuse()",
        "UPDATE subscribers SET deletion_due_at = now() - interval '1 minute'",
    ] {
        database.execute(statement).await.unwrap();
    }
    let stop = CancellationToken::new();
    let mailboxes = &gateway.daemon.mailboxes;
    mailboxes.delete_due_subscribers(&stop).await.unwrap();
    let left: Vec<uuid::Uuid> = sqlx::query_scalar("SELECT id FROM subscribers")
        .fetch_all(&mut database)
        .await
        .unwrap();
    assert_eq!(left, [gateway.subscriber.0], "not {other}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_let_in_before_changes_nothing_after_the_deletion() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let body = json!({ "name": "Account", "scopes": ["me:read"] });
    let created = owner.post("/me/api-secrets", &body).await.success(201);
    let _visitor = Visitor::signed_in(&gateway).await;
    let mut database = gateway.database().await;
    let session = sqlx::query_scalar("SELECT id FROM portal_sessions");
    let session: uuid::Uuid = session.fetch_one(&mut database).await.unwrap();
    let mark = "UPDATE subscribers SET deletion_due_at = now() + interval '7 days'";
    let change = SubscriberChange {
        label: Some("Renamed".to_owned()),
        email: None,
    };
    let since = sqlx::query_scalar("SELECT credentials_since FROM subscribers");
    let since: Option<DateTime<Utc>> = since.fetch_one(&mut database).await.unwrap();
    let shown = [
        Credential::ApiSecret { since },
        Credential::AdditionalSecret(text(&created, "id").parse().unwrap()),
        Credential::PortalSession(PortalSessionId(session)),
        Credential::Link,
    ];
    for is_deleted in [false, true] {
        if is_deleted {
            database.execute(mark).await.unwrap();
        }
        for credential in shown {
            let author = Author::subscriber([192, 0, 2, 1].into(), gateway.subscriber, credential);
            let accounts = &gateway.daemon.accounts;
            let changed = accounts.change_subscriber(gateway.subscriber, &change, author);
            let changed = changed.await;
            assert_eq!(changed.is_err(), is_deleted, "{credential:?}: {changed:?}");
        }
    }
    gateway.stop().await;
}
