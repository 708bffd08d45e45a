//! Additional send keys: created, listed, changed, deleted; whose they are, and when they were used.

use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use mailgate_types::moment::iso8601;
use tokio::task::JoinSet;

use super::*;
use crate::support::gateway::create_app;

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_created_used_changed_and_deleted() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let keys = keys_path(&gateway);
    let credential = gateway.mailbox.credential.to_string();
    let expires_at = iso8601(gateway.clock.now() + TimeDelta::days(30));
    let created = create(
        &gateway,
        &json!({
            "name": "Invoices", "expires_at": expires_at, "credential_ids": [credential, credential],
            "allowed_addresses": ["127.0.0.77/8", "::1"],
        }),
    )
    .await;
    let (id, value) = (text(&created, "id"), text(&created, "send_key"));
    assert!(id.starts_with("skey_"), "{id}");
    assert!(value.starts_with("sek_") && value.len() == 47, "{value}");
    assert_eq!(
        created["allowed_addresses"],
        json!(["127.0.0.0/8", "::1/128"])
    );
    assert_eq!(created["credential_ids"], json!([credential]));
    assert_eq!(created["expires_at"], json!(expires_at));
    send(&gateway, value).await.success(200);
    let mut client = session(&gateway, &gateway.app.slug, value).await;
    assert!(submit(&mut client, MAILBOX).await.starts_with("250 2.0.0"));
    // As the older header too.
    let body = json!({ "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "s", "body": "b" });
    let request = anonymous(&gateway, Method::POST, "/send").header("x-api-key", value);
    Answer::to(request.json(&body)).await.success(200);

    let listed = owner.get(&keys).await.success(200);
    assert!(!listed.to_string().contains("sek_"), "{listed}");
    let [main, other] = listed["send_keys"].as_array().unwrap().as_slice() else {
        panic!("{listed}");
    };
    assert_eq!(main["is_main"], true);
    let mut expected = created.clone();
    expected.as_object_mut().unwrap().remove("send_key");
    assert_eq!(other, &expected);

    let change = json!({ "name": "Bills", "expires_at": "", "allowed_addresses": [] });
    let changed = owner
        .put(&format!("{keys}/{id}"), &change)
        .await
        .success(200);
    expected["name"] = json!("Bills");
    expected["expires_at"] = Value::Null;
    expected["allowed_addresses"] = json!([]);
    assert_eq!(changed, expected);
    owner
        .put(&format!("{keys}/{id}"), &json!({}))
        .await
        .success(200);
    owner.delete(&format!("{keys}/{id}")).await.success(204);
    opens_nothing(&gateway, value).await;
    assert_eq!(submit(&mut client, MAILBOX).await, AUTHENTICATION_FAILED);
    let again = owner.delete(&format!("{keys}/{id}")).await;
    assert_eq!(again.problem(), (404, "send_key_not_found"));

    let all = ["created", "changed", "deleted"];
    for action in all.map(|action| format!("send_key.{action}")) {
        let entries = recorded(&gateway, &action).await;
        assert_eq!(entries.len(), 1, "{action}: {entries:?}");
        assert_eq!(entries[0].0, id, "{action}");
        assert!(!entries[0].1.to_string().contains("sek_"), "{entries:?}");
    }
    let changed = &recorded(&gateway, "send_key.changed").await[0].1;
    assert_eq!(
        changed["name"],
        json!({ "from": "Invoices", "to": "Bills" })
    );
    assert!(changed.get("credential_ids").is_none(), "{changed}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_main_key_is_listed_and_only_renewed() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let keys = keys_path(&gateway);
    let main = async || owner.get(&keys).await.success(200)["send_keys"][0].clone();
    let before = main().await;
    assert_eq!(before["is_main"], true);
    assert_eq!(before["last_used_at"], Value::Null);
    let path_of = format!("{keys}/{}", text(&before, "id"));
    for answer in [
        owner.delete(&path_of).await,
        owner.put(&path_of, &json!({ "name": "x" })).await,
    ] {
        assert_eq!(answer.problem(), (409, "main_send_key"));
    }
    send(&gateway, gateway.app.send_key.expose())
        .await
        .success(200);
    gateway.daemon.accounts.write_key_uses().await.unwrap();
    assert!(main().await["last_used_at"].is_string());
    gateway.clock.advance(TimeDelta::hours(1));
    let other = create(&gateway, &json!({ "name": "Other" })).await;
    owner
        .reset(&format!("{}/reset-send-key", path(&gateway.app)))
        .await
        .success(200);
    let after = main().await;
    assert_eq!(after["id"], before["id"]);
    assert_ne!(after["created_at"], before["created_at"]);
    assert_eq!(after["last_used_at"], Value::Null, "the new one is unused");
    // The others are no concern of it.
    send(&gateway, text(&other, "send_key")).await.success(200);
    opens_nothing(&gateway, gateway.app.send_key.expose()).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_use_is_written_now_and_then_and_changes_no_version() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let created = create(&gateway, &json!({ "name": "Other" })).await;
    let key = text(&created, "send_key");
    let version = async || -> uuid::Uuid {
        sqlx::query_scalar("SELECT version FROM app_versions WHERE app_id = $1")
            .bind(gateway.app.id.0)
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap()
    };
    let last = async || {
        let listed = owner.get(&keys_path(&gateway)).await.success(200);
        listed["send_keys"][1]["last_used_at"].clone()
    };
    send(&gateway, key).await.success(200);
    assert_eq!(last().await, Value::Null, "no message writes it");
    let before = version().await;
    gateway.daemon.accounts.write_key_uses().await.unwrap();
    assert_eq!(version().await, before);
    let first = last().await;
    assert!(first.is_string());
    gateway.clock.advance(TimeDelta::hours(1));
    gateway.daemon.accounts.write_key_uses().await.unwrap();
    assert_eq!(last().await, first, "unused since");
    let mut client = session(&gateway, &gateway.app.slug, key).await;
    assert!(submit(&mut client, MAILBOX).await.starts_with("250 "));
    gateway.daemon.accounts.write_key_uses().await.unwrap();
    assert_ne!(last().await, first);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_subscribers_keys_are_not_there() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let created = create(&gateway, &json!({ "name": "Mine" })).await;
    let id = text(&created, "id");
    let stranger = Caller::another(&gateway, "Stranger").await;
    let theirs = stranger.create("Theirs").await;
    let their_keys = format!("/apps/{}/send-keys", text(&theirs, "pushable_key"));
    for keys in [&keys_path(&gateway), "/apps/pk_x/send-keys"] {
        for answer in [
            stranger.get(keys).await,
            stranger.post(keys, &json!({ "name": "x" })).await,
            stranger.put(&format!("{keys}/{id}"), &json!({})).await,
            stranger.delete(&format!("{keys}/{id}")).await,
        ] {
            assert_eq!(answer.problem(), (404, "app_not_found"));
        }
    }
    for wrong in [id, "skey_", "x", "%00", "skey_01h2xcejqtf2nbrexx3vqjhp41"] {
        let path = format!("{their_keys}/{wrong}");
        for answer in [
            stranger.delete(&path).await,
            stranger.put(&path, &json!({ "name": "x" })).await,
        ] {
            assert_eq!(answer.problem(), (404, "send_key_not_found"), "{wrong}");
        }
    }
    // Another app's mailbox is none of this one's, and neither is an invented one.
    for foreign in [
        gateway.mailbox.credential.to_string(),
        "cred_01h2xcejqtf2nbrexx3vqjhp41".to_owned(),
    ] {
        let body = json!({ "name": "x", "credential_ids": [foreign] });
        let answer = stranger.post(&their_keys, &body).await;
        assert_eq!(answer.wrong_fields(), ["credential_ids"]);
    }
    // Nor does a key send by another app's SMTP user name or pushable key.
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let key = text(&created, "send_key");
    let mut client = SmtpClient::encrypted(&gateway).await;
    let reply = authenticate(&mut client, &other.slug, key).await;
    assert_eq!(reply, AUTHENTICATION_FAILED);
    let wrong = json!({ "pk": other.pushable_key.expose() });
    let answer = send_with(&gateway, key, &wrong).await;
    assert_eq!(answer.problem(), (403, "pk_mismatch"));
    assert_eq!(
        owner.get(&keys_path(&gateway)).await.success(200)["send_keys"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_fields_are_named() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let keys = keys_path(&gateway);
    let many = |count: usize, text: &str| json!(vec![text; count]);
    let cred = "cred_01h2xcejqtf2nbrexx3vqjhp41";
    for (fields, wrong) in [
        (json!({}), vec!["name"]),
        (json!({ "name": " " }), vec!["name"]),
        (json!({ "name": "x".repeat(256) }), vec!["name"]),
        (json!({ "name": "\u{200b}" }), vec!["name"]),
        (json!({ "name": "a\u{0}b" }), vec!["name"]),
        (
            json!({ "name": 7, "expires_at": 7, "allowed_addresses": "10.0.0.0/8", "credential_ids": {} }),
            vec!["allowed_addresses", "credential_ids", "expires_at", "name"],
        ),
        (
            json!({ "name": "x", "expires_at": "2020-01-01T00:00:00Z" }),
            vec!["expires_at"],
        ),
        (
            json!({ "name": "x", "expires_at": "9999-12-31T23:59:59Z" }),
            vec!["expires_at"],
        ),
        (
            json!({ "name": "x", "expires_at": "+262142-12-31T23:59:59Z" }),
            vec!["expires_at"],
        ),
        (
            json!({ "name": "x", "expires_at": "9".repeat(100_000) }),
            vec!["expires_at"],
        ),
        (
            json!({ "name": "x", "allowed_addresses": ["10.0.0.0/8", "10.0.0.0/33", null, "x".repeat(10_000)] }),
            vec![
                "allowed_addresses[1]",
                "allowed_addresses[2]",
                "allowed_addresses[3]",
            ],
        ),
        (
            json!({ "name": "x", "allowed_addresses": many(51, "10.0.0.0/8") }),
            vec!["allowed_addresses"],
        ),
        (
            json!({ "name": "x", "credential_ids": many(101, cred) }),
            vec!["credential_ids"],
        ),
        (
            json!({ "name": "x", "credential_ids": ["log_01h2xcejqtf2nbrexx3vqjhp41"] }),
            vec!["credential_ids[0]"],
        ),
    ] {
        let answer = owner.post(&keys, &fields).await;
        assert_eq!(answer.wrong_fields(), wrong, "{fields:.200}");
        let path = format!("{keys}/skey_01h2xcejqtf2nbrexx3vqjhp41");
        let answer = owner.put(&path, &fields).await;
        if fields == json!({}) {
            assert_eq!(answer.problem(), (404, "send_key_not_found"));
        } else {
            assert_eq!(answer.wrong_fields(), wrong, "{fields:.200}");
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_has_twenty_at_most() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let url = format!("{}{}", gateway.daemon.base_url, keys_path(&gateway));
    let mut requests = JoinSet::new();
    for number in 0..24 {
        let request = gateway
            .http
            .post(&url)
            .header("x-api-secret", &owner.secret);
        let request = request.json(&json!({ "name": format!("Key {number}") }));
        requests.spawn(Answer::to(request));
    }
    let answers = requests.join_all().await;
    let created = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(created, 20);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(answer.problem(), (409, "too_many_send_keys"));
    }
    gateway.stop().await;
}
