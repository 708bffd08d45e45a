//! What the operator reads of an account, and what it takes to delete one.

use serde_json::{Value, json};

use super::{answered, just_logs, subscriber};
use crate::command_line::process::Invocation;
use crate::portal::visitor::Visitor;
use crate::support::caller::{Caller, is_moment, text};
use crate::support::gateway::{Gateway, SEAL_KEY, create_app};

/// Runs `mailgate apps list` with `--json`.
async fn apps(gateway: &Gateway, arguments: &[&str]) -> Vec<Value> {
    let all = ["apps", "list", "--json"].iter().chain(arguments);
    let finished = Invocation::new(all)
        .set("DATABASE__URL", &gateway.database_url)
        .set("SEAL__KEYS", SEAL_KEY)
        .finish()
        .await;
    finished.succeeds();
    just_logs(&finished.stderr);
    assert!(!finished.stdout.contains("pk_"), "{}", finished.stdout);
    assert!(!finished.stdout.contains("sek_"), "{}", finished.stdout);
    let listed: Value = serde_json::from_str(&finished.stdout).unwrap();
    listed["apps"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_shown_with_what_it_has_and_may() {
    let gateway = Gateway::start().await;
    let (url, id) = (&gateway.database_url, gateway.subscriber.to_string());
    let (other, _) = create_app(&gateway.daemon, "Another").await;
    let shown = answered(url, &["show", &id]).await;
    assert_eq!(shown["last_signed_in_at"], Value::Null);
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    assert_eq!(gateway.send_to("tempfail@example.com").await.0, 202);
    assert_eq!(gateway.send_to("permfail@example.com").await.0, 502);
    let _visitor = Visitor::signed_in(&gateway).await;
    gateway
        .eventually("the counters", async |_| {
            let shown = answered(url, &["show", &id]).await;
            shown["last_24_hours"] == json!({ "sent": 1, "failed": 1 })
        })
        .await;
    let shown = answered(url, &["show", &id]).await;
    assert_eq!(shown["subscriber_id"], id, "{shown}");
    assert_eq!(shown["status"], "active");
    assert_eq!(shown["suspension_reason"], Value::Null);
    assert_eq!(shown["subscription_status"], "active");
    for (name, number) in [
        ("apps", 1),
        ("mailboxes", 1),
        ("remembered_mailboxes", 1),
        ("end_users", 1),
        ("waiting_messages", 1),
    ] {
        assert_eq!(shown[name], number, "{name} in {shown}");
    }
    assert!(shown["waiting_bytes"].as_i64().unwrap() > 0, "{shown}");
    assert_eq!(shown["last_30_days"], shown["last_24_hours"]);
    is_moment(text(&shown, "last_signed_in_at"));
    is_moment(text(&shown, "created_at"));
    assert_eq!(shown["limits"]["apps_per_subscriber"], 1000, "{shown}");
    assert!(!shown.to_string().contains("sk_"), "{shown}");
    let none = answered(url, &["show", &other.to_string()]).await;
    assert_eq!(none["last_30_days"], json!({ "sent": 0, "failed": 0 }));
    assert_eq!((&none["apps"], &none["mailboxes"]), (&json!(1), &json!(0)));
    answered(url, &["suspend", &id, "--reason", "Spam"]).await;
    let words = subscriber(url, &["show", &id]).await;
    words.succeeds();
    assert!(words.stdout.contains(": Spam"), "{}", words.stdout);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apps_are_listed_of_all_or_of_one() {
    let gateway = Gateway::start().await;
    let (other, app) = create_app(&gateway.daemon, "Another").await;
    let all = apps(&gateway, &[]).await;
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[0]["app_id"], gateway.app.slug);
    assert_eq!(all[0]["mailboxes"], 1);
    let other = other.to_string();
    let own = apps(&gateway, &["--subscriber", &other]).await;
    assert_eq!(
        own,
        apps(&gateway, &["--limit", "1", "--offset", "1"]).await
    );
    let behind = Invocation::new(["apps", "list", "--offset", "2"])
        .set("DATABASE__URL", &gateway.database_url)
        .set("SEAL__KEYS", SEAL_KEY)
        .finish()
        .await;
    assert_eq!(behind.stdout, "No more rows.\n");
    for (limit, is_told) in [("1", true), ("2", true), ("3", false)] {
        let listed = Invocation::new(["apps", "list", "--limit", limit])
            .set("DATABASE__URL", &gateway.database_url)
            .set("SEAL__KEYS", SEAL_KEY)
            .finish()
            .await;
        let hint = format!("there may be more: --offset {limit}");
        assert_eq!(listed.stderr.contains(&hint), is_told, "{}", listed.stderr);
    }
    assert_eq!(own[0]["id"], app.id.to_string());
    assert_eq!(own[0]["subscriber_id"], other);
    assert_eq!(own[0]["name"], "Another");
    is_moment(text(&own[0], "created_at"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_that_is_not_confirmed_by_its_label() {
    let gateway = Gateway::start().await;
    let (url, id) = (&gateway.database_url, gateway.subscriber.to_string());
    assert_eq!(gateway.send_to("tempfail@example.com").await.0, 202);
    for further in [
        &[] as &[&str],
        &["--yes"],
        &["--label", "Demo"],
        &["--yes", "--label", "demo"],
        &["--yes", "--label", ""],
    ] {
        let arguments = [&["delete", &id], further].concat();
        let refused = subscriber(url, &arguments).await;
        let words = "would be deleted, and removed after 7 days unless it is restored, with 1 app, 1 mailbox and 1 waiting message. If you mean it, add --yes, and after --label exactly its label, quoted for your shell. Its owner has chosen it: Demo";
        refused.fails(1, &[words]);
    }
    assert_eq!(Caller::owner(&gateway).await.get("/me").await.status, 200);
    // Nothing that a shell or a terminal would act on, and no option.
    let hostile = "-x $(touch y) `z` \"q\" \u{202e}";
    sqlx::query("UPDATE subscribers SET label = $1")
        .bind(hostile)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let refused = subscriber(url, &["delete", &id]).await;
    refused.fails(1, &["has chosen it: -x $(touch y) `z` \"q\" ?"]);
    assert!(!refused.stderr.contains("--label -x"), "{}", refused.stderr);
    let refused = subscriber(url, &["delete", &id, "--now"]).await;
    refused.fails(1, &["would be deleted for good, with 1 app"]);
    let deleted = subscriber(url, &["delete", &id, "--yes", "--label", hostile]).await;
    deleted.succeeds();
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_account_is_shown_as_such_until_it_is_restored_or_removed() {
    let gateway = Gateway::start().await;
    let (url, id) = (&gateway.database_url, gateway.subscriber.to_string());
    let delete = ["delete", &id, "--yes", "--label", "Demo"];
    assert_eq!(
        answered(url, &["restore", &id]).await["changed"],
        false,
        "it isn't deleted"
    );
    let deleted = answered(url, &delete).await;
    assert_eq!(deleted["deleted"], id);
    let until = text(&deleted, "restorable_until");
    is_moment(until);
    assert_eq!(
        answered(url, &delete).await,
        deleted,
        "not longer than before"
    );
    for shown in [
        &answered(url, &["show", &id]).await,
        &answered(url, &["list"]).await["subscribers"][0],
    ] {
        assert_eq!(shown["status"], "deleted", "{shown}");
        assert_eq!(shown["deletion_due_at"], until);
    }
    let words = subscriber(url, &["show", &id]).await.stdout;
    let said = format!("deleted; it can be restored until {until}");
    assert!(words.contains(&said), "{words}");
    let again = subscriber(url, &["delete", &id]).await;
    again.fails(1, &[&format!("is deleted already; until {until}")]);
    assert_eq!(answered(url, &["restore", &id]).await["changed"], true);
    let shown = answered(url, &["show", &id]).await;
    assert_eq!(shown["status"], "active");
    assert_eq!(shown["deletion_due_at"], Value::Null);

    // One that is deleted already can be removed.
    answered(url, &delete).await;
    let removed = answered(url, &[&delete as &[&str], &["--now"]].concat()).await;
    assert_eq!(removed["restorable_until"], Value::Null);
    let gone = subscriber(url, &["restore", &id]).await;
    gone.fails(1, &["there is no subscriber"]);
    gateway.stop().await;
}
