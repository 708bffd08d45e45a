//! schemathesis drives every operation from the document: no failure of the gateway's own, and no
//! answer that the document doesn't know.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::{OPERATOR_TOKEN, operations, start, text};
use crate::support::gateway::{Gateway, MAILBOX, connect};
use mailgate_types::ids::{AppId, LogId, WebhookDeliveryId};
use mailgate_types::plugin::Plugin;

/// Longest that one run of schemathesis may take; on an idle machine it takes half a minute.
const RUN_TIME: Duration = Duration::from_mins(15);

/// Apps that a run may delete, or take the pushable keys of.
const THROWAWAY_APPS: usize = 40;

/// What the document can't say of valid data, each with its reason.
const RULES: &str = r#"
# Whether a host is valid is more than a pattern can say (IDNA, IPv4 in all its spellings), so these
# take the addresses given here, and 422 is an answer to the ones that schemathesis makes up.
[dictionaries.addresses]
values = ["", "https://127.0.0.1:9/hook", "https://xn--bcher-kva.example:8443/?a=b#c", "https://192.0.2.7/"]
[[operations]]
include-name = ["POST /apps", "PUT /apps/{pushable_key}"]
parameters."body.logo_url" = { dictionary = "addresses" }
parameters."body.webhook_url" = { dictionary = "addresses" }
parameters."body.callback_url" = { dictionary = "addresses" }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409, 422]

# The same for the addresses of webhooks, and for secrets, whose length is in bytes; an app has twenty
# configurations at most.
[dictionaries.endpoints]
values = ["https://app.invalid/hook", "https://xn--bcher-kva.invalid:8443/?a=b#c"]
[dictionaries.secrets]
values = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "correct horse battery staple"]
[[operations]]
include-name = "POST /apps/{pushable_key}/webhooks"
parameters."path.pushable_key" = { dictionary = "lasting", probability = 0.8 }
parameters."body.url" = { dictionary = "endpoints" }
parameters."body.secret" = { dictionary = "secrets", probability = 0.7 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409, 422]
[[operations]]
include-name = "PUT /apps/{pushable_key}/webhooks/{webhook_id}"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "webhooks", probability = 0.8 }
parameters."body.url" = { dictionary = "endpoints" }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 422]

# What networks, mailboxes and times ahead are is more than a schema says; there are twenty keys at most.
[[operations]]
include-name = ["POST /apps/{pushable_key}/send-keys", "PUT /apps/{pushable_key}/send-keys/{id}", "POST /me/api-secrets"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409, 422]

# Which characters are invisible is more than a pattern says; a name of nothing else is empty.
[[operations]]
include-name = ["PATCH /me", "POST /subscribers"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429]

# Tests of one app go one at a time; an event that is under way is not sent twice.
[[operations]]
include-name = "POST /apps/{pushable_key}/webhooks/{webhook_id}/test"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "webhooks", probability = 0.8 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 429]
[[operations]]
include-name = "POST /apps/{pushable_key}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "told", probability = 0.9 }
parameters."path.delivery_id" = { dictionary = "deliveries", probability = 0.9 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409]
[[operations]]
include-name = "POST /apps/{pushable_key}/deliveries/{delivery_id}/retry"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.delivery_id" = { dictionary = "own_deliveries", probability = 0.9 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409]
[[operations]]
include-name = "GET /apps/{pushable_key}/webhooks/{webhook_id}/deliveries/{delivery_id}"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "told", probability = 0.9 }
parameters."path.delivery_id" = { dictionary = "deliveries", probability = 0.9 }
[[operations]]
include-name = "GET /apps/{pushable_key}/deliveries/{delivery_id}"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.delivery_id" = { dictionary = "own_deliveries", probability = 0.9 }

# No schema says how long a secret is in bytes.
[[operations]]
include-name = "POST /apps/{pushable_key}/webhooks/{webhook_id}/rotate-secret"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "webhooks", probability = 0.8 }
parameters."body.secret" = { dictionary = "secrets", probability = 0.7 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 422]

# A day that its month doesn't have is no date; only an active configuration gets anything again, and one
# replay of an app goes on at a time.
[[operations]]
include-name = "POST /apps/{pushable_key}/webhooks/{webhook_id}/replay"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "told", probability = 0.9 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409, 422]
[[operations]]
include-name = "POST /apps/{pushable_key}/replay"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409, 422]

