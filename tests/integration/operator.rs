//! `mailgate subscriber` and `mailgate openapi`: child processes beside a running gateway.

mod accounts;
mod limits;
mod reseal;
pub mod troubles;

use serde_json::{Value, json};

use crate::command_line::process::{Finished, Invocation};
use crate::support::caller::Caller;
use crate::support::database;
use crate::support::gateway::{Gateway, MAILBOX, SEAL_KEY};

pub async fn subscriber(database_url: &str, arguments: &[&str]) -> Finished {
    let all = ["subscriber"].iter().chain(arguments);
    Invocation::new(all)
        .set("DATABASE__URL", database_url)
        .set("SEAL__KEYS", SEAL_KEY)
        .finish()
        .await
}

/// Runs it with `--json`; answers what it printed, which is one line.
pub async fn answered(database_url: &str, arguments: &[&str]) -> Value {
    let finished = subscriber(database_url, &[arguments, &["--json"]].concat()).await;
    finished.succeeds();
    just_logs(&finished.stderr);
    assert_eq!(finished.stdout.lines().count(), 1, "{}", finished.stdout);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// Asserts that standard error has nothing but lines of the log.
fn just_logs(stderr: &str) {
    for line in stderr.lines() {
        assert!(line.contains(" INFO ") || line.contains(" WARN "), "{line}");
    }
}

const GRACE: [&str; 5] = ["create", "--label", "Grace", "--email", "grace@example.com"];

/// `GET /me` at the gateway.
async fn me(gateway: &Gateway, secret: &str) -> (u16, Value) {
    let request = gateway.http.get(format!("{}/me", gateway.daemon.base_url));
    let response = request.header("x-api-secret", secret).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_is_created_listed_renewed_and_deleted() {
    let gateway = Gateway::start().await;
    let url = gateway.database_url.as_str();
    let created = answered(url, &GRACE).await;
    let id = created["subscriber_id"].as_str().unwrap();
    let secret = created["api_secret"].as_str().unwrap();
    assert_eq!(created.as_object().unwrap().len(), 2, "{created}");
    let (status, answer) = me(&gateway, secret).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["subscriber_id"], id);
    assert_eq!(answer["label"], "Grace");
    assert_eq!(answer["email"], "grace@example.com");

    let listed = answered(url, &["list"]).await;
    let all = listed["subscribers"].as_array().unwrap();
    assert_eq!(all.len(), 2);
    let entry = all.iter().find(|it| it["subscriber_id"] == id).unwrap();
    assert_eq!(entry["label"], "Grace");
    assert_eq!(entry["email"], "grace@example.com");
    assert_eq!(entry["subscription_status"], "active");
    assert!(!listed.to_string().contains("sk_"), "{listed}");

    let renewed = answered(url, &["reset-secret", id]).await;
    assert_eq!(renewed["subscriber_id"], id);
    let new = renewed["api_secret"].as_str().unwrap();
    assert_ne!(new, secret);
    assert_eq!(me(&gateway, secret).await.0, 401);
    assert_eq!(me(&gateway, new).await.0, 200);

    // One that was stolen, with what the thief has made by it.
    let thief = Caller {
        gateway: &gateway,
        secret: new.to_owned(),
    };
    let left = json!({ "name": "Left", "scopes": ["me:read"] });
    let left = thief.post("/me/api-secrets", &left).await.success(201);
    let left = left["api_secret"].as_str().unwrap();
    assert_eq!(me(&gateway, left).await.0, 200);
    let renewed = answered(url, &["reset-secret", id, "--all-keys"]).await;
    assert_eq!(me(&gateway, left).await.0, 401);
    assert_eq!(me(&gateway, new).await.0, 401);
    let new = renewed["api_secret"].as_str().unwrap();

    let set = answered(url, &["set-email", id, "--email", "new@example.com"]).await;
    assert_eq!(
        set,
        json!({ "subscriber_id": id, "email": "new@example.com" })
    );
    assert_eq!(me(&gateway, new).await.1["email"], "new@example.com");

    let counted = answered(url, &["show", id]).await;
    assert_eq!(counted["apps"], 0, "{counted}");
    let deleted = ["delete", id, "--now", "--yes", "--label", "Grace"];
    let deleted = answered(url, &deleted).await;
    assert_eq!(deleted, json!({ "deleted": id, "restorable_until": null }));
    assert_eq!(me(&gateway, new).await.0, 401);
    let listed = answered(url, &["list"]).await;
    assert_eq!(listed["subscribers"].as_array().unwrap().len(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_read_texts() {
    let gateway = Gateway::start().await;
    let url = gateway.database_url.as_str();
    let created = subscriber(url, &GRACE).await;
    created.succeeds();
    let word = |name: &str| {
        let line = created.stdout.lines().find(|it| it.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{name} in {}", created.stdout));
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let (id, secret) = (word("subscriber_id"), word("api_secret"));
    assert_eq!(created.stdout.matches(&secret).count(), 1);
    assert_eq!(me(&gateway, &secret).await.0, 200);
    let listed = subscriber(url, &["list"]).await;
    listed.succeeds();
    let line = listed.stdout.lines().find(|line| line.contains(&id));
    let line = line.expect("it is listed");
    assert!(line.contains("Grace") && line.contains("grace@example.com"));
    assert!(!listed.stdout.contains("sk_"), "{}", listed.stdout);
    let renewed = subscriber(url, &["reset-secret", &id]).await;
    renewed.succeeds();
    assert!(!renewed.stdout.contains(&secret));
    assert_eq!(renewed.stdout.matches("sk_").count(), 1);
    let shown = subscriber(url, &["show", &id]).await;
    shown.succeeds();
    for word in ["Grace", "active", "0 of 1000 (limits.apps_per_subscriber)"] {
        assert!(shown.stdout.contains(word), "{word} in {}", shown.stdout);
    }
    let deleted = ["delete", &id, "--now", "--yes", "--label", "Grace"];
    let deleted = subscriber(url, &deleted).await;
    deleted.succeeds();
    assert!(deleted.stdout.contains(&id), "{}", deleted.stdout);
    gateway.stop().await;
}

#[tokio::test]
async fn what_is_wrong_is_said_in_a_line() {
    let url = database::create().await;
    let unknown = "sub_01h2xcejqtf2nbrexx3vqjhp41";
    let long = "x".repeat(256);
    for (arguments, word) in [
        (
            vec!["create", "--label", "G", "--email", "nonsense"],
            "--email",
        ),
        (vec!["create", "--label", "G", "--email", ""], "--email"),
        (
            vec!["create", "--label", " ", "--email", "g@example.com"],
            "--label",
        ),
        (
            vec!["create", "--label", "\u{200b}", "--email", "g@example.com"],
            "--label",
        ),
        (
            vec!["create", "--label", "a\nb", "--email", "g@example.com"],
            "--label",
        ),
        (
            vec!["create", "--label", &long, "--email", "g@example.com"],
            "--label",
        ),
        (vec!["reset-secret", "nonsense"], "nonsense"),
        (vec!["reset-secret", unknown], unknown),
        (
            vec!["set-email", unknown, "--email", "a@example.com"],
            unknown,
        ),
        (vec!["set-email", unknown, "--email", "nobody"], "nobody"),
        (vec!["delete", "cred_01h2xcejqtf2nbrexx3vqjhp41"], "cred_"),
        (vec!["delete", unknown], unknown),
        (
            vec!["delete", unknown, "--yes", "--label", "Grace"],
            unknown,
        ),
        (vec!["show", unknown], unknown),
        (vec!["show", "nonsense"], "nonsense"),
    ] {
        for further in [&[] as &[&str], &["--json"]] {
            let finished = subscriber(&url, &[&arguments, further].concat()).await;
            finished.fails(1, &[word]);
            assert_eq!(finished.stdout, "", "{arguments:?}");
        }
    }
    assert_eq!(
        answered(&url, &["list"]).await,
        json!({ "subscribers": [] })
    );
    let listed = subscriber(&url, &["list"]).await;
    listed.succeeds();
    assert!(listed.stdout.contains("subscriber create"));
}

#[tokio::test]
async fn settings_that_lack_are_named() {
    Invocation::new(["subscriber", "list"])
        .finish()
        .await
        .fails(2, &["database.url", "seal.keys"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_subscriber_takes_apps_and_mailboxes_along() {
    let gateway = Gateway::start().await;
    let id = gateway.subscriber.to_string();
    let mut session = crate::support::smtp_client::SmtpClient::authenticated(&gateway).await;
    let mut deletion = Invocation::new([
        "subscriber",
        "delete",
        &id,
        "--now",
        "--yes",
        "--label",
        "Demo",
    ])
    .set("DATABASE__URL", &gateway.database_url)
    .set("SEAL__KEYS", SEAL_KEY);
    for (plugin, settings) in gateway.sandbox.plugins(&gateway.ca_file) {
        for (name, value) in settings.as_table().unwrap() {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let name = format!("PLUGINS__{plugin}__{name}").to_uppercase();
            deletion = deletion.set(&name, value);
        }
    }
    let withdrawn = gateway.sandbox.authorize("http://127.0.0.1:1/x", MAILBOX);
    assert!(withdrawn.await.is_ok());
    let grants = gateway.ca_file.parent().unwrap().join("grants");
    let count = || std::fs::read_dir(&grants).unwrap().count();
    assert_eq!(count(), 1);
    deletion.finish().await.succeeds();
    assert_eq!(count(), 0, "the grant is revoked before the command ends");
    for table in ["subscribers", "apps", "end_users", "mailboxes"] {
        let count = format!("SELECT count(*) FROM {table}");
        let left: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        assert_eq!(left, 0, "{table}");
    }
    let reply = session.reply().await;
    assert!(reply.starts_with("421 4.7.0"), "{reply}");
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 401, "{answer}");
    gateway.stop().await;
}

#[tokio::test]
async fn the_interfaces_description_needs_no_settings() {
    let finished = Invocation::new(["openapi"]).finish().await;
    finished.succeeds();
    just_logs(&finished.stderr);
    let document: Value = serde_json::from_str(&finished.stdout).unwrap();
    let version = document["openapi"].as_str().unwrap();
    assert!(version.starts_with("3.1"), "{version}");
    for (path, methods) in [
        ("/me", vec!["get"]),
        ("/apps", vec!["get", "post"]),
        ("/apps/{pushable_key}", vec!["get", "put", "delete"]),
        ("/send", vec!["post"]),
        ("/subscribers", vec!["post"]),
    ] {
        for method in methods {
            let operation = &document["paths"][path][method];
            assert!(operation.is_object(), "{method} {path}");
        }
    }
}
