//! Keys that may send from some mailboxes only.

use chrono::TimeDelta;
use mailgate_types::plugin::Plugin;

use super::*;

const NOT_ALLOWED: (u16, &str) = (403, "mailbox_not_allowed");
const NOT_AUTHORIZED: &str = "550 5.7.1 From address not authorized";

async fn multilink() -> Gateway {
    let gateway = Gateway::builder()
        .set("SANDBOX__PLUGIN_A", "gmail_api")
        .set("SANDBOX__PLUGIN_B", "graph")
        .start()
        .await;
    sqlx::query("UPDATE apps SET multilink = true")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway.clock.advance(TimeDelta::seconds(1));
    gateway
}

#[tokio::test(flavor = "multi_thread")]
async fn it_sends_from_its_mailboxes_and_their_aliases_alone() {
    let gateway = multilink().await;
    let bea = "bea@sandbox.example";
    let connected = gateway.connect(None, Plugin::B, bea).await;
    let fields = json!({ "name": "Bea", "credential_ids": [connected.credential.to_string()] });
    let created = create(&gateway, &fields).await;
    let key = text(&created, "send_key");
    // Without a choice, the main key takes the mailbox connected first, and this one its own.
    let main = send(&gateway, gateway.app.send_key.expose()).await;
    assert_eq!(main.success(200)["from"], MAILBOX);
    for further in [
        json!({}),
        json!({ "from": bea }),
        json!({ "plugin": "plugin_b" }),
        json!({ "from": "bea.alias@sandbox.example" }),
    ] {
        // The second time from memory.
        for _ in 0..2 {
            let answer = send_with(&gateway, key, &further).await.success(200);
            let from = further.get("from").and_then(Value::as_str).unwrap_or(bea);
            assert_eq!(answer["from"], from, "{further}");
        }
    }
    let sent = gateway.sandbox.inbox.count();
    let nobody = send_with(&gateway, key, &json!({ "from": "nobody@sandbox.example" })).await;
    for further in [
        json!({ "from": MAILBOX }),
        json!({ "from": "ada.alias@sandbox.example" }),
        json!({ "plugin": "plugin_a" }),
    ] {
        for _ in 0..2 {
            // What the main key is let through with just before doesn't help.
            send_with(&gateway, gateway.app.send_key.expose(), &further)
                .await
                .success(200);
            let answer = send_with(&gateway, key, &further).await;
            assert_eq!(answer.problem(), NOT_ALLOWED, "{further}");
            // Whether there is such a mailbox isn't said.
            assert_eq!(answer.body["detail"], nobody.body["detail"]);
        }
    }
    assert_eq!(gateway.sandbox.inbox.count(), sent + 6);
    let mut client = session(&gateway, &gateway.app.slug, key).await;
    for from in [bea, "bea.alias@sandbox.example"] {
        let reply = submit(&mut client, from).await;
        assert!(reply.starts_with("250 2.0.0"), "{reply}");
    }
    for from in [
        MAILBOX,
        "ada.alias@sandbox.example",
        "nobody@sandbox.example",
    ] {
        assert_eq!(submit(&mut client, from).await, NOT_AUTHORIZED);
    }
    // Both are among the refusals.
    let owner = Caller::owner(&gateway).await;
    let path = format!("{}/refusals", path(&gateway.app));
    gateway
        .eventually("refusals are written", async |_| {
            let refused = owner.get(&path).await.success(200).to_string();
            refused.matches("mailbox_not_allowed").count() >= 2
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_mailbox_it_sends_from_no_other() {
    let gateway = multilink().await;
    let bea = gateway
        .connect(None, Plugin::B, "bea@sandbox.example")
        .await;
    let fields = json!({ "name": "Bea", "credential_ids": [bea.credential.to_string()] });
    let created = create(&gateway, &fields).await;
    let key = text(&created, "send_key");
    send(&gateway, key).await.success(200);
    let owner = Caller::owner(&gateway).await;
    let credential = format!("{}/credentials/{}", path(&gateway.app), bea.credential);
    owner.delete(&credential).await;
    assert_eq!(send(&gateway, key).await.problem(), NOT_ALLOWED);
    let mut client = session(&gateway, &gateway.app.slug, key).await;
    assert_eq!(submit(&mut client, MAILBOX).await, NOT_AUTHORIZED);
    // It is the same mailbox when it comes back.
    gateway
        .connect(None, Plugin::B, "bea@sandbox.example")
        .await;
    let answer = send(&gateway, key).await.success(200);
    assert_eq!(answer["from"], "bea@sandbox.example");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_a_multiuser_app_may_be_all_of_it() {
    let gateway = multilink().await;
    sqlx::query("UPDATE apps SET multiuser = true, multilink = false")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let grace = (gateway.connect(Some("user-1"), Plugin::A, "grace@sandbox.example")).await;
    (gateway.connect(Some("user-2"), Plugin::A, "alan@sandbox.example")).await;
    let fields = json!({ "name": "Grace", "credential_ids": [grace.credential.to_string()] });
    let created = create(&gateway, &fields).await;
    let key = text(&created, "send_key");
    let answer = send_with(&gateway, key, &json!({ "user_id": "user-1" })).await;
    assert_eq!(answer.success(200)["from"], "grace@sandbox.example");
    for further in [
        json!({ "user_id": "user-2" }),
        json!({ "user_id": "user-1", "from": "alan@sandbox.example" }),
        json!({ "user_id": "nobody" }),
    ] {
        let answer = send_with(&gateway, key, &further).await;
        assert_eq!(answer.problem(), NOT_ALLOWED, "{further}");
    }
    gateway.stop().await;
}