[[operations]]
include-name = ["POST /payprov/checkout-setup", "POST /payprov/portal"]
parameters."body.portal_url" = { dictionary = "pages" }
parameters."body.return_url" = { dictionary = "pages" }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 422]
[dictionaries.pages]
values = ["https://app.example/billing", "https://xn--bcher-kva.example:8443/?a=b#c"]

# A message that is right in itself is refused with 422 when the app has no such mailbox, and when it
# has neither body nor html: no schema says the first.
[[operations]]
include-name = "POST /send"
parameters."body.pk" = { dictionary = "sending", probability = 0.9 }
parameters."body.send_at" = { dictionary = "leaving", probability = 0.9 }
parameters."body.from" = { dictionary = "senders", probability = 0.9 }
parameters."body.user_id" = { dictionary = "senders_users", probability = 0.9 }
parameters."body.plugin" = { dictionary = "senders_plugins", probability = 0.9 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 422]

# A day that its month doesn't have is no date, which no pattern says; nor does one say which cursors were handed out.
[[operations]]
include-name = ["GET /logs", "GET /audit"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 422]

# A message that was tried now is soon no longer there to be tried.
[[operations]]
include-name = ["POST /logs/{log_id}/retry", "POST /logs/{log_id}/cancel"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 402, 404, 409]

# Only a browser that was sent to the provider before can bring a state that is known.
[[operations]]
include-name = "GET /oauth/callback"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 410]

# Only the gateway can seal what stands in these.
[[operations]]
include-name = "GET /connect/result"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 404]

# Nor is a made-up session one, and beside it nothing else may stand.
[[operations]]
include-name = ["GET /connect/{pushable_key}", "POST /connect/{pushable_key}"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 303, 404, 410, 422]

# No schema says which host is the app's own.
[[operations]]
include-name = "POST /apps/{pushable_key}/connect-sessions"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 422]
"#;

/// Two different keys at once are a 400 whatever else is right, which no schema says: headers can't exclude
/// each other there. So no request has both.
const HOOKS: &str = r#"
import schemathesis

@schemathesis.hook
def before_call(context, case, kwargs):
    if case.headers and "X-Send-Key" in case.headers:
        case.headers.pop("X-Api-Key", None)
"#;

async fn post(gateway: &Gateway, path: &str, header: (&str, &str), body: Value) -> Value {
    let url = format!("{}{path}", gateway.daemon.base_url);
    let request = gateway.http.post(url).header(header.0, header.1);
    let response = request.json(&body).send().await.unwrap();
    assert_eq!(response.status(), 201);
    response.json().await.unwrap()
}

/// The API secret of a new subscriber.
async fn sign_up(gateway: &Gateway) -> String {
    let body = json!({ "label": "Driven", "email": "driven@example.com" });
    let token = ("x-operator-token", OPERATOR_TOKEN);
    let subscriber = post(gateway, "/subscribers", token, body).await;
    text(&subscriber["api_secret"]).to_owned()
}

/// The pushable keys of new apps.
async fn create_apps(gateway: &Gateway, api_secret: &str, count: usize) -> Vec<String> {
    let mut keys = Vec::new();
    for _ in 0..count {
        let body = json!({ "name": "Driven" });
        let app = post(gateway, "/apps", ("x-api-secret", api_secret), body).await;
        keys.push(text(&app["pushable_key"]).to_owned());
    }
    keys
}

/// How many mailboxes there are to disconnect.
const MAILBOXES: usize = 40;

