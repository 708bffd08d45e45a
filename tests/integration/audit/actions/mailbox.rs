//! A mailbox that ends: the trail tells who has ended it.

use std::collections::BTreeSet;

use mailgate_types::plugin::Plugin;

use crate::audit::{Row, rows, since};
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn who_ends_a_mailbox_is_told_apart() {
    let gateway = Gateway::start().await;
    let reason = |row: &Row| row.details["reason"].as_str().map(str::to_owned);
    let shown = |rows: Vec<Row>| {
        let shown = rows
            .iter()
            .map(|row| (row.action.clone(), row.actor.clone(), reason(row)));
        shown.collect::<BTreeSet<_>>()
    };
    let by = |action: &str, actor: &str, reason: Option<&str>| {
        (
            action.to_owned(),
            actor.to_owned(),
            reason.map(str::to_owned),
        )
    };
    // The user, by connecting another one.
    let before = rows(&gateway).await;
    gateway
        .connect(None, Plugin::A, "grace@sandbox.example")
        .await;
    let replaced = BTreeSet::from([
        by("user.connected", "user", None),
        by("user.disconnected", "user", Some("replaced")),
    ]);
    assert_eq!(shown(since(&gateway, &before).await), replaced);
    // The provider, by refusing the grant.
    let before = rows(&gateway).await;
    let authorization = &gateway.sandbox.authorization;
    authorization
        .withdraw("grace@sandbox.example")
        .await
        .unwrap();
    assert_eq!(gateway.send_to("bob@example.com").await.0, 502);
    let refused = BTreeSet::from([by("user.disconnected", "provider", Some("invalid_grant"))]);
    assert_eq!(shown(since(&gateway, &before).await), refused);
    gateway.stop().await;
}
