//! Whoever knows an app's public key and no more: no user's mail leaves through a mailbox of theirs.

use serde_json::json;

use super::{
    Visit, active, complete, connect_by_session, execute, link, session, until_callback, walk,
};
use crate::support::caller::Caller;
use crate::support::gateway::{Gateway, MAILBOX};

const OWNER: &str = "owner@sandbox.example";
const EVIL: &str = "evil@sandbox.example";

/// A bare link, to a mailbox of the stranger's.
async fn intrude(gateway: &Gateway, plugin: &str, user_id: &str) -> Visit {
    let parameters = [
        ("plugin", plugin),
        ("user_id", user_id),
        ("login_hint", EVIL),
    ];
    walk(gateway, &gateway.app, &parameters).await
}

async fn sender(gateway: &Gateway, user_id: &str) -> String {
    let message = json!({
        "to": "bob@example.com", "subject": "Hello", "body": "Hi.", "user_id": user_id,
    });
    let (status, answer) = gateway.send(message).await;
    assert_eq!(status, 200, "{answer}");
    answer["from"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_a_mailbox_that_the_app_asked_for_nobody_puts_another() {
    for multilink in [false, true] {
        let gateway = Gateway::start().await;
        if multilink {
            execute(&gateway, "UPDATE apps SET multilink = true").await;
        }
        assert_eq!(connect_by_session(&gateway, OWNER).await.status, 200);
        for plugin in ["plugin_a", "plugin_b"] {
            let page = intrude(&gateway, plugin, "").await;
            page.is_failure(400, "already_connected");
        }
        let active = active(&gateway, &gateway.app).await;
        assert!(!active.contains(&EVIL.to_owned()), "{active:?}");
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_app_asked_for_goes_before_what_was_there() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE mailboxes SET status = 'disconnected', disconnected_at = now()",
    )
    .await;
    // The stranger comes first.
    assert_eq!(intrude(&gateway, "plugin_b", "").await.status, 200);
    assert_eq!(sender(&gateway, "").await, EVIL);
    assert_eq!(connect_by_session(&gateway, OWNER).await.status, 200);
    assert_eq!(sender(&gateway, "").await, OWNER);
    // And another one in its place.
    assert_eq!(connect_by_session(&gateway, MAILBOX).await.status, 200);
    assert_eq!(sender(&gateway, "").await, MAILBOX);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_key_is_nobody_elses_name() {
    let gateway = Gateway::start().await;
    execute(&gateway, "UPDATE apps SET multiuser = true").await;
    let asked = json!({ "user_id": "victim", "plugin": "plugin_a", "login_hint": OWNER });
    let token = session(&gateway, &gateway.app, asked).await;
    let parameters = [("plugin", "plugin_a"), ("session", token.as_str())];
    assert_eq!(walk(&gateway, &gateway.app, &parameters).await.status, 200);
    let key: uuid::Uuid =
        sqlx::query_scalar("SELECT user_key FROM end_users WHERE user_id = 'victim'")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    let key = key.to_string();
    assert_eq!(intrude(&gateway, "plugin_a", &key).await.status, 200);
    execute(
        &gateway,
        "UPDATE mailboxes SET connected_at = now() WHERE email = 'owner@sandbox.example'",
    )
    .await;
    for user_id in ["victim", &key] {
        assert_eq!(sender(&gateway, user_id).await, OWNER, "{user_id}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_becomes_multiuser_takes_sessions_alone() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let path = format!("/apps/{}", gateway.app.pushable_key.expose());
    let required = async || {
        let app = owner.get(&path).await.success(200);
        app["require_connect_session"].as_bool().unwrap()
    };
    owner
        .put(&path, &json!({ "multiuser": false }))
        .await
        .success(200);
    assert!(!required().await);
    owner
        .put(&path, &json!({ "multiuser": true }))
        .await
        .success(200);
    assert!(required().await);
    let off = json!({ "require_connect_session": false });
    owner.put(&path, &off).await.success(200);
    owner
        .put(&path, &json!({ "multiuser": true }))
        .await
        .success(200);
    assert!(!required().await, "it was one before");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ways_under_way_end_when_sessions_are_required() {
    let gateway = Gateway::start().await;
    let parameters = [("plugin", "plugin_b"), ("login_hint", EVIL)];
    let callback = until_callback(&gateway, &gateway.app, &parameters).await;
    execute(&gateway, "UPDATE apps SET require_connect_session = true").await;
    let page = complete(callback).await;
    page.is_failure(400, "connect_session_required");
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bare_links_connect_a_number_of_mailboxes_at_most() {
    let gateway = Gateway::start().await;
    execute(&gateway, "UPDATE apps SET multilink = true").await;
    for number in 2..=11 {
        let email = format!("number-{number}@sandbox.example");
        let parameters = [("plugin", "plugin_a"), ("login_hint", email.as_str())];
        let page = walk(&gateway, &gateway.app, &parameters).await;
        if number <= 10 {
            assert_eq!(page.status, 200, "{number}: {}", page.body);
        } else {
            page.is_failure(400, "too_many_mailboxes");
        }
    }
    assert_eq!(active(&gateway, &gateway.app).await.len(), 10);
    assert_eq!(connect_by_session(&gateway, OWNER).await.status, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_has_its_number_of_mailboxes() {
    let gateway = Gateway::builder()
        .set("LIMITS__MAILBOXES_PER_SUBSCRIBER", 6)
        .start()
        .await;
    execute(&gateway, "UPDATE apps SET multilink = true").await;
    let connect = async |number: u8| {
        let email = format!("number-{number}@sandbox.example");
        let parameters = [("plugin", "plugin_a"), ("login_hint", email.as_str())];
        walk(&gateway, &gateway.app, &parameters).await
    };
    // One is there already; links that anybody can write fill half of what there may be.
    for number in 2..=3 {
        assert_eq!(connect(number).await.status, 200, "{number}");
    }
    connect(4).await.is_failure(400, "too_many_for_app");
    assert_eq!(connect(3).await.status, 200, "a known one");
    for number in 4..=7 {
        let email = format!("number-{number}@sandbox.example");
        let page = connect_by_session(&gateway, &email).await;
        if number <= 6 {
            assert_eq!(page.status, 200, "{number}: {}", page.body);
        } else {
            page.is_failure(400, "too_many_for_app");
        }
    }
    // What is remembered counts.
    execute(&gateway, "UPDATE mailboxes SET status = 'disconnected'").await;
    let page = connect_by_session(&gateway, "number-7@sandbox.example").await;
    page.is_failure(400, "too_many_for_app");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_link_has_a_page_at_its_end() {
    let gateway = Gateway::start().await;
    let long = |length: usize| "\u{1F600}".repeat(length);
    let parameters = [
        ("plugin", "plugin_a"),
        ("user_id", &long(255)),
        ("login_hint", &long(320)),
    ];
    let begun = Visit::press(link(&gateway, &gateway.app, &parameters)).await;
    let state = begun.parameter("state").unwrap();
    let base = &gateway.daemon.base_url;
    let said = "%F0%9F%98%80".repeat(300);
    let callback = format!("{base}/oauth/callback?state={state}&error=x&error_description={said}");
    let page = complete(callback.parse().unwrap()).await;
    page.is_failure(400, "x");
    gateway.stop().await;
}