/// An app with mailboxes that a run may disconnect, and with a user without any whom it may release: its pushable key,
/// the ids of the mailboxes, and the key of the user.
async fn mailboxes(gateway: &Gateway, api_secret: &str) -> (String, Vec<String>, String) {
    let body = json!({ "name": "Driven", "multilink": true });
    let app = post(gateway, "/apps", ("x-api-secret", api_secret), body).await;
    let pushable_key = text(&app["pushable_key"]).to_owned();
    let id: uuid::Uuid = sqlx::query_scalar("SELECT id FROM apps WHERE pushable_key = $1")
        .bind(&pushable_key)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    let mut ids = Vec::new();
    for number in 0..MAILBOXES {
        let email = format!("driven-{number}@sandbox.example");
        let (daemon, sandbox) = (&gateway.daemon, &gateway.sandbox);
        let connected = connect(daemon, sandbox, AppId(id), None, Plugin::A, &email).await;
        ids.push(connected.credential.to_string());
    }
    let user: uuid::Uuid = sqlx::query_scalar(
        "INSERT INTO end_users (user_key, app_id, user_id, created_at)
         VALUES (gen_random_uuid(), $1, 'without', now()) RETURNING user_key",
    )
    .bind(id)
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    (pushable_key, ids, user.to_string())
}

/// An app with webhook configurations: some to change and try, some to delete, and one that was told of
/// something. Where that one leads nobody is called.
struct Hooked {
    pushable_key: String,
    lasting: Vec<String>,
    throwaway: Vec<String>,
    told: String,
    delivery: String,
    own_delivery: String,
}

async fn hooked(gateway: &Gateway, api_secret: &str) -> Hooked {
    let secret = ("x-api-secret", api_secret);
    let app = post(gateway, "/apps", secret, json!({ "name": "Hooked" })).await;
    let pushable_key = text(&app["pushable_key"]).to_owned();
    let path = format!("/apps/{pushable_key}");
    let mut ids = Vec::new();
    for _ in 0..19 {
        let body = json!({ "url": "https://app.invalid/", "events": ["send_key.renewed"] });
        let webhook = post(gateway, &format!("{path}/webhooks"), secret, body).await;
        ids.push(text(&webhook["id"]).to_owned());
    }
    // An address that is refused when it is called, so that each call ends at once.
    let mut database = gateway.database().await;
    for statement in [
        "UPDATE webhook_configs SET url = 'https://127.0.0.1/'",
        "UPDATE apps SET webhook_url = 'https://127.0.0.1/' WHERE name = 'Hooked'",
        "UPDATE webhook_configs SET is_active = id = (SELECT min(id::text)::uuid FROM webhook_configs)",
    ] {
        sqlx::query(statement).execute(&mut database).await.unwrap();
    }
    let url = format!("{}{path}/reset-send-key", gateway.daemon.base_url);
    let request = gateway.http.post(url).header(secret.0, secret.1);
    assert_eq!(request.send().await.unwrap().status(), 200);
    gateway
        .eventually("a delivery", async |gateway| {
            delivery(gateway, true).await.is_some() && delivery(gateway, false).await.is_some()
        })
        .await;
    let own_delivery = delivery(gateway, true).await.unwrap().to_string();
    let delivery = delivery(gateway, false).await.unwrap().to_string();
    let throwaway = ids.split_off(3);
    let told = ids.remove(0);
    Hooked {
        pushable_key,
        lasting: ids,
        throwaway,
        told,
        delivery,
        own_delivery,
    }
}

/// A delivery to the app's own address, or to a configuration.
async fn delivery(gateway: &Gateway, own: bool) -> Option<WebhookDeliveryId> {
    let id =
        sqlx::query_scalar("SELECT id FROM webhook_deliveries WHERE (endpoint_id = app_id) = $1")
            .bind(own)
            .fetch_optional(&mut gateway.database().await)
            .await;
    id.unwrap().map(WebhookDeliveryId)
}

/// The id of a logged message of an app.
async fn logged(gateway: &Gateway, pushable_key: &str) -> String {
    let id = LogId::at(chrono::Utc::now());
    sqlx::query(
        "INSERT INTO email_logs
             (id, app_id, subscriber_id, credential_id, from_address, to_address, cc_addresses,
              bcc_addresses, subject, plugin, status, size_bytes, has_attachments, sent_at)
         SELECT $1, id, subscriber_id, $1, 'ada@example.com', 'bob@example.com', '{}', '{}', 'Hello',
                'plugin_b', 'sent', 512, false, now()
         FROM apps WHERE pushable_key = $2",
    )
    .bind(id.0)
    .bind(pushable_key)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    id.to_string()
}

