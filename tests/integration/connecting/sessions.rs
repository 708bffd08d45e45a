//! Connect sessions: links that the app asks for, and what links that anybody can write may not do.

use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Visit, active, another_app, complete, connect, connect_by_session, execute, grants_of, link,
    no_grant_of, rows, session, until_callback, walk,
};
use crate::support::caller::Caller;
use crate::support::gateway::{Gateway, MAILBOX, OPERATOR};

const GRACE: &str = "grace@sandbox.example";
const EVE: &str = "eve@sandbox.example";

#[tokio::test(flavor = "multi_thread")]
async fn a_session_connects_one_mailbox() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET multiuser = true, multilink = true, callback_url = 'https://app.example/a'",
    )
    .await;
    let asked = json!({
        "user_id": "u 1", "plugin": "plugin_b", "login_hint": GRACE,
        "callback_url": "https://app.example/elsewhere?x=1",
    });
    let token = session(&gateway, &gateway.app, asked).await;
    let parameters = [("plugin", "plugin_b"), ("session", token.as_str())];
    let page = Visit::to(link(&gateway, &gateway.app, &parameters[1..])).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert_eq!(
        page.body.matches("<button").count(),
        1,
        "the provider is given"
    );
    let callbacks = [
        until_callback(&gateway, &gateway.app, &parameters).await,
        until_callback(&gateway, &gateway.app, &parameters).await,
    ];
    let mut ends = Vec::new();
    for callback in callbacks {
        ends.push(Visit::to(callback).await);
    }
    let place = ends[0].location();
    let end = "https://app.example/elsewhere?x=1&status=success&";
    assert!(place.as_str().starts_with(end), "{place}");
    assert_eq!(ends[0].parameter("user_id").as_deref(), Some("u 1"));
    assert_eq!(ends[1].parameter("error").as_deref(), Some("link_used"));
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX, GRACE]);
    let address = link(&gateway, &gateway.app, &parameters);
    Visit::to(address.clone())
        .await
        .is_failure(410, "link_used");
    Visit::press(address).await.is_failure(410, "link_used");
    gateway.stop().await;
}

