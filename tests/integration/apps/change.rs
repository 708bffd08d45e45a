//! `PUT /apps/{pushable_key}`.

use mailgate_types::plugin::Plugin;
use serde_json::json;

use super::{Caller, path};
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_given_stays_and_an_empty_address_goes() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let path = path(&gateway.app);
    let fields = ["logo_url", "webhook_url", "callback_url"];
    for field in fields {
        let address = format!("https://example.com/{field}");
        let answer = caller.put(&path, &json!({ field: address })).await;
        assert_eq!(answer.success(200)["name"], "Demo");
    }
    for field in fields {
        let before = caller.get(&path).await.success(200);
        assert_eq!(before[field], format!("https://example.com/{field}"));
        let kept = caller.put(&path, &json!({ field: null })).await;
        kept.success(200);
        assert_eq!(caller.get(&path).await.success(200), before);
        caller.put(&path, &json!({ field: "" })).await.success(200);
        let mut expected = before;
        expected[field] = json!("");
        assert_eq!(caller.get(&path).await.success(200), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apps_mode_changes_while_no_mailbox_is_orphaned() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let path = path(&gateway.app);
    // The one implicit user belongs to nobody else.
    for flag in [true, false, true] {
        for field in ["multiuser", "multilink"] {
            let answer = caller.put(&path, &json!({ field: flag })).await;
            answer.success(200);
            let detail = caller.get(&path).await.success(200);
            assert_eq!(detail[field], flag, "{field}");
        }
    }
    gateway
        .connect(Some("u1"), Plugin::A, "grace@sandbox.example")
        .await;
    let before = caller.get(&path).await.success(200);
    let change = json!({ "name": "New", "multiuser": false });
    let answer = caller.put(&path, &change).await;
    assert_eq!(answer.problem(), (409, "would_orphan_mailboxes"));
    assert!(
        answer.body["detail"]
            .as_str()
            .unwrap()
            .contains("multiuser")
    );
    assert_eq!(caller.get(&path).await.success(200), before);
    // A mailbox of each plugin is one of a kind.
    gateway
        .connect(Some("u1"), Plugin::B, "grace@sandbox.example")
        .await;
    for flag in [false, true] {
        let answer = caller.put(&path, &json!({ "multilink": flag })).await;
        answer.success(200);
    }
    gateway
        .connect(Some("u1"), Plugin::A, "lin@sandbox.example")
        .await;
    let before = caller.get(&path).await.success(200);
    let change = json!({ "logo_url": "https://example.com/", "multilink": false });
    let answer = caller.put(&path, &change).await;
    assert_eq!(answer.problem(), (409, "would_orphan_mailboxes"));
    assert_eq!(caller.get(&path).await.success(200), before);
}