/// The id of a message of an app that waits for another attempt.
async fn waiting(gateway: &Gateway, pushable_key: &str) -> String {
    let id = logged(gateway, pushable_key).await;
    let log: LogId = id.parse().unwrap();
    sqlx::query(
        "WITH waiting AS (
             UPDATE email_logs SET status = 'failed_temp' WHERE id = $1 RETURNING *
         ), counted AS (
             INSERT INTO email_counter_changes (app_id, hour, plugin, status, messages)
             SELECT app_id, date_bin('1 hour', sent_at, 'epoch'), plugin, status, 1 FROM waiting
         )
         INSERT INTO spool
             (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
              subject, plugin, size_bytes, has_attachments, recipients, smtputf8, opened_at, state,
              next_attempt_at, attempts, is_logged, outcome_unknown)
         SELECT id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
                subject, plugin, size_bytes, has_attachments, '{bob@example.com}', false, sent_at,
                'deferred', now() + interval '1 day', 1, false, false
         FROM waiting",
    )
    .bind(log.0)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    // Only then does it count towards the quota.
    sqlx::query("UPDATE spool SET is_logged = true WHERE id = $1")
        .bind(log.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    id
}

/// The key of the user whose mailbox sends.
async fn user_key(gateway: &Gateway) -> String {
    let key: uuid::Uuid = sqlx::query_scalar("SELECT user_key FROM mailboxes WHERE app_id = $1")
        .bind(gateway.app.id.0)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    key.to_string()
}

/// The credentials as schemathesis has them.
fn credentials(gateway: &Gateway, api_secret: &str) -> String {
    let send_key = gateway.app.send_key.expose();
    format!(
        "[auth.openapi]\n\
         api_secret = {{ api_key = {api_secret:?} }}\n\
         send_key = {{ api_key = {send_key:?} }}\n\
         operator_token = {{ api_key = {OPERATOR_TOKEN:?} }}\n"
    )
}

