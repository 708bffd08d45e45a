//! Users whose mailbox a connect session has connected: no bare link brings them another address, even once nothing is
//! connected any more, until the app releases them.

use chrono::TimeDelta;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    Visit, active, complete, connect, connect_by_session, execute, session, until_callback, walk,
};
use crate::support::caller::{Caller, path};
use crate::support::gateway::{Gateway, MAILBOX};

const OWNER: &str = "owner@sandbox.example";
const EVIL: &str = "evil@sandbox.example";

/// A gateway whose app's only user has one mailbox, connected by a session.
async fn vouched() -> Gateway {
    let gateway = Gateway::start().await;
    assert_eq!(connect_by_session(&gateway, OWNER).await.status, 200);
    assert_eq!(active(&gateway, &gateway.app).await, [OWNER]);
    gateway
}

/// A bare link.
async fn bare(gateway: &Gateway, plugin: &str, email: &str) -> Visit {
    let parameters = [("plugin", plugin), ("login_hint", email)];
    walk(gateway, &gateway.app, &parameters).await
}

/// The provider ends the grant, which the next message finds.
async fn withdraw(gateway: &Gateway, email: &str) {
    let authorization = &gateway.sandbox.authorization;
    authorization.withdraw(email).await.unwrap();
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    assert_eq!(active(gateway, &gateway.app).await, [""; 0]);
}

