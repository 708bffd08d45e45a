//! The end of an app: everywhere, and of it alone.

use std::time::Duration;

use serde_json::{Value, json};

use tokio_util::sync::CancellationToken;

use super::delete_subscriber::{ATTEMPTS, both};
use super::{Caller, authenticate, message, path, send, session, tokens};
use crate::support::gateway::{Gateway, MAILBOX, OPERATOR};
use crate::support::stand_in::submission::{Answer, Stage};
use crate::support::stand_in::{self, StandIn};

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_app_leaves_nothing_behind() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let path = path(&gateway.app);
    let (status, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(gateway.spooled().await, 1);
    let (access, refresh) = tokens(&gateway).await;
    let authorization = &gateway.sandbox.authorization;
    assert!(authorization.authenticate(MAILBOX, &access));
    caller.delete(&path).await.success(200);
    assert_eq!(gateway.spooled().await, 0);
    for table in ["apps", "end_users", "mailboxes", "spool_chunks"] {
        let count = format!("SELECT count(*) FROM {table}");
        let left: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        assert_eq!(left, 0, "{table}");
    }
    for answer in [caller.get(&path).await, caller.delete(&path).await] {
        assert_eq!(answer.problem(), (404, "app_not_found"));
    }
    let key = gateway.app.send_key.expose();
    let answer = send(&gateway, key, gateway.app.pushable_key.expose()).await;
    assert_eq!(answer.problem(), (401, "invalid_send_key"));
    let (_, reply) = authenticate(&gateway, &gateway.app.slug, key).await;
    assert_eq!(reply, "535 5.7.8 Authentication failed");
    gateway
        .eventually("the grant's end", async |gateway| {
            !gateway.sandbox.authorization.authenticate(MAILBOX, &access)
        })
        .await;
    assert_eq!(
        refreshed(&gateway, &refresh).await["error"],
        "invalid_grant"
    );
    gateway
        .eventually("the log rows' end", async |gateway| {
            gateway.logged().await.is_empty()
        })
        .await;
    gateway.stop().await;
}

/// A message that was being tried when its app went, and is put back behind it.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_put_back_later_goes_as_well() {
    let (stand_in, gateway) = StandIn::with_gateway().await;
    let caller = Caller::owner(&gateway).await;
    stand_in.submission.once(Stage::Rcpt, Answer::Hang);
    let deleting = async {
        gateway
            .eventually("its recipient", async |_| {
                stand_in.submission.count("RCPT") == 1
            })
            .await;
        caller.delete(&path(&gateway.app)).await.success(200);
        stand_in.submission.close_connections();
    };
    let ((status, answer), ()) =
        tokio::join!(stand_in::send(&gateway, "bob@example.com"), deleting);
    assert_eq!(status, 202, "{answer}");
    assert_eq!(gateway.spooled().await, 1);
    let never = CancellationToken::new();
    let purge = gateway.daemon.mailboxes.purge_deleted_apps(&never);
    purge.await.unwrap();
    assert_eq!(gateway.spooled().await, 0);
    assert_eq!(gateway.logged().await, []);
    gateway.stop().await;
}

/// What the sandbox answers to a refresh.
async fn refreshed(gateway: &Gateway, refresh_token: &str) -> Value {
    let response = gateway
        .http
        .post(format!("{}/oauth/token", gateway.sandbox.url()))
        .form(&[
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token),
            ("client_id", "mailgate-sandbox"),
            ("client_secret", "sandbox"),
        ])
        .send()
        .await
        .unwrap();
    response.json().await.unwrap()
}

/// So that `invalid_grant` above can't come of a request that is wrong in itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_living_apps_grant_can_be_refreshed() {
    let gateway = Gateway::start().await;
    let (_, refresh) = tokens(&gateway).await;
    let answer = refreshed(&gateway, &refresh).await;
    assert!(answer["access_token"].is_string(), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_sessions_end_on_every_replica_and_no_others_do() {
    let gateway = Gateway::start().await;
    let replica = gateway.replica().start().await;
    let (app, other) = (&gateway.app, &replica.app);
    let (mut its, mut others, mut sending) = (Vec::new(), Vec::new(), Vec::new());
    for gateway in [&gateway, &replica] {
        its.push(session(gateway, &app.slug, app.send_key.expose()).await);
        let mut client = session(gateway, &app.slug, app.send_key.expose()).await;
        client.command(&format!("MAIL FROM:<{MAILBOX}>")).await;
        its.push(client);
        others.push(session(gateway, &other.slug, other.send_key.expose()).await);
        let mut client = session(gateway, &app.slug, app.send_key.expose()).await;
        client.begin_data("bob@example.com").await;
        client.write(b"From: ").await;
        sending.push(client);
    }
    let caller = Caller::owner(&gateway).await;
    caller.delete(&path(app)).await.success(200);
    for client in &mut its {
        // Told, not found out by looking every half a minute.
        let reply = tokio::time::timeout(Duration::from_secs(20), client.reply()).await;
        let reply = reply.expect("the session ends soon");
        assert!(reply.starts_with("421 4.7.0"), "{reply}");
        assert_eq!(client.next_reply().await, None);
    }
    // A message that has begun is heard to its end, and refused.
    for client in &mut sending {
        client.write(&message()[b"From: ".len()..]).await;
        client.write(b"\r\n.\r\n").await;
        let reply = client.reply().await;
        assert_eq!(reply, "535 5.7.8 Authentication failed");
        assert_eq!(client.next_reply().await, None);
    }
    for client in &mut others {
        assert!(client.command("NOOP").await.starts_with("250 "));
    }
    let fresh = session(&gateway, &other.slug, other.send_key.expose()).await;
    drop(fresh);
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_on_its_way_is_answered_and_leaves_nothing() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let hold = gateway.sandbox.slow.hold();
    let ((status, answer), ()) = tokio::join!(gateway.send_to("slow@example.com"), async {
        gateway
            .eventually("a send under way", async |gateway| {
                gateway.spooled().await == 1
            })
            .await;
        caller.delete(&path(&gateway.app)).await.success(200);
        drop(hold);
    });
    assert_eq!(status, 200, "{answer}");
    assert_eq!(gateway.sandbox.inbox.count(), 1);
    gateway
        .eventually("an empty spool", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_deletions_at_once_one_succeeds() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let path = path(&gateway.app);
    let (one, two) = tokio::join!(caller.delete(&path), caller.delete(&path));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 404]);
    let again = caller.create("Demo").await;
    assert_eq!(again["name"], json!("Demo"));
    gateway.stop().await;
}

/// Both enter a job of billing. Whoever deletes the app has it locked, and deletes the mailbox afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn it_and_one_of_its_mailboxes_may_go_at_the_same_time() {
    let jobs = ["BEGIN", "SELECT FROM billing_jobs FOR UPDATE"];
    let mut ended = None;
    for _ in 0..ATTEMPTS {
        let gateway = Gateway::start().await;
        let (app, mailbox) = (gateway.app.id, gateway.mailbox.credential);
        let mailboxes = &gateway.daemon.mailboxes;
        let deleted = Box::pin(mailboxes.delete_app(app, OPERATOR));
        let disconnected = Box::pin(mailboxes.disconnect(app, mailbox, OPERATOR));
        ended = both(&gateway, &jobs, deleted, disconnected).await;
        gateway.stop().await;
        if ended.is_some() {
            break;
        }
    }
    assert_eq!(ended, Some([true, false]));
}