/// Which apps are there: those that stay, and those that a run may take away.
#[expect(clippy::too_many_lines, reason = "one walk, step by step")]
async fn apps(gateway: &Gateway, api_secret: &str) -> String {
    let lasting = create_apps(gateway, api_secret, 3).await;
    let throwaway = create_apps(gateway, api_secret, THROWAWAY_APPS).await;
    let (populated, mailboxes, user) = mailboxes(gateway, api_secret).await;
    let hooked = hooked(gateway, api_secret).await;
    let log = logged(gateway, &lasting[0]).await;
    let retried = waiting(gateway, &lasting[0]).await;
    let cancelled = waiting(gateway, &lasting[0]).await;
    let tomorrow = chrono::Utc::now() + chrono::TimeDelta::days(1);
    let mut configuration = String::new();
    for (name, keys) in [
        ("hooked", vec![hooked.pushable_key]),
        ("webhooks", hooked.lasting),
        ("throwaway_webhooks", hooked.throwaway),
        ("told", vec![hooked.told]),
        ("deliveries", vec![hooked.delivery]),
        ("own_deliveries", vec![hooked.own_delivery]),
        ("lasting", lasting),
        ("throwaway", throwaway),
        ("populated", vec![populated]),
        ("mailboxes", mailboxes),
        ("users", vec![user]),
        ("logs", vec![log]),
        ("retried", vec![retried]),
        ("cancelled", vec![cancelled]),
        ("leaving", vec![tomorrow.to_rfc3339()]),
        ("senders", vec![MAILBOX.to_owned()]),
        ("senders_users", vec![user_key(gateway).await]),
        ("senders_plugins", vec![Plugin::A.to_string()]),
        (
            "sending",
            vec![gateway.app.pushable_key.expose().to_owned()],
        ),
    ] {
        writeln!(configuration, "[dictionaries.{name}]\nvalues = {keys:?}").unwrap();
    }
    for (method, path, dictionary) in [
        ("GET", "/apps/{pushable_key}", "lasting"),
        ("PUT", "/apps/{pushable_key}", "lasting"),
        ("DELETE", "/apps/{pushable_key}", "throwaway"),
        ("GET", "/apps/{pushable_key}/send-key", "lasting"),
        ("POST", "/apps/{pushable_key}/reset-send-key", "lasting"),
        (
            "POST",
            "/apps/{pushable_key}/reset-pushable-key",
            "throwaway",
        ),
        ("GET", "/connect/{pushable_key}", "lasting"),
        ("POST", "/connect/{pushable_key}", "lasting"),
        ("POST", "/apps/{pushable_key}/connect-sessions", "lasting"),
    ] {
        // The rest of the time a key is made up.
        write!(
            configuration,
            "[[operations]]\n\
             include-name = \"{method} {path}\"\n\
             parameters.\"path.pushable_key\" = {{ dictionary = \"{dictionary}\", probability = 0.8 }}\n"
        )
        .unwrap();
    }
    for (operation, dictionary) in [
        ("GET /logs/{log_id}", "logs"),
        ("POST /logs/{log_id}/retry", "retried"),
        ("POST /logs/{log_id}/cancel", "cancelled"),
    ] {
        write!(
            configuration,
            "[[operations]]\n\
             include-name = \"{operation}\"\n\
             parameters.\"path.log_id\" = {{ dictionary = \"{dictionary}\", probability = 0.8 }}\n"
        )
        .unwrap();
    }
    write!(
        configuration,
        "[[operations]]\n\
         include-name = \"DELETE /apps/{{pushable_key}}/credentials/{{credential_id}}\"\n\
         parameters.\"path.pushable_key\" = {{ dictionary = \"populated\", probability = 0.9 }}\n\
         parameters.\"path.credential_id\" = {{ dictionary = \"mailboxes\", probability = 0.8 }}\n\
         [[operations]]\n\
         include-name = \"DELETE /apps/{{pushable_key}}/users/{{user_key}}\"\n\
         parameters.\"path.pushable_key\" = {{ dictionary = \"populated\", probability = 0.9 }}\n\
         parameters.\"path.user_key\" = {{ dictionary = \"users\", probability = 0.8 }}\n"
    )
    .unwrap();
    for (method, operation, dictionary) in [
        ("GET", "", "webhooks"),
        ("DELETE", "/{webhook_id}", "throwaway_webhooks"),
        ("GET", "/{webhook_id}/deliveries", "told"),
    ] {
        write!(
            configuration,
            "[[operations]]\n\
             include-name = \"{method} /apps/{{pushable_key}}/webhooks{operation}\"\n\
             parameters.\"path.pushable_key\" = {{ dictionary = \"hooked\", probability = 0.9 }}\n"
        )
        .unwrap();
        if !operation.is_empty() {
            writeln!(
                configuration,
                "parameters.\"path.webhook_id\" = {{ dictionary = \"{dictionary}\", probability = 0.8 }}"
            )
            .unwrap();
        }
    }
    configuration + RULES
}

/// A request that schemathesis made, by the operation's path, and the answer's status.
type Call = (String, String, u16);

