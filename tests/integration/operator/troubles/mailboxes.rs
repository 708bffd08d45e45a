//! `mailgate mailboxes`: those in trouble.

use serde_json::json;

use super::{answered, run, waiting};
use crate::support::gateway::{Gateway, MAILBOX};

#[tokio::test(flavor = "multi_thread")]
async fn mailboxes_in_trouble_are_listed() {
    let gateway = Gateway::start().await;
    let listed = answered(&gateway, &["mailboxes", "list"]).await;
    let all = listed["mailboxes"].as_array().unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["email"], MAILBOX);
    assert_eq!(all[0]["status"], "active");
    assert_eq!(all[0]["problems"], json!([]));
    let failing = ["mailboxes", "list", "--failing"];
    let none = answered(&gateway, &failing).await;
    assert_eq!(none, json!({ "mailboxes": [] }));

    waiting(&gateway).await;
    for (statement, problems) in [
        ("SELECT 1", vec!["messages_fail"]),
        (
            "UPDATE mailboxes SET parked_until = now() + interval '1 hour'",
            vec!["parked", "messages_fail"],
        ),
        (
            "UPDATE mailboxes SET parked_until = NULL, refresh_due_at = now(),
                    access_token_expires_at = now() - interval '1 hour'",
            vec!["token_not_refreshed", "messages_fail"],
        ),
        (
            "UPDATE mailboxes SET status = 'disconnected', disconnect_reason = 'invalid_grant',
                    disconnected_at = now()",
            vec!["disconnected", "messages_fail"],
        ),
    ] {
        sqlx::query(statement)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        let listed = answered(&gateway, &failing).await;
        assert_eq!(listed["mailboxes"][0]["problems"], json!(problems));
    }
    let table = run(&gateway, &failing).await;
    table.succeeds();
    assert!(
        table.stdout.contains("disconnected: invalid_grant"),
        "{}",
        table.stdout
    );
    // Its user took it away: nobody has to do anything.
    for statement in [
        "UPDATE mailboxes SET disconnect_reason = 'removed'",
        "DELETE FROM spool",
    ] {
        sqlx::query(statement)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }
    assert_eq!(answered(&gateway, &failing).await, none);
    gateway.stop().await;
}
