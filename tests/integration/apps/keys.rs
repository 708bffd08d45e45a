//! Keys that are renewed: the old one is worthless at once, at both doors of every replica.

use serde_json::json;
use tokio::task::JoinSet;

use super::{Caller, authenticate, message, path, send, session, text};
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_send_key_shuts_the_old_one_out() {
    let gateway = Gateway::start().await;
    let replica = gateway.replica().start().await;
    let caller = Caller::owner(&gateway).await;
    let path = path(&gateway.app);
    let (slug, pk) = (&gateway.app.slug, gateway.app.pushable_key.expose());
    let old = gateway.app.send_key.expose();
    let mut open = Vec::new();
    for gateway in [&gateway, &replica] {
        let mut client = session(gateway, slug, old).await;
        client.begin_data("bob@example.com").await;
        open.push(client);
        open.push(session(gateway, slug, old).await);
    }
    let reset = format!("{path}/reset-send-key");
    let renewed = caller.reset(&reset).await.success(200);
    let new = text(&renewed, "send_key");
    assert_ne!(new, old);
    for (index, client) in open.iter_mut().enumerate() {
        if index % 2 == 1 {
            client.begin_data("bob@example.com").await;
        }
        client.write(&message()).await;
        client.write(b"\r\n.\r\n").await;
        let reply = client.reply().await;
        assert_eq!(reply, "535 5.7.8 Authentication failed");
        assert_eq!(client.next_reply().await, None);
    }
    for gateway in [&gateway, &replica] {
        let answer = send(gateway, old, pk).await;
        assert_eq!(answer.problem(), (401, "invalid_send_key"));
        let (_, reply) = authenticate(gateway, slug, old).await;
        assert_eq!(reply, "535 5.7.8 Authentication failed");
        let mut client = session(gateway, slug, new).await;
        // The replica's own sandbox doesn't know the mailbox's token; only the first one's does.
        if gateway.app.slug == *slug {
            let reply = client.submit("bob@example.com", &message()).await;
            assert!(reply.starts_with("250 2.0.0"), "{reply}");
            send(gateway, new, pk).await.success(200);
        }
    }
    let shown = caller.get(&format!("{path}/send-key")).await.success(200);
    assert_eq!(shown, json!({ "send_key": new }));
    assert_eq!(gateway.sandbox.inbox.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_at_once_leave_one_key() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let path = path(&gateway.app);
    let url = format!("{}{path}/reset-send-key", gateway.daemon.base_url);
    let mut resets = JoinSet::new();
    for _ in 0..8 {
        let request = gateway.http.post(&url);
        resets.spawn(super::Answer::to(
            request.header("x-api-secret", &caller.secret),
        ));
    }
    let mut keys = vec![gateway.app.send_key.expose().to_owned()];
    for answer in resets.join_all().await {
        keys.push(text(&answer.success(200), "send_key").to_owned());
    }
    let shown = caller.get(&format!("{path}/send-key")).await.success(200);
    let mut good = Vec::new();
    for key in &keys {
        let pk = gateway.app.pushable_key.expose();
        if send(&gateway, key, pk).await.status == 200 {
            good.push(key.as_str());
        }
    }
    assert_eq!(good, [text(&shown, "send_key")]);
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_pushable_key_names_the_app_from_then_on() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let before = caller.get(&path(&gateway.app)).await.success(200);
    let reset = format!("{}/reset-pushable-key", path(&gateway.app));
    let renewed = caller.reset(&reset).await.success(200);
    let new = text(&renewed, "pushable_key");
    let old = gateway.app.pushable_key.expose();
    assert_ne!(new, old);
    for path in [
        path(&gateway.app),
        format!("{}/send-key", path(&gateway.app)),
    ] {
        let answer = caller.get(&path).await;
        assert_eq!(answer.problem(), (404, "app_not_found"));
    }
    let mut expected = before;
    expected["pushable_key"] = json!(new);
    let after = caller.get(&format!("/apps/{new}")).await.success(200);
    assert_eq!(after, expected);
    let key = gateway.app.send_key.expose();
    let answer = send(&gateway, key, old).await;
    assert_eq!(answer.problem(), (403, "pk_mismatch"));
    send(&gateway, key, new).await.success(200);
}
