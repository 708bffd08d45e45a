//! An address that several mailboxes of an app may send as, and the sandbox's own.

use mailgate_types::plugin::Plugin;
use serde_json::json;

use super::{addresses, execute, is_refused, send, submit};
use crate::support::gateway::{Gateway, MAILBOX};

async fn start() -> Gateway {
    let builder = Gateway::builder()
        .set("SANDBOX__PLUGIN_A", "gmail_api")
        .set("SANDBOX__PLUGIN_B", "graph");
    let gateway = builder.start().await;
    execute(&gateway, "UPDATE apps SET multilink = true").await;
    gateway
}

/// Whose mailbox the newest message came from, and what its From says.
async fn newest(gateway: &Gateway) -> (String, String) {
    let newest = gateway.sandbox.inbox.list(1).remove(0);
    let raw = gateway.sandbox.inbox.raw(&newest.id).await.unwrap();
    let raw = String::from_utf8(raw.unwrap()).unwrap();
    let from = raw.lines().find_map(|line| line.strip_prefix("From: "));
    (newest.mailbox.clone(), from.unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_tells_them_as_both_providers_do() {
    let gateway = start().await;
    let bea = "bea@sandbox.example";
    gateway.connect(None, Plugin::B, bea).await;
    assert_eq!(
        addresses(&gateway).await,
        [bea, "bea.alias@sandbox.example"]
    );
    for (from, mailbox) in [
        ("ada.alias@sandbox.example", MAILBOX),
        ("bea.alias@sandbox.example", bea),
    ] {
        let (status, answer) = send(&gateway, from).await;
        assert_eq!((status, &answer["from"]), (200, &json!(from)), "{answer}");
        assert_eq!(
            newest(&gateway).await,
            (mailbox.to_owned(), from.to_owned())
        );
        let reply = submit(&gateway, from).await;
        assert!(reply.starts_with("250 2.0.0"), "{reply}");
        assert_eq!(
            newest(&gateway).await,
            (mailbox.to_owned(), from.to_owned())
        );
    }
    for from in ["ada.pending@sandbox.example", "bea.pending@sandbox.example"] {
        is_refused(&gateway, from).await;
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mailbox_whose_own_address_it_is_comes_first() {
    let gateway = start().await;
    let alias = "ada.alias@sandbox.example";
    let (status, _) = send(&gateway, alias).await;
    assert_eq!((status, newest(&gateway).await.0.as_str()), (200, MAILBOX));
    // Connected later, and at the other provider: it is its own.
    gateway.connect(None, Plugin::B, alias).await;
    let (status, answer) = send(&gateway, alias).await;
    assert_eq!(
        (status, &answer["plugin"]),
        (200, &json!("plugin_b")),
        "{answer}"
    );
    assert_eq!(newest(&gateway).await.0, alias);
    let reply = submit(&gateway, alias).await;
    assert!(reply.ends_with("via plugin_b"), "{reply}");
    // The plugin that is asked for decides before that.
    let forced = json!({
        "to": "bob@example.com", "subject": "s", "body": "b", "from": alias, "plugin": "plugin_a",
    });
    let (status, answer) = gateway.send(forced).await;
    assert_eq!((status, &answer["from"]), (200, &json!(alias)), "{answer}");
    assert_eq!(newest(&gateway).await.0, MAILBOX);
    execute(
        &gateway,
        "UPDATE mailboxes SET status = 'disconnected' WHERE plugin = 'plugin_b'",
    )
    .await;
    let (status, answer) = send(&gateway, alias).await;
    assert_eq!(
        (status, &answer["plugin"]),
        (200, &json!("plugin_a")),
        "{answer}"
    );
    gateway.stop().await;
}
