//! What each operation on apps answers: the contract's fields, and no others.

use chrono::TimeDelta;
use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};

use super::{Caller, has_just, is_key, is_moment, path, text};
use crate::support::gateway::{Gateway, MAILBOX};

#[tokio::test(flavor = "multi_thread")]
async fn a_new_app_is_answered_with_its_secrets() {
    let gateway = Gateway::start().await;
    let caller = Caller::another(&gateway, "Grace").await;
    let given = json!({
        "name": "My App",
        "logo_url": "https://example.com/logo.png",
        "multiuser": true,
        "multilink": true,
        "webhook_url": "https://example.com/hook?a=b",
        "callback_url": "https://example.com:8443/done",
    });
    for (request, webhook_url, callback_url, flag) in [
        (json!({ "name": "My App" }), "", "", false),
        (
            given,
            "https://example.com/hook?a=b",
            "https://example.com:8443/done",
            true,
        ),
    ] {
        let app = caller.post("/apps", &request).await.success(201);
        has_just(
            &app,
            vec![
                "id",
                "app_id",
                "name",
                "pushable_key",
                "multiuser",
                "multilink",
                "require_connect_session",
                "suppress_bounced",
                "webhook_url",
                "callback_url",
                "webhook_secret",
                "send_key",
            ],
        );
        assert_eq!(app["name"], "My App");
        assert_eq!(app["webhook_url"], webhook_url);
        assert_eq!(app["callback_url"], callback_url);
        assert_eq!(app["multiuser"], flag);
        assert_eq!(app["multilink"], flag);
        for (name, prefix) in [
            ("pushable_key", "pk_"),
            ("webhook_secret", "whs_"),
            ("send_key", "sek_"),
        ] {
            is_key(text(&app, name), prefix);
        }
    }
}

const ITEM: [&str; 12] = [
    "id",
    "app_id",
    "name",
    "pushable_key",
    "logo_url",
    "multiuser",
    "multilink",
    "require_connect_session",
    "suppress_bounced",
    "webhook_url",
    "callback_url",
    "created_at",
];