/// As when a database takes over whose clock is behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_was_used_stays_used_when_the_clock_is_set_back() {
    let gateway = Gateway::start().await;
    let asked = json!({ "plugin": "plugin_a", "login_hint": GRACE, "expires_in": 3_600 });
    let token = session(&gateway, &gateway.app, asked).await;
    let parameters = [("plugin", "plugin_a"), ("session", token.as_str())];
    let page = walk(&gateway, &gateway.app, &parameters).await;
    assert_eq!(page.status, 200, "{}", page.body);
    gateway.clock.advance(TimeDelta::hours(26));
    let stop = CancellationToken::new();
    let forgotten = gateway.daemon.mailboxes.forget_lapsed_links(&stop).await;
    forgotten.unwrap();
    gateway.clock.advance(TimeDelta::hours(-26));
    let address = link(&gateway, &gateway.app, &parameters);
    Visit::press(address).await.is_failure(410, "link_used");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_expected_account_is_taken() {
    let gateway = Gateway::start().await;
    let asked = json!({ "expected_email": "Grace@Sandbox.example", "plugin": "plugin_a" });
    let token = session(&gateway, &gateway.app, asked).await;
    let parameters = [("plugin", "plugin_a"), ("session", token.as_str())];
    let begun = Visit::press(link(&gateway, &gateway.app, &parameters)).await;
    let hint = begun.parameter("login_hint");
    assert_eq!(hint.as_deref(), Some("Grace@Sandbox.example"));
    // The user chooses another one at the provider.
    let mut request = begun.location();
    let pairs: Vec<(String, String)> = request.query_pairs().into_owned().collect();
    let pairs = pairs.into_iter().map(|(name, value)| match name.as_str() {
        "login_hint" => (name, EVE.to_owned()),
        _ => (name, value),
    });
    let pairs: Vec<(String, String)> = pairs.collect();
    request.query_pairs_mut().clear().extend_pairs(pairs);
    let callback = Visit::to(request).await.location();
    let page = complete(callback).await;
    page.is_failure(400, "wrong_account");
    assert!(page.body.contains("Grace@Sandbox.example"), "{}", page.body);
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX]);
    no_grant_of(&gateway, EVE).await;
    // The link is still good.
    let page = walk(&gateway, &gateway.app, &parameters).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert_eq!(grants_of(&gateway, GRACE), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_session_of_this_app_opens_nothing() {
    let gateway = Gateway::start().await;
    let other = another_app(&gateway, "Other").await;
    let token = session(&gateway, &gateway.app, json!({ "expires_in": 604_800 })).await;
    let of_another = session(&gateway, &other, json!({})).await;
    let long = "A".repeat(8_000);
    let cut = &token[..token.len() - 1];
    for wrong in ["", "x", cut, &of_another, &long] {
        let parameters = [("plugin", "plugin_a"), ("session", wrong)];
        let address = link(&gateway, &gateway.app, &parameters);
        Visit::to(address.clone())
            .await
            .is_failure(410, "link_expired");
        Visit::press(address).await.is_failure(410, "link_expired");
    }
    // It says all that there is to say.
    for beside in ["user_id", "login_hint"] {
        let parameters = [("session", token.as_str()), (beside, "x")];
        let page = Visit::to(link(&gateway, &gateway.app, &parameters)).await;
        page.is_failure(422, "invalid_request");
    }
    let of_b = session(&gateway, &gateway.app, json!({ "plugin": "plugin_b" })).await;
    let parameters = [("plugin", "plugin_a"), ("session", of_b.as_str())];
    let page = Visit::press(link(&gateway, &gateway.app, &parameters)).await;
    page.is_failure(422, "invalid_request");

    let parameters = [("session", token.as_str())];
    let address = link(&gateway, &gateway.app, &parameters);
    // Its last hour, since real time goes on too.
    gateway.clock.advance(TimeDelta::hours(7 * 24 - 1));
    assert_eq!(Visit::to(address.clone()).await.status, 200);
    gateway.clock.advance(TimeDelta::hours(1));
    Visit::to(address).await.is_failure(410, "link_expired");

    let of_another = session(&gateway, &other, json!({})).await;
    let accounts = &gateway.daemon.accounts;
    let renewed = accounts.renew_pushable_key(other.id, None, OPERATOR).await;
    let base = &gateway.daemon.base_url;
    let key = renewed.unwrap();
    let address = format!("{base}/connect/{}?session={of_another}", key.expose());
    Visit::to(address).await.is_failure(410, "link_expired");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_link_replaces_nobodys_mailbox() {
    let gateway = Gateway::start().await;
    let page = connect(&gateway, &gateway.app, EVE).await;
    page.is_failure(400, "already_connected");
    let stored = rows(&gateway, &gateway.app).await;
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX]);
    no_grant_of(&gateway, EVE).await;
    // The same address again is none's replacement, and a session may replace.
    assert_eq!(connect(&gateway, &gateway.app, MAILBOX).await.status, 200);
    assert_eq!(connect_by_session(&gateway, EVE).await.status, 200);
    assert_eq!(active(&gateway, &gateway.app).await, [EVE]);
    // Nor once that mailbox is gone, for which the app has asked.
    execute(&gateway, "UPDATE mailboxes SET status = 'disconnected'").await;
    let page = connect(&gateway, &gateway.app, GRACE).await;
    page.is_failure(400, "already_connected");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_with_several_users_takes_sessions_alone_unless_it_says_otherwise() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    for (fields, required) in [
        (json!({}), false),
        (json!({ "multiuser": false }), false),
        (json!({ "multiuser": true }), true),
        (
            json!({ "multiuser": true, "require_connect_session": false }),
            false,
        ),
        (json!({ "require_connect_session": true }), true),
    ] {
        let mut body = fields.clone();
        body["name"] = Value::from("New");
        let app = owner.post("/apps", &body).await.success(201);
        assert_eq!(app["require_connect_session"], required, "{fields}");
        let path = format!("/apps/{}", app["pushable_key"].as_str().unwrap());
        let is_required =
            async || owner.get(&path).await.success(200)["require_connect_session"].clone();
        assert_eq!(is_required().await, required, "{fields}");
        let bare = format!(
            "{}/connect/{}?plugin=plugin_a&user_id=u",
            gateway.daemon.base_url,
            app["pushable_key"].as_str().unwrap()
        );
        let opened = async |is_taken: bool| {
            let (page, pressed) = (Visit::to(&bare).await, Visit::press(&bare).await);
            if is_taken {
                assert_eq!((page.status, pressed.status), (200, 303), "{fields}");
            } else {
                page.is_failure(422, "connect_session_required");
                let way = "POST /apps/{pushable_key}/connect-sessions";
                assert!(page.body.contains(way), "{}", page.body);
                pressed.is_failure(422, "connect_session_required");
            }
        };
        opened(!required).await;
        let other = json!({ "require_connect_session": !required });
        owner.put(&path, &other).await.success(200);
        assert_eq!(is_required().await, !required);
        opened(required).await;
        let body = json!({ "user_id": "u" });
        let sessions = format!("{path}/connect-sessions");
        let made = owner.post(&sessions, &body).await.success(201);
        let url = made["url"].as_str().unwrap();
        assert_eq!(Visit::to(url).await.status, 200);
    }
    let wrong = owner
        .post(
            "/apps",
            &json!({ "name": "x", "require_connect_session": "yes" }),
        )
        .await;
    assert_eq!(wrong.wrong_fields(), ["require_connect_session"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_for_is_checked() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let path = format!(
        "/apps/{}/connect-sessions",
        gateway.app.pushable_key.expose()
    );
    for (body, field) in [
        (json!({ "user_id": 1 }), "user_id"),
        (json!({ "user_id": "a\nb" }), "user_id"),
        (json!({ "user_id": "x".repeat(256) }), "user_id"),
        (json!({ "plugin": "plugin_c" }), "plugin"),
        (json!({ "login_hint": "x".repeat(321) }), "login_hint"),
        (json!({ "expected_email": "nobody" }), "expected_email"),
        (
            json!({ "callback_url": "https://app.example/" }),
            "callback_url",
        ),
        (json!({ "expires_in": 0 }), "expires_in"),
        (json!({ "expires_in": 604_801 }), "expires_in"),
        (json!({ "expires_in": -1 }), "expires_in"),
        (json!({ "expires_in": 1.5 }), "expires_in"),
        (json!({ "expires_in": u64::MAX }), "expires_in"),
        (json!({ "expires_in": "60" }), "expires_in"),
    ] {
        assert_eq!(
            owner.post(&path, &body).await.wrong_fields(),
            [field],
            "{body}"
        );
    }
    execute(
        &gateway,
        "UPDATE apps SET multiuser = true, callback_url = 'https://app.example/done'",
    )
    .await;
    assert_eq!(
        owner.post(&path, &json!({})).await.wrong_fields(),
        ["user_id"]
    );
    for (callback_url, is_taken) in [
        ("https://app.example/other#x", true),
        ("https://app.example:443/", true),
        ("https://evil.example/done", false),
        ("https://app.example.evil.example/", false),
        ("https://app.example:8443/", false),
        ("http://app.example/", false),
        ("javascript:alert(1)", false),
    ] {
        let body = json!({ "user_id": "u", "callback_url": callback_url });
        let answer = owner.post(&path, &body).await;
        assert_eq!(
            answer.status == 201,
            is_taken,
            "{callback_url}: {}",
            answer.body
        );
    }
    let before = gateway.clock.now();
    let body = json!({ "user_id": "u", "expires_in": 604_800 });
    let made = owner.post(&path, &body).await.success(201);
    let end: chrono::DateTime<chrono::Utc> = made["expires_at"].as_str().unwrap().parse().unwrap();
    let life = end - before;
    assert!(
        life > TimeDelta::hours(7 * 24 - 1) && life < TimeDelta::hours(7 * 24 + 1),
        "{life}"
    );
    let wrong = Caller {
        gateway: &gateway,
        secret: "sk_wrong".to_owned(),
    };
    assert_eq!(wrong.post(&path, &body).await.status, 401);
    gateway.stop().await;
}
