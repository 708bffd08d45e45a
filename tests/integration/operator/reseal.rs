//! `mailgate reseal` beside gateways that run.

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_storage::sealed::{COLUMNS, LAPSING, Replacement};
use mailgate_storage::{acme_accounts, certificates};
use mailgate_types::audit::Author;
use mailgate_types::ids::{AcmeAccountId, CertificateId, WebhookConfigId};
use mailgate_types::plugin::Plugin;
use mailgate_types::seal::SealKeys;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _};

use super::just_logs;
use crate::command_line::process::{Finished, Invocation, http_client};
use crate::command_line::serve::replica;
use crate::support::database;
use crate::support::gateway::{Gateway, OPERATOR, SEAL_KEY};

const NEW_KEY: &str = "new:ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

fn both() -> String {
    format!("{NEW_KEY},{SEAL_KEY}")
}

async fn reseal(database_url: &str, keys: &str, arguments: &[&str]) -> Finished {
    let all = ["reseal"].iter().chain(arguments);
    Invocation::new(all)
        .set("DATABASE__URL", database_url)
        .set("SEAL__KEYS", keys)
        .finish()
        .await
}

async fn answered(database_url: &str) -> Value {
    let finished = reseal(database_url, &both(), &["--json"]).await;
    finished.succeeds();
    // No terminal, no progress.
    just_logs(&finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// Values in all columns that don't begin with this key's id.
async fn under_other_keys(gateway: &Gateway, id: &str) -> i64 {
    let mut all = 0;
    for column in COLUMNS {
        let (table, column) = (column.table, column.column);
        let statement = format!(
            "SELECT count(*) FROM {table} WHERE substring({column} FROM 3 FOR length($1)) <> $1"
        );
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(statement))
            .bind(id.as_bytes())
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        all += count;
    }
    all
}

/// `GET /me` or the like, as the demo's subscriber.
async fn shown(base: &str, path: &str, secret: &str) -> (u16, Value) {
    let request = http_client()
        .get(format!("{base}{path}"))
        .header("x-api-secret", secret);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn send(gateway: &Gateway, base: &str) -> (u16, Value) {
    send_with(gateway, base, gateway.app.send_key.expose()).await
}

async fn send_with(gateway: &Gateway, base: &str, send_key: &str) -> (u16, Value) {
    let body = json!({
        "pk": gateway.app.pushable_key.expose(),
        "to": "bob@example.com", "subject": "Hello", "body": "It works.",
    });
    let request = http_client().post(format!("{base}/send"));
    let request = request.header("x-send-key", send_key);
    let response = request.json(&body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// A configuration whose secret has just been replaced.
async fn configure_webhook(gateway: &Gateway, api_secret: &str) -> WebhookConfigId {
    let url = format!(
        "{}/apps/{}/webhooks",
        gateway.daemon.base_url,
        gateway.app.pushable_key.expose()
    );
    let body = json!({ "url": "https://hooks.example/y", "events": ["email.sent"] });
    let request = http_client().post(url).header("x-api-secret", api_secret);
    let created = request.json(&body).send().await.unwrap();
    assert_eq!(created.status(), 201);
    let created: Value = created.json().await.unwrap();
    let id = created["id"].as_str().unwrap().parse().unwrap();
    let (webhooks, author) = (&gateway.daemon.webhooks, Author::operator(None));
    let rotated = webhooks.rotate_secret(gateway.app.id, id, None, author);
    assert!(rotated.await.unwrap().is_some());
    id
}

/// A way to a provider, as the release before this one stores it.
async fn begin_authorization(gateway: &Gateway, keys: &SealKeys) {
    sqlx::query(
        "INSERT INTO oauth_states (digest, app_id, pushable_key, plugin, redirect_uri, code_verifier_sealed, expires_at)
         VALUES ('x', $1, 'pk_x', 'plugin_a', 'x', $2, now() + interval '10 minutes')",
    )
    .bind(gateway.app.id.0)
    .bind(keys.seal("x", "x").unwrap())
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
}

/// Values of keys that are kept nowhere.
struct LimitedKeys {
    send_key: String,
    api_secret: String,
}

async fn limited_keys(gateway: &Gateway, api_secret: &str) -> LimitedKeys {
    let create = async |path: &str, field: &str| {
        let url = format!("{}{path}", gateway.daemon.base_url);
        let request = http_client().post(url).header("x-api-secret", api_secret);
        let body = json!({ "name": "Limited", "scopes": ["apps:read"] });
        let created: Value = request
            .json(&body)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        created[field].as_str().unwrap().to_owned()
    };
    let keys = format!("/apps/{}/send-keys", gateway.app.pushable_key.expose());
    LimitedKeys {
        send_key: create(&keys, "send_key").await,
        api_secret: create("/me/api-secrets", "api_secret").await,
    }
}

/// Secrets of webhooks that have been replaced, also of a configuration that is gone.
async fn replace_webhook_secrets(gateway: &Gateway, api_secret: &str) {
    let (app, author) = (gateway.app.id, Author::operator(None));
    let gone = configure_webhook(gateway, api_secret).await;
    let webhooks = &gateway.daemon.webhooks;
    let deleted = webhooks.delete_configuration(app, gone, author);
    assert!(deleted.await.unwrap());
    configure_webhook(gateway, api_secret).await;
    let renewed = gateway
        .daemon
        .accounts
        .renew_webhook_secret(app, None, author);
    assert!(renewed.await.is_ok());
}

/// An account at an ACME server, and a certificate.
async fn store_certificates(gateway: &Gateway, keys: &SealKeys) {
    let id = uuid::Uuid::nil();
    for (statement, context) in [
        (
            "INSERT INTO acme_accounts (id, directory_url, credentials_sealed) VALUES ($1, 'x', $2)",
            acme_accounts::context(AcmeAccountId(id)),
        ),
        (
            "INSERT INTO certificates (id, name, directory_url, pair_sealed) VALUES ($1, 'x', 'x', $2)",
            certificates::context(CertificateId(id)),
        ),
    ] {
        sqlx::query(statement)
            .bind(id)
            .bind(keys.seal(&context, "x").unwrap())
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }
}

async fn every_column_holds_something(gateway: &Gateway) {
    for column in COLUMNS {
        let (table, name) = (column.table, column.column);
        let any = AssertSqlSafe(format!(
            "SELECT EXISTS (SELECT FROM {table} WHERE {name} IS NOT NULL)"
        ));
        let any: bool = sqlx::query_scalar(any)
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        assert!(any, "{table}.{name} holds something to reseal");
    }
}

#[tokio::test]
async fn every_sealed_column_of_the_schema_is_known() {
    let url = database::create().await;
    let mut there: Vec<(String, String)> = sqlx::query_as(
        "SELECT table_name::text, column_name::text FROM information_schema.columns
         WHERE table_schema = 'public' AND column_name LIKE '%\\_sealed'",
    )
    .fetch_all(&mut database::connect(&url).await)
    .await
    .unwrap();
    let known = COLUMNS
        .iter()
        .map(|it| (it.table, it.column))
        .chain(LAPSING.iter().copied());
    let mut known: Vec<(String, String)> = known
        .map(|(table, column)| (table.to_owned(), column.to_owned()))
        .collect();
    there.sort();
    known.sort();
    assert_eq!(
        there, known,
        "storage/sealed.rs names every sealed column of the tables"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_rotated_while_mail_goes_on() {
    let gateway = Gateway::start().await;
    let url = gateway.database_url.as_str();
    // Something in every column: webhooks on their way, and a user on the way to the provider.
    sqlx::query("UPDATE apps SET webhook_url = 'https://hooks.example/x'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let credentials = gateway
        .daemon
        .accounts
        .app_credentials(gateway.app.id)
        .await
        .unwrap()
        .unwrap();
    let api_secret = credentials.api_secret.expose();
    replace_webhook_secrets(&gateway, api_secret).await;
    let limited = limited_keys(&gateway, api_secret).await;
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    // Nobody sends from this one, so nothing but the command changes its tokens.
    let idle = "idle@sandbox.example";
    gateway.connect(None, Plugin::B, idle).await;
    let keys = SealKeys::parse([SEAL_KEY]).unwrap();
    begin_authorization(&gateway, &keys).await;
    store_certificates(&gateway, &keys).await;
    every_column_holds_something(&gateway).await;
    gateway.stop_daemon().await;

    let mut serve = replica(&gateway).set("SEAL__KEYS", both()).start();
    let base = format!("http://{}", serve.ready().await.http);
    let sealed_before = under_other_keys(&gateway, "new").await;
    assert!(sealed_before >= 6, "{sealed_before}");
    // Refreshed tokens come in between: their values change under the command's hands.
    gateway
        .sandbox
        .authorization
        .expire_access_tokens()
        .await
        .unwrap();
    let traffic = async {
        for _ in 0..20 {
            let (status, answer) = send(&gateway, &base).await;
            assert_eq!(status, 200, "{answer}");
        }
    };
    let (first, ()) = tokio::join!(answered(url), traffic);
    assert!(first["resealed"].as_u64().unwrap() > 0, "{first}");
    assert_eq!(first["connecting"], 1, "{first}");
    assert_eq!(first["other_keys_removable"], false, "{first}");
    assert_eq!(first["other_keys_removable_from"], Value::Null, "{first}");
    sqlx::query("UPDATE oauth_states SET expires_at = now()")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let again = answered(url).await;
    assert_eq!(again["other_keys_removable"], true, "{again}");
    // Links of connect sessions last a week at most.
    let from: DateTime<Utc> = again["other_keys_removable_from"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let days = from - Utc::now();
    assert!(
        days > TimeDelta::hours(167) && days < TimeDelta::hours(169),
        "{again}"
    );
    assert_eq!(again["busy"], 0, "{again}");
    assert_eq!(under_other_keys(&gateway, "new").await, 0);
    let third = answered(url).await;
    assert_eq!(third["resealed"], 0, "what is done stays done: {third}");
    let told = reseal(url, &both(), &[]).await;
    told.succeeds();
    assert!(
        told.stdout
            .contains("test may be removed from seal.keys from "),
        "{}",
        told.stdout
    );
    serve.terminate().await;

    // Once more with a token that has to be refreshed, under the new key alone.
    let mut serve = replica(&gateway).set("SEAL__KEYS", NEW_KEY).start();
    let base = format!("http://{}", serve.ready().await.http);
    gateway
        .sandbox
        .authorization
        .expire_access_tokens()
        .await
        .unwrap();
    let (status, answer) = send(&gateway, &base).await;
    assert_eq!(status, 200, "{answer}");
    // Keys whose values are nowhere open what they opened.
    let (status, answer) = send_with(&gateway, &base, &limited.send_key).await;
    assert_eq!(status, 200, "{answer}");
    let (status, apps) = shown(&base, "/apps", &limited.api_secret).await;
    assert_eq!(status, 200, "{apps}");
    let (status, me) = shown(&base, "/me", api_secret).await;
    assert_eq!((status, me["api_secret"].as_str()), (200, Some(api_secret)));
    let path = format!("/apps/{}/send-key", gateway.app.pushable_key.expose());
    let (_, key) = shown(&base, &path, api_secret).await;
    assert_eq!(key["send_key"], gateway.app.send_key.expose());
    assert!(
        !serve.stderr().contains("can't be opened"),
        "{}",
        serve.stderr()
    );
    serve.terminate().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_read_is_replaced_and_nobody_is_waited_for() {
    let gateway = Gateway::start().await;
    let url = gateway.database_url.as_str();
    let column = COLUMNS
        .iter()
        .find(|it| it.column == "send_key_sealed")
        .unwrap();
    let mut connection = gateway.database().await;
    let read = column
        .read(&mut connection, None, b"other", 10)
        .await
        .unwrap();
    let read = read.into_iter().next().unwrap();
    assert_eq!(read.key, [gateway.app.id.0]);
    // A gateway renews the key in between.
    let key = gateway
        .daemon
        .accounts
        .renew_send_key(gateway.app.id, None, OPERATOR)
        .await
        .unwrap();
    let late = [Replacement {
        key: read.key,
        read: read.sealed.unwrap(),
        sealed: b"late".to_vec(),
        digest: b"late".to_vec(),
    }];
    assert_eq!(column.replace(&mut connection, &late).await.unwrap(), 0);
    let shown = gateway
        .daemon
        .accounts
        .send_key(gateway.app.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(shown.expose(), key.expose());

    // A row that somebody holds is left for another time, and said so.
    let mut holder = connection.begin().await.unwrap();
    sqlx::query("SELECT FROM subscribers FOR UPDATE")
        .execute(&mut *holder)
        .await
        .unwrap();
    let held = answered(url).await;
    assert_eq!(
        (&held["busy"], &held["other_keys_removable"]),
        (&json!(1), &json!(false)),
        "{held}"
    );
    holder.rollback().await.unwrap();
    let after = answered(url).await;
    assert_eq!(
        (&after["resealed"], &after["other_keys_removable"]),
        (&json!(1), &json!(true)),
        "{after}"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_key_opens_is_named_and_left() {
    let gateway = Gateway::start().await;
    let finished = reseal(&gateway.database_url, NEW_KEY, &["--json"]).await;
    let told: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(told["resealed"], 0, "{told}");
    assert_eq!(told["other_keys_removable"], false, "{told}");
    let row = format!("apps.send_key {}: sealed with the key test", gateway.app.id);
    assert!(finished.stderr.contains(&row), "{}", finished.stderr);
    assert!(
        finished
            .stderr
            .contains("can't be opened with any of seal.keys"),
        "{}",
        finished.stderr
    );
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    gateway.stop().await;
}
