//! Sends at once share one refresh.

use mailgate_types::plugin::Plugin;
use serde_json::json;
use tokio::task::JoinSet;

use super::LAPSED;
use crate::support::gateway::Gateway;

/// The mailbox that two gateways share stands at `plugin_b`, where both know the same sandbox.
const SHARED: &str = "shared@sandbox.example";

#[tokio::test(flavor = "multi_thread")]
async fn sends_at_once_share_one_refresh() {
    for (count, refused) in [(2, false), (20, false), (20, true)] {
        let gateway = Gateway::start().await;
        if refused {
            let authorization = &gateway.sandbox.authorization;
            authorization.expire_access_tokens().await.unwrap();
        } else {
            gateway.clock.advance(LAPSED);
        }
        send_at_once(&gateway, &[&gateway], "plugin_a", count).await;
        assert_eq!(gateway.sandbox.authorization.refreshes(), 1, "{count}");
        assert_eq!(gateway.arrived().await.len(), count);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_at_once_through_two_gateways_share_one_refresh() {
    for refused in [false, true] {
        let gateway = Gateway::start().await;
        let mut plugins = gateway.sandbox.plugins(&gateway.ca_file);
        plugins.remove("plugin_a");
        let replica = gateway.replica().plugins(plugins).start().await;
        gateway.connect(None, Plugin::B, SHARED).await;
        if refused {
            let authorization = &gateway.sandbox.authorization;
            authorization.expire_access_tokens().await.unwrap();
        } else {
            gateway.clock.advance(LAPSED);
            replica.clock.advance(LAPSED);
        }
        send_at_once(&gateway, &[&gateway, &replica], "plugin_b", 20).await;
        assert_eq!(gateway.sandbox.authorization.refreshes(), 1, "{refused}");
        assert_eq!(gateway.arrived().await.len(), 20);
        replica.stop().await;
        gateway.stop().await;
    }
}

/// Sends `count` messages of the gateway's app at once, through `doors` in turn; all go out.
async fn send_at_once(gateway: &Gateway, doors: &[&Gateway], plugin: &str, count: usize) {
    let mut sends = JoinSet::new();
    for door in doors.iter().cycle().take(count) {
        let request = gateway
            .http
            .post(format!("{}/send", door.daemon.base_url))
            .header("x-send-key", gateway.app.send_key.expose())
            .json(&json!({
                "pk": gateway.app.pushable_key.expose(),
                "to": "bob@example.com",
                "subject": "Hello",
                "body": "It works.",
                "plugin": plugin,
            }));
        sends.spawn(async move {
            let response = request.send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        });
    }
    for (status, answer) in sends.join_all().await {
        assert_eq!(status, 200, "{answer}");
    }
}