/// Runs schemathesis over the gateway's own document, with this configuration.
async fn drive(gateway: &Gateway, configuration: &str, arguments: &[&str]) -> BTreeSet<Call> {
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/python/bin/schemathesis");
    assert!(
        program.is_file(),
        "{} is missing: run tests/peers/install",
        program.display()
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("schemathesis.toml");
    let configuration = format!("hooks = \"hooks.py\"\n{configuration}");
    std::fs::write(&file, configuration).unwrap();
    std::fs::write(folder.path().join("hooks.py"), HOOKS).unwrap();
    let child = tokio::process::Command::new(program)
        .arg("--config-file")
        .arg(&file)
        .args(["--no-color", "run"])
        .arg(format!("{}/openapi.json", gateway.daemon.base_url))
        .args(["--checks=all", "--continue-on-failure"])
        .args(["--report=har", "--report-har-path=calls.har"])
        // The same requests each time, so that a failure can be repeated.
        .args(["--seed=1", "--generation-database=none"])
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("schemathesis starts");
    let output = tokio::time::timeout(RUN_TIME, child.wait_with_output())
        .await
        .expect("schemathesis ends in time")
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let report = std::fs::read(folder.path().join("calls.har")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let entries = report["log"]["entries"].as_array().unwrap();
    entries
        .iter()
        .map(|entry| {
            let url = text(&entry["request"]["url"]);
            let path = url.strip_prefix(&gateway.daemon.base_url).unwrap_or(url);
            let status = u16::try_from(entry["response"]["status"].as_u64().unwrap()).unwrap();
            let method = text(&entry["request"]["method"]).to_owned();
            (method, template(path), status)
        })
        .collect()
}

/// The path as the document has it.
fn template(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut parts: Vec<&str> = path.split('/').collect();
    if parts.len() > 2 && matches!(parts[1], "apps" | "connect") {
        parts[2] = "{pushable_key}";
    }
    if parts.len() > 2 && parts[1] == "logs" {
        parts[2] = "{log_id}";
    }
    if parts.len() > 4 && parts[3] == "credentials" {
        parts[4] = "{credential_id}";
    }
    if parts.len() > 4 && parts[3] == "users" {
        parts[4] = "{user_key}";
    }
    if parts.len() > 4 && parts[3] == "deliveries" {
        parts[4] = "{delivery_id}";
    }
    if parts.len() > 4 && parts[3] == "webhooks" {
        parts[4] = "{webhook_id}";
    }
    if parts.len() > 4 && parts[3] == "send-keys" {
        parts[4] = "{id}";
    }
    if parts.len() > 3 && parts[2] == "api-secrets" {
        parts[3] = "{id}";
    }
    if parts.len() > 6 && parts[5] == "deliveries" {
        parts[6] = "{delivery_id}";
    }
    parts.join("/")
}

fn succeeded(calls: &BTreeSet<Call>) -> BTreeSet<(String, String)> {
    calls
        .iter()
        .filter(|(_, _, status)| (200..300).contains(status))
        .map(|(method, path, _)| (method.clone(), path.clone()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_keeps_to_the_document_with_credentials() {
    let gateway = start().await;
    let api_secret = sign_up(&gateway).await;
    let configuration = credentials(&gateway, &api_secret) + &apps(&gateway, &api_secret).await;
    // It would take the credential from under the others, and has a run of its own.
    let exclude = "--exclude-path=/me/reset-api-secret";
    let calls = drive(&gateway, &configuration, &["--max-examples=40", exclude]).await;
    let mut all = operations(&gateway).await;
    all.remove(&("POST".to_owned(), "/me/reset-api-secret".to_owned()));
    all.remove(&("GET".to_owned(), "/oauth/callback".to_owned()));
    all.remove(&("GET".to_owned(), "/connect/result".to_owned()));
    // It leads elsewhere.
    all.remove(&("POST".to_owned(), "/connect/{pushable_key}".to_owned()));
    assert_eq!(
        succeeded(&calls),
        all,
        "each succeeds, and nothing else does"
    );
    assert!(!gateway.arrived().await.is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resetting_the_api_secret_keeps_to_the_document() {
    let gateway = start().await;
    let api_secret = sign_up(&gateway).await;
    let configuration = credentials(&gateway, &api_secret);
    let include = "--include-path=/me/reset-api-secret";
    let calls = drive(&gateway, &configuration, &["--max-examples=5", include]).await;
    let path = "/me/reset-api-secret".to_owned();
    let of_reset = |status| ("POST".to_owned(), path.clone(), status);
    assert!(calls.contains(&of_reset(200)), "{calls:?}");
    assert!(calls.contains(&of_reset(401)), "the old one is worthless");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_keeps_to_the_document_without_credentials() {
    let gateway = start().await;
    let api_secret = sign_up(&gateway).await;
    let configuration = apps(&gateway, &api_secret).await;
    let calls = drive(&gateway, &configuration, &["--max-examples=20"]).await;
    let open = [
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/connect/{pushable_key}"),
        // The gateway of these tests verifies no events.
        ("POST", "/payprov/webhook"),
    ]
    .map(|(method, path)| (method.to_owned(), path.to_owned()));
    assert_eq!(succeeded(&calls), BTreeSet::from(open.clone()));
    for (method, path) in operations(&gateway).await {
        let is_open = ["/oauth/callback", "/connect/result"].contains(&path.as_str())
            || open.iter().any(|(_, open)| *open == path);
        let refused = (method, path, 401);
        assert!(is_open || calls.contains(&refused), "{refused:?}");
    }
    gateway.stop().await;
}