#[tokio::test(flavor = "multi_thread")]
async fn list_and_detail_show_the_connected_users() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    gateway
        .connect(None, Plugin::B, "grace@sandbox.example")
        .await;
    let list = caller.get("/apps").await.success(200);
    has_just(&list, vec!["apps"]);
    let item = &list["apps"][0];
    has_just(item, [ITEM.as_slice(), &["users_count"]].concat());
    assert_eq!(item["app_id"], gateway.app.slug);
    assert_eq!(item["id"], gateway.app.id.to_string());
    assert_eq!(item["name"], "Demo");
    assert_eq!(item["pushable_key"], gateway.app.pushable_key.expose());
    assert_eq!(item["logo_url"], "");
    assert_eq!(item["users_count"], 2);
    is_moment(text(item, "created_at"));

    let detail = caller.get(&path(&gateway.app)).await.success(200);
    has_just(
        &detail,
        [ITEM.as_slice(), &["users", "former_users"]].concat(),
    );
    for name in ITEM {
        assert_eq!(detail[name], item[name], "{name}");
    }
    let users = detail["users"].as_array().unwrap();
    assert_eq!(users.len(), 2);
    for user in users {
        has_just(
            user,
            vec![
                "user_key",
                "email",
                "addresses",
                "plugin",
                "credential_id",
                "user_id",
                "status",
                "connected_at",
                "reply_tracking",
                "reply_tracking_error",
                "message_id_known",
            ],
        );
        assert_eq!(user["user_id"], Value::Null);
        assert_eq!(user["addresses"], json!([user["email"]]));
        assert_eq!(user["status"], "active");
        assert!(user["reply_tracking"].is_boolean());
        assert_eq!(user["message_id_known"], true);
        is_moment(text(user, "connected_at"));
    }
    assert_eq!(detail["former_users"], json!([]));
    assert_eq!(users[0]["email"], MAILBOX);
    assert_eq!(users[0]["plugin"], "plugin_a");
    assert_eq!(users[0]["user_key"], gateway.mailbox.user_key.to_string());
    assert_eq!(
        users[0]["credential_id"],
        gateway.mailbox.credential.to_string()
    );
    assert_eq!(users[1]["email"], "grace@sandbox.example");
    assert_eq!(users[1]["plugin"], "plugin_b");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnected_mailbox_is_a_former_users() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let authorization = &gateway.sandbox.authorization;
    authorization.withdraw(MAILBOX).await.unwrap();
    gateway.clock.advance(TimeDelta::hours(2));
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 502, "{answer}");
    let detail = caller.get(&path(&gateway.app)).await.success(200);
    assert_eq!(detail["users"], json!([]));
    let former = detail["former_users"].as_array().unwrap();
    assert_eq!(former.len(), 1);
    let names = [
        "user_key",
        "email",
        "plugin",
        "credential_id",
        "user_id",
        "reason",
        "disconnected_at",
    ];
    has_just(&former[0], names.to_vec());
    assert_eq!(former[0]["email"], MAILBOX);
    assert_eq!(former[0]["reason"], "invalid_grant");
    let id = gateway.mailbox.credential.to_string();
    assert_eq!(former[0]["credential_id"], id);
    let since = text(&former[0], "disconnected_at");
    is_moment(since);
    // Whoever sends is told why nothing goes out.
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!((status, text(&answer, "code")), (422, "no_mailbox"));
    let detail = text(&answer, "detail");
    let expected = format!("The mailbox {MAILBOX} was disconnected on {since} (invalid_grant)");
    assert!(detail.starts_with(&expected), "{detail}");
    let list = caller.get("/apps").await.success(200);
    assert_eq!(list["apps"][0]["users_count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_the_apps_own_name() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let path = path(&gateway.app);
    let body = json!({ "multiuser": true });
    caller.put(&path, &body).await.success(200);
    let connected = gateway
        .connect(Some("customer-7"), Plugin::A, "lin@sandbox.example")
        .await;
    let detail = caller.get(&path).await.success(200);
    let user = &detail["users"][1];
    assert_eq!(user["user_id"], "customer-7");
    assert_eq!(user["user_key"], connected.user_key.to_string());
    assert_ne!(user["user_key"], detail["users"][0]["user_key"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_deletions_and_keys_answer_just_their_fields() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let mut path = path(&gateway.app);
    let changed = caller.put(&path, &json!({ "name": "Other" })).await;
    assert_eq!(
        changed.success(200),
        json!({
            "id": gateway.app.id.to_string(),
            "app_id": gateway.app.slug,
            "name": "Other",
            "pushable_key": gateway.app.pushable_key.expose(),
        })
    );
    let unchanged = caller.put(&path, &json!({})).await.success(200);
    assert_eq!(unchanged["name"], "Other");
    let shown = caller.get(&format!("{path}/send-key")).await.success(200);
    assert_eq!(shown, json!({ "send_key": gateway.app.send_key.expose() }));
    for (operation, field, prefix) in [
        ("reset-send-key", "send_key", "sek_"),
        ("reset-pushable-key", "pushable_key", "pk_"),
    ] {
        let answer = caller.reset(&format!("{path}/{operation}")).await;
        let renewed = answer.success(200);
        has_just(&renewed, vec![field]);
        is_key(text(&renewed, field), prefix);
        if field == "pushable_key" {
            path = format!("/apps/{}", text(&renewed, field));
        }
    }
    let deleted = caller.delete(&path).await.success(200);
    assert_eq!(deleted, json!({ "deleted": gateway.app.slug }));
    let list = caller.get("/apps").await.success(200);
    assert_eq!(list, json!({ "apps": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_can_be_read_in_parts() {
    let gateway = Gateway::start().await;
    let caller = Caller::another(&gateway, "Grace").await;
    for name in ["one", "two", "three"] {
        caller.create(name).await;
        gateway.clock.advance(TimeDelta::seconds(1));
    }
    for (query, expected) in [
        ("", vec!["one", "two", "three"]),
        ("?limit=2", vec!["one", "two"]),
        ("?limit=2&offset=1", vec!["two", "three"]),
        ("?offset=2", vec!["three"]),
        ("?offset=3", vec![]),
        ("?limit=4294967295&offset=0", vec!["one", "two", "three"]),
    ] {
        let list = caller.get(&format!("/apps{query}")).await.success(200);
        let apps = list["apps"].as_array().unwrap();
        let listed: Vec<&str> = apps.iter().map(|app| text(app, "name")).collect();
        assert_eq!(listed, expected, "{query}");
    }
    for (query, field) in [
        ("colour=blue", "colour"),
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=x", "limit"),
        ("limit=", "limit"),
        ("limit=1.5", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("limit=%FF", "limit"),
        ("offset=-1", "offset"),
        ("offset=x", "offset"),
        ("offset=", "offset"),
    ] {
        let answer = caller.get(&format!("/apps?{query}")).await;
        assert_eq!(answer.wrong_fields(), [field], "{query}");
    }
    let both = caller.get("/apps?limit=0&offset=x").await;
    assert_eq!(both.wrong_fields(), ["limit", "offset"]);
    let twice = caller.get("/apps?limit=1&limit=2").await;
    assert_eq!(twice.problem(), (422, "invalid_request"));
}
