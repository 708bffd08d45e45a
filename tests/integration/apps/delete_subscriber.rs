//! The end of a subscriber: all of its apps end as single ones do, and whatever else happens to them meanwhile.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Caller, authenticate, path, send, session, tokens};
use crate::support::caller::text;
use crate::support::gateway::{Gateway, MAILBOX, OPERATOR};
use crate::support::receiver::Receiver;

/// Whether there was one.
async fn delete_subscriber(gateway: &Gateway) -> bool {
    let mailboxes = &gateway.daemon.mailboxes;
    let deleted = mailboxes.delete_subscriber(gateway.subscriber, OPERATOR);
    deleted.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn its_apps_end_as_apps_do() {
    let receiver = Receiver::start().await;
    let gateway = Gateway::builder()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .start()
        .await;
    let caller = Caller::owner(&gateway).await;
    let change = json!({ "webhook_url": receiver.url("/demo") });
    caller.put(&path(&gateway.app), &change).await.success(200);
    let second = json!({ "name": "Second", "webhook_url": receiver.url("/second") });
    let second = caller.post("/apps", &second).await.success(201);
    let (status, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202, "{answer}");
    let (access, _) = tokens(&gateway).await;
    let authorization = &gateway.sandbox.authorization;
    assert!(authorization.authenticate(MAILBOX, &access));
    let key = gateway.app.send_key.expose();
    let mut client = session(&gateway, &gateway.app.slug, key).await;

    assert!(delete_subscriber(&gateway).await);
    assert!(!delete_subscriber(&gateway).await, "it is gone");
    for table in [
        "subscribers",
        "apps",
        "end_users",
        "mailboxes",
        "spool",
        "spool_chunks",
    ] {
        let count = format!("SELECT count(*) FROM {table}");
        let left: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        assert_eq!(left, 0, "{table}");
    }
    let answer = send(&gateway, key, gateway.app.pushable_key.expose()).await;
    assert_eq!(answer.problem(), (401, "invalid_send_key"));
    let (_, reply) = authenticate(&gateway, &gateway.app.slug, key).await;
    assert_eq!(reply, "535 5.7.8 Authentication failed");
    gateway
        .eventually("the grant's end", async |gateway| {
            !gateway.sandbox.authorization.authenticate(MAILBOX, &access)
        })
        .await;
    let reply = client.reply().await;
    assert!(reply.starts_with("421 4.7.0"), "{reply}");
    // Each of them tells its own endpoint, though its rows are gone.
    let ends = || {
        let events = receiver.received().into_iter();
        let ends = events.filter(|it| it.json()["event"] == "app.deleted");
        ends.map(|it| (it.path.clone(), text(&it.json(), "app_id").to_owned()))
            .collect::<BTreeSet<_>>()
    };
    let expected = BTreeSet::from([
        ("/demo".to_owned(), gateway.app.id.to_string()),
        ("/second".to_owned(), text(&second, "id").to_owned()),
    ]);
    gateway
        .eventually("both apps' last events", async |_| ends().len() == 2)
        .await;
    assert_eq!(ends(), expected);
    gateway
        .eventually("the log rows' end", async |gateway| {
            gateway.logged().await.is_empty()
        })
        .await;
    // Of the trail, this alone is left.
    let trail: Vec<String> = sqlx::query_scalar("SELECT action FROM audit_entries")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(trail, ["subscriber.deleted"]);
    gateway.stop().await;
}

/// Waits until so many of the gateway's statements wait for somebody's lock.
async fn waiting(gateway: &Gateway, number: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let mut database = gateway.database().await;
    gateway
        .eventually("statements that wait", async |_| {
            let count = sqlx::query_scalar::<_, i64>(waiting);
            count.fetch_one(&mut database).await.unwrap() == number
        })
        .await;
}

/// What two deletions come to of which each has its first locks, the first one before the second, and waits for what
/// is held by these `statements`. `None` where one of them waited longer than a gateway lets it, as on a machine that
/// does other things beside.
pub async fn both(
    gateway: &Gateway,
    statements: &[&'static str],
    first: impl Future<Output = Result<bool, sqlx::Error>>,
    second: impl Future<Output = Result<bool, sqlx::Error>>,
) -> Option<[bool; 2]> {
    let mut holder = gateway.database().await;
    for statement in statements {
        sqlx::query(*statement).execute(&mut holder).await.unwrap();
    }
    let second = async {
        waiting(gateway, 1).await;
        second.await
    };
    let released = async {
        waiting(gateway, 2).await;
        sqlx::query("ROLLBACK").execute(&mut holder).await.unwrap();
    };
    let done = async { tokio::join!(first, second) };
    let mut done = std::pin::pin!(done);
    // Whoever has given up waits for nothing any more.
    let (first, second) = tokio::select! {
        done = &mut done => done,
        () = released => done.await,
    };
    let is_late = |outcome: &Result<bool, sqlx::Error>| {
        let error = outcome.as_ref().err();
        let code = error.and_then(|error| error.as_database_error()?.code());
        code.is_some_and(|code| code == "55P03")
    };
    if is_late(&first) || is_late(&second) {
        return None;
    }
    Some([first.unwrap(), second.unwrap()])
}

/// Attempts at what a busy machine may be too slow for.
pub const ATTEMPTS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn it_and_one_of_its_apps_may_go_at_the_same_time() {
    // The last thing that both lock.
    let counters = [
        "BEGIN",
        "SELECT pg_advisory_xact_lock(hashtext('mailgate counters')::bigint)",
    ];
    for is_app_first in [false, true] {
        let mut deleted = None;
        for _ in 0..ATTEMPTS {
            let gateway = Gateway::start().await;
            let mailboxes = &gateway.daemon.mailboxes;
            let app = Box::pin(mailboxes.delete_app(gateway.app.id, OPERATOR));
            let subscriber = mailboxes.delete_subscriber(gateway.subscriber, OPERATOR);
            let subscriber = Box::pin(subscriber);
            deleted = if is_app_first {
                both(&gateway, &counters, app, subscriber).await
            } else {
                both(&gateway, &counters, subscriber, app).await
            };
            gateway.stop().await;
            if deleted.is_some() {
                break;
            }
        }
        // Of an app that is gone, its own deletion finds nothing.
        let expected = [true, is_app_first];
        assert_eq!(deleted, Some(expected), "{is_app_first}");
    }
}