/// The mailbox with this address: its id, and whether a session has vouched for it.
async fn stored(gateway: &Gateway, email: &str) -> (uuid::Uuid, bool) {
    sqlx::query_as("SELECT id, by_session FROM mailboxes WHERE email = $1")
        .bind(email)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

/// The key of the app's only user.
async fn user_key(gateway: &Gateway) -> String {
    let key: uuid::Uuid = sqlx::query_scalar("SELECT user_key FROM end_users WHERE app_id = $1")
        .bind(gateway.app.id.0)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    key.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_grant_has_ended_only_the_same_address_follows() {
    for multilink in [false, true] {
        let gateway = vouched().await;
        if multilink {
            execute(&gateway, "UPDATE apps SET multilink = true").await;
        }
        let before = stored(&gateway, OWNER).await;
        // Twice: to come back by a bare link doesn't make the mailbox one of a bare link.
        for _ in 0..2 {
            withdraw(&gateway, OWNER).await;
            for plugin in ["plugin_a", "plugin_b"] {
                let page = bare(&gateway, plugin, EVIL).await;
                page.is_failure(400, "already_connected");
            }
            // What another provider says of an address isn't what this one said.
            let page = bare(&gateway, "plugin_b", OWNER).await;
            page.is_failure(400, "already_connected");
            let page = bare(&gateway, "plugin_a", OWNER).await;
            assert_eq!(page.status, 200, "{}", page.body);
            assert_eq!(stored(&gateway, OWNER).await, before);
        }
        gateway.stop().await;
    }
}

/// It knew nothing of users, and noted the session with the mailbox alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_a_gateway_of_the_release_before_has_vouched_too() {
    let gateway = vouched().await;
    execute(&gateway, "UPDATE end_users SET vouched_at = NULL").await;
    withdraw(&gateway, OWNER).await;
    let page = bare(&gateway, "plugin_a", EVIL).await;
    page.is_failure(400, "already_connected");
    assert_eq!(bare(&gateway, "plugin_a", OWNER).await.status, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_a_bare_link_is_not_one_of_a_session() {
    let gateway = Gateway::start().await;
    // The stranger was there before the app's own link.
    let key = user_key(&gateway).await;
    let end = format!(
        "{}/credentials/{}",
        path(&gateway.app),
        gateway.mailbox.credential
    );
    let owner = Caller::owner(&gateway).await;
    owner.delete(&end).await.success(200);
    assert_eq!(connect(&gateway, &gateway.app, EVIL).await.status, 200);
    assert_eq!(connect_by_session(&gateway, OWNER).await.status, 200);
    withdraw(&gateway, OWNER).await;
    for email in [EVIL, MAILBOX] {
        let page = connect(&gateway, &gateway.app, email).await;
        page.is_failure(400, "already_connected");
    }
    assert_eq!(user_key(&gateway).await, key);
    gateway.stop().await;
}

/// The app has put another mailbox in its place: whoever had the first one has nothing to come back to.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_a_session_has_replaced_does_not_follow() {
    let gateway = vouched().await;
    assert_eq!(connect_by_session(&gateway, MAILBOX).await.status, 200);
    withdraw(&gateway, MAILBOX).await;
    let page = connect(&gateway, &gateway.app, OWNER).await;
    page.is_failure(400, "already_connected");
    assert_eq!(connect(&gateway, &gateway.app, MAILBOX).await.status, 200);
    // Unless a session brings it back.
    assert_eq!(connect_by_session(&gateway, OWNER).await.status, 200);
    withdraw(&gateway, OWNER).await;
    assert_eq!(connect(&gateway, &gateway.app, OWNER).await.status, 200);
    gateway.stop().await;
}

/// The same way, begun before: what counts is what is there when it ends.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_had_ended_before_a_session_brought_another_does_not_follow() {
    const LATER: &str = "later@sandbox.example";
    let gateway = vouched().await;
    withdraw(&gateway, OWNER).await;
    assert_eq!(connect_by_session(&gateway, LATER).await.status, 200);
    withdraw(&gateway, LATER).await;
    let page = bare(&gateway, "plugin_a", OWNER).await;
    page.is_failure(400, "already_connected");
    assert_eq!(bare(&gateway, "plugin_a", LATER).await.status, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_under_way_does_not_outrun_it() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE mailboxes SET status = 'disconnected', disconnected_at = now()",
    )
    .await;
    let parameters = [("plugin", "plugin_b"), ("login_hint", EVIL)];
    let callback = until_callback(&gateway, &gateway.app, &parameters).await;
    assert_eq!(connect_by_session(&gateway, OWNER).await.status, 200);
    withdraw(&gateway, OWNER).await;
    let page = complete(callback).await;
    page.is_failure(400, "already_connected");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_outlives_the_mailbox() {
    let gateway = vouched().await;
    let key = user_key(&gateway).await;
    withdraw(&gateway, OWNER).await;
    gateway.clock.advance(TimeDelta::days(366));
    let stop = CancellationToken::new();
    let removed = gateway.daemon.mailboxes.remove_former(90, &stop);
    removed.await.unwrap();
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM mailboxes")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(left, 0);
    for email in [EVIL, OWNER] {
        let page = connect(&gateway, &gateway.app, email).await;
        page.is_failure(400, "already_connected");
    }
    assert_eq!(connect_by_session(&gateway, OWNER).await.status, 200);
    assert_eq!(user_key(&gateway).await, key, "the user stays the same");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_app_releases_a_user() {
    let gateway = vouched().await;
    let owner = Caller::owner(&gateway).await;
    let key = user_key(&gateway).await;
    let user = format!("{}/users/{key}", path(&gateway.app));
    let released = owner.delete(&user).await.success(200);
    assert_eq!(released, json!({ "released": key, "disconnected": 1 }));
    assert_eq!(active(&gateway, &gateway.app).await, [""; 0]);
    let entries = owner.get("/audit?action=user.released").await.success(200);
    let entry = &entries["entries"][0];
    assert_eq!(
        (&entry["target"], &entry["details"]),
        (&json!(key), &json!({ "user_id": null, "disconnected": 1 }))
    );
    assert_eq!(connect(&gateway, &gateway.app, EVIL).await.status, 200);
    // And from then on as for somebody new: what a session vouched for is forgotten.
    assert!(!stored(&gateway, OWNER).await.1);
    assert_eq!(connect_by_session(&gateway, MAILBOX).await.status, 200);
    withdraw(&gateway, MAILBOX).await;
    for email in [EVIL, OWNER] {
        let page = connect(&gateway, &gateway.app, email).await;
        page.is_failure(400, "already_connected");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_user_of_the_app_is_not_released() {
    let gateway = vouched().await;
    let owner = Caller::owner(&gateway).await;
    let key = user_key(&gateway).await;
    let other = Caller::another(&gateway, "Other").await;
    let foreign = format!("{}/users/{key}", path(&gateway.app));
    assert_eq!(
        other.delete(&foreign).await.problem(),
        (404, "app_not_found")
    );
    let own = owner.post("/apps", &json!({ "name": "Own" })).await;
    let own = own.success(201)["pushable_key"]
        .as_str()
        .unwrap()
        .to_owned();
    for user in [
        format!("/apps/{own}/users/{key}"),
        format!("{}/users/{}", path(&gateway.app), uuid::Uuid::nil()),
        format!("{}/users/x", path(&gateway.app)),
        format!("{}/users/%00", path(&gateway.app)),
    ] {
        let answer = owner.delete(&user).await;
        assert_eq!(answer.problem(), (404, "user_not_found"), "{user}");
    }
    assert_eq!(active(&gateway, &gateway.app).await, [OWNER]);
    withdraw(&gateway, OWNER).await;
    let page = connect(&gateway, &gateway.app, EVIL).await;
    page.is_failure(400, "already_connected");
    gateway.stop().await;
}

/// Each user for himself.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_a_session_is_as_before() {
    let gateway = Gateway::start().await;
    execute(&gateway, "UPDATE apps SET multiuser = true").await;
    let asked = json!({ "user_id": "one", "plugin": "plugin_a", "login_hint": OWNER });
    let token = session(&gateway, &gateway.app, asked).await;
    let parameters = [("plugin", "plugin_a"), ("session", token.as_str())];
    assert_eq!(walk(&gateway, &gateway.app, &parameters).await.status, 200);
    execute(
        &gateway,
        "UPDATE mailboxes SET status = 'disconnected', disconnected_at = now()",
    )
    .await;
    for (user, is_taken) in [("one", false), ("two", true)] {
        let parameters = [
            ("plugin", "plugin_a"),
            ("user_id", user),
            ("login_hint", EVIL),
        ];
        let page = walk(&gateway, &gateway.app, &parameters).await;
        assert_eq!(page.status == 200, is_taken, "{user}: {}", page.body);
    }
    gateway.stop().await;
}
