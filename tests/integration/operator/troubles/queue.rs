//! `mailgate queue`: messages that wait are listed, shown and changed.

use serde_json::{Value, json};

use super::{answered, run, waiting};
use crate::support::gateway::{Gateway, MAILBOX};

fn ids(listed: &Value) -> Vec<&str> {
    let messages = listed["messages"].as_array().unwrap().iter();
    messages.map(|it| it["log_id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_is_listed_shown_and_changed() {
    let gateway = Gateway::start().await;
    let (one, two) = (waiting(&gateway).await, waiting(&gateway).await);
    let app = gateway.app.id.to_string();
    let listed = answered(&gateway, &["queue", "list"]).await;
    let mut found = ids(&listed);
    // Due when their waits end, which chance spreads.
    found.sort_unstable();
    assert_eq!(found, [one.as_str(), two.as_str()]);
    let message = &listed["messages"][0];
    assert_eq!(message["app_id"], app);
    assert_eq!(message["reason"], "temporary_failure");
    assert_eq!(message["attempts"], 1);
    assert_eq!(message["from_address"], MAILBOX);
    let mailbox = message["credential_id"].as_str().unwrap();
    for (arguments, expected) in [
        (vec!["--app", &app], 2),
        (vec!["--mailbox", mailbox], 2),
        (vec!["--mailbox", "cred_01h2xcejqtf2nbrexx3vqjhp41"], 0),
        (vec!["--reason", "temporary_failure"], 2),
        (vec!["--reason", "scheduled"], 0),
        (vec!["--limit", "1"], 1),
        (vec!["--offset", "2"], 0),
    ] {
        let arguments = [vec!["queue", "list"], arguments].concat();
        let listed = answered(&gateway, &arguments).await;
        assert_eq!(ids(&listed).len(), expected, "{arguments:?}");
    }
    let shown = answered(&gateway, &["queue", "show", &one]).await;
    assert_eq!(shown["log_id"], one);
    assert_eq!(shown["in_progress"], false);
    assert!(shown["error"].as_str().is_some_and(|it| !it.is_empty()));
    let table = run(&gateway, &["queue", "list"]).await;
    table.succeeds();
    assert!(table.stdout.starts_with("MESSAGE "), "{}", table.stdout);
    assert!(table.stdout.contains(&one) && table.stdout.contains(MAILBOX));
    assert!(!table.stdout.contains("tempfail"), "{}", table.stdout);

    let retried = answered(&gateway, &["queue", "retry", &one]).await;
    assert_eq!(retried["log_id"], one);
    let canceled = answered(&gateway, &["queue", "cancel", &two]).await;
    assert_eq!(canceled, json!({ "canceled": 1, "left": 0 }));
    let listed = answered(&gateway, &["queue", "list"]).await;
    assert!(!ids(&listed).contains(&two.as_str()));
    let unknown = "log_01h2xcejqtf2nbrexx3vqjhp41";
    for action in ["show", "retry", "cancel"] {
        let finished = run(&gateway, &["queue", action, unknown]).await;
        finished.fails(1, &[unknown]);
    }
    run(&gateway, &["queue", "list", "--app", "nobody"])
        .await
        .fails(1, &["--app"]);
    // Usage.
    for arguments in [
        vec!["queue", "cancel"],
        vec!["queue", "cancel", "--app", &app],
        vec!["queue", "show", "nonsense"],
        vec!["queue", "list", "--reason", "x"],
        vec!["queue", "list", "--limit", "0"],
    ] {
        let finished = run(&gateway, &arguments).await;
        assert_eq!(finished.status.code(), Some(2), "{arguments:?}");
    }
    waiting(&gateway).await;
    gateway
        .eventually("nothing is in hand", async |gateway| {
            let all = ["queue", "cancel", "--app", &app, "--yes", "--json"];
            let finished = run(gateway, &all).await;
            let listed = answered(gateway, &["queue", "list"]).await;
            finished.status.success() && ids(&listed).is_empty()
        })
        .await;
    let statuses: Vec<(String,)> = sqlx::query_as("SELECT DISTINCT status FROM email_logs")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(statuses, [("failed_perm".to_owned(),)]);
    gateway.stop().await;
}
