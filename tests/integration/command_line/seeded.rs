//! `dev --seed`: a fortnight in which everything occurs and agrees, the same on every run, and added once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sqlx::PgConnection;
use tempfile::TempDir;

use super::dev::Dev;
use super::process::{END, Invocation};
use crate::support::database;

impl Dev {
    async fn ask(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.text("/base_url"));
        let secret = self.text("/subscriber/api_secret");
        let request = self.http.get(&url).header("x-api-secret", secret);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.json().await.unwrap()
    }

    async fn post(&self, path: &str) -> (u16, Value) {
        let url = format!("{}{path}", self.text("/base_url"));
        let secret = self.text("/subscriber/api_secret");
        let request = self.http.post(&url).header("x-api-secret", secret);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or_default())
    }

    async fn database(&self) -> PgConnection {
        database::connect(self.text("/database_url")).await
    }

    /// How many rows a query counts.
    async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query)
            .fetch_one(&mut self.database().await)
            .await
            .unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// What was sent and what became of it, in order.
    async fn told(&self) -> Vec<(String, String, String)> {
        sqlx::query_as("SELECT to_address, subject, status FROM email_logs ORDER BY id")
            .fetch_all(&mut self.database().await)
            .await
            .unwrap()
    }
}

fn seeded(folder: &TempDir) -> Invocation {
    Invocation::dev(folder.path()).argument("--seed")
}

#[tokio::test]
async fn a_fortnight_is_there_once_and_agrees() {
    let folder = TempDir::new().unwrap();
    let ephemeral = seeded(&folder).argument("--ephemeral");
    let mut dev = Dev::start(ephemeral, folder.path()).await;
    let stdout = dev.child.stdout();
    let line = "Seeded: 3 apps, 20 mailboxes, 2,000 messages";
    assert!(stdout.contains(line), "{stdout}");
    holds_apps_and_mailboxes(&dev).await;
    holds_messages(&dev).await;
    holds_statistics(&dev).await;
    holds_endpoints(&dev).await;
    holds_a_trail(&dev).await;
    let told = dev.told().await;
    pages_show_it(&dev).await;
    goes_on(&dev).await;
    let log = dev.child.stderr();
    assert!(
        !log.contains("panicked") && !log.contains("\"ERROR\""),
        "{log}"
    );
    dev.child.terminate().await;

    // In a folder that stays, which had none at first.
    let kept = TempDir::new().unwrap();
    let mut empty = Dev::start(Invocation::dev(kept.path()), kept.path()).await;
    assert_eq!(empty.told().await, []);
    let app = empty.text("/app/id").to_owned();
    empty.child.terminate().await;
    for run in ["the first", "the second"] {
        let mut again = Dev::start(seeded(&kept), kept.path()).await;
        assert_eq!(again.text("/app/id"), app, "{run}");
        assert_eq!(again.count("SELECT count(*) FROM apps").await, 3, "{run}");
        let same = again.told().await;
        assert!(same == told, "{run} differs");
        again.child.signal("TERM").await;
        again.child.end(END).await;
    }
}

async fn holds_apps_and_mailboxes(dev: &Dev) {
    let apps = dev.ask("/apps").await;
    let names: BTreeSet<&str> = apps["apps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|app| app["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        BTreeSet::from(["Demo", "Northwind CRM", "Talentwerk Recruiting"])
    );
    assert_eq!(dev.count("SELECT count(*) FROM mailboxes").await, 20);
    let failing: Vec<(String, String)> = sqlx::query_as(
        "SELECT email, disconnect_reason FROM mailboxes WHERE status <> 'active' ORDER BY 1",
    )
    .fetch_all(&mut dev.database().await)
    .await
    .unwrap();
    let failing: Vec<(&str, &str)> = failing
        .iter()
        .map(|(it, why)| (it.as_str(), why.as_str()))
        .collect();
    assert_eq!(
        failing,
        [
            ("bewerbung@talentwerk.example", "interaction_required"),
            ("o.kovalenko@northwind.example", "invalid_grant"),
        ]
    );
    let of_b = "SELECT count(*) FROM mailboxes WHERE plugin = 'plugin_b'";
    assert_eq!(dev.count(of_b).await, 8);
    assert_eq!(dev.count("SELECT count(*) FROM send_keys").await, 3);
    assert_eq!(dev.count("SELECT count(*) FROM api_secrets").await, 1);
}

async fn holds_messages(dev: &Dev) {
    let logs = dev.ask("/logs").await;
    assert_eq!(logs["total"], 2_000, "{logs}");
    let statuses: Vec<(String, i64)> =
        sqlx::query_as("SELECT status, count(*) FROM email_logs GROUP BY 1")
            .fetch_all(&mut dev.database().await)
            .await
            .unwrap();
    let statuses: BTreeMap<String, i64> = statuses.into_iter().collect();
    assert_eq!(statuses["failed_temp"], 15);
    assert!(statuses["sent"] > 1_800 && statuses["failed_perm"] > 100);
    let scheduled = "SELECT count(*) FROM spool WHERE send_at > now() + interval '1 hour'";
    assert_eq!(dev.count(scheduled).await, 10);
    let waiting = "SELECT count(*) FROM spool JOIN spool_chunks ON spool_id = id
                   WHERE is_logged AND next_attempt_at > now() AND content LIKE 'Date: %'::bytea";
    assert_eq!(dev.count(waiting).await, 15);
    let unknown = "SELECT count(*) FROM spool WHERE is_logged AND outcome_unknown";
    assert_eq!(dev.count(unknown).await, 1);
    let usage = "SELECT ((SELECT coalesce(sum(messages), 0) FROM spool_usage)
                         + (SELECT coalesce(sum(messages), 0) FROM spool_usage_changes))::bigint";
    assert_eq!(dev.count(usage).await, 25);
    for word in [
        "Rechnung",
        "Facture",
        "Factura",
        "Invoice",
        "請求書",
        "تأكيد",
    ] {
        let found: i64 =
            sqlx::query_scalar("SELECT count(*) FROM email_logs WHERE subject LIKE $1")
                .bind(format!("%{word}%"))
                .fetch_one(&mut dev.database().await)
                .await
                .unwrap();
        assert!(found > 0, "{word}");
    }
    for (query, least) in [
        (
            "SELECT count(*) FROM bounces WHERE bounce_type = 'permanent'",
            20,
        ),
        (
            "SELECT count(*) FROM bounces WHERE bounce_type = 'temporary'",
            5,
        ),
        ("SELECT count(*) FROM suppressions", 20),
        ("SELECT count(*) FROM message_replies", 100),
        ("SELECT count(*) FROM refusals", 30),
        (
            "SELECT count(*) FROM email_logs WHERE error_message = 'Cancelled'",
            8,
        ),
        ("SELECT count(*) FROM email_logs WHERE door = 'smtp'", 300),
        ("SELECT count(*) FROM email_logs WHERE has_attachments", 100),
        (
            "SELECT count(*) FROM email_logs WHERE cc_addresses <> '{}'",
            50,
        ),
    ] {
        assert!(dev.count(query).await >= least, "{query}");
    }
    let unfit = "SELECT count(*) FROM email_attempts JOIN email_logs ON id = log_id
                 WHERE at < sent_at OR at > now()";
    assert_eq!(dev.count(unfit).await, 0, "attempts that can't have been");
    assert_eq!(dev.messages().await.len(), 40);
}

/// The counters say the same as the rows.
async fn holds_statistics(dev: &Dev) {
    let days = dev.ask("/email-stats?period=day").await;
    let rows: Vec<(String, String, i64)> = sqlx::query_as(
        "SELECT (sent_at AT TIME ZONE 'UTC')::date::text, status, count(*)
         FROM email_logs GROUP BY 1, 2",
    )
    .fetch_all(&mut dev.database().await)
    .await
    .unwrap();
    let mut expected: BTreeMap<(String, String), i64> = BTreeMap::new();
    for (day, status, count) in rows {
        expected.insert((day, status), count);
    }
    let days = days["data"].as_array().unwrap();
    let mut told: BTreeMap<(String, String), i64> = BTreeMap::new();
    for day in days {
        for status in ["sent", "failed_temp", "failed_perm"] {
            let count = day[status].as_i64().unwrap();
            if count > 0 {
                let date = day["date"].as_str().unwrap().to_owned();
                told.insert((date, status.to_owned()), count);
            }
        }
    }
    assert_eq!(told, expected);
    let bounced: i64 = days
        .iter()
        .map(|day| day["bounced"].as_i64().unwrap())
        .sum();
    assert_eq!(
        bounced,
        dev.count("SELECT count(*) FROM bounced_messages").await
    );
}

async fn holds_endpoints(dev: &Dev) {
    assert_eq!(dev.count("SELECT count(*) FROM webhook_configs").await, 3);
    let recovered = "SELECT count(*) FROM webhook_deliveries AS failed
                     JOIN webhook_deliveries AS later USING (message_id, endpoint_id)
                     WHERE NOT failed.success AND later.success
                           AND later.attempt_number > failed.attempt_number";
    assert!(dev.count(recovered).await > 5, "recovered");
    let states: Vec<(String, bool, bool)> = sqlx::query_as(
        "SELECT url, bool_or(NOT success) FILTER (WHERE delivered_at > now() - interval '20 hours'),
                count(*) FILTER (WHERE success) > 0
         FROM webhook_deliveries JOIN webhook_configs AS config ON config.id = endpoint_id
         GROUP BY url HAVING count(*) > 50",
    )
    .fetch_all(&mut dev.database().await)
    .await
    .unwrap();
    assert_eq!(states.len(), 3, "{states:?}");
    let failing = states.iter().find(|(url, ..)| url.contains("talentwerk"));
    assert!(failing.unwrap().1, "it fails now");
    assert!(states.iter().all(|(.., once)| *once), "{states:?}");
    let counted = "SELECT (sum(deliveries) - (SELECT count(*) FROM webhook_deliveries))::bigint
                   FROM webhook_counters";
    assert_eq!(dev.count(counted).await, 0, "counters");
    let due = "SELECT count(*) FROM webhook_queue WHERE state <> 'waiting' OR due_at < now()";
    assert_eq!(dev.count(due).await, 0, "nothing leaves at once");
    let foreign = "SELECT count(*) FROM webhook_configs WHERE url !~ '^https://[a-z.]+\\.example/'";
    assert_eq!(dev.count(foreign).await, 0);
}

async fn holds_a_trail(dev: &Dev) {
    let audit = dev.ask("/audit?limit=100").await;
    let entries = audit["entries"].as_array().unwrap();
    let times: Vec<&str> = entries
        .iter()
        .map(|entry| entry["created_at"].as_str().unwrap())
        .collect();
    assert!(times.len() > 40, "{}", times.len());
    assert!(
        times.is_sorted_by(|later, earlier| later >= earlier),
        "newest first"
    );
    let actions: BTreeSet<&str> = entries
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    for action in [
        "app.created",
        "app.changed",
        "user.connected",
        "user.disconnected",
        "send_key.created",
        "send_key.renewed",
        "api_secret.created",
        "webhook.created",
        "webhook.changed",
        "portal.signed_in",
        "message.canceled",
    ] {
        assert!(actions.contains(action), "{action} in {actions:?}");
    }
}

/// The portal, for a browser that follows the printed link.
async fn pages_show_it(dev: &Dev) {
    let browser = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap();
    let signing_in = browser.post(dev.text("/portal_url"));
    let signing_in = signing_in.header("origin", dev.text("/base_url"));
    let signed_in = signing_in.send().await.unwrap();
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap();
    for (path, words) in [
        ("", "o.kovalenko@northwind.example"),
        ("/mailboxes", "jobs@talentwerk.example"),
        ("/messages", "2\u{202f}000 messages"),
        ("/webhooks", "https://hooks.northwind.example/mailgate"),
        ("/apps", "Talentwerk Recruiting"),
        ("/settings", "send_key.created"),
        ("/billing", "18"),
    ] {
        let url = format!("{}/portal{path}", dev.text("/base_url"));
        let page = browser.get(&url).header("cookie", cookie);
        let page = page.send().await.unwrap();
        assert_eq!(page.status(), 200, "{path}");
        let text = page.text().await.unwrap();
        assert!(text.contains(words), "no {words:?} in {path}:\n{text}");
    }
}

/// A waiting message is tried now, and a new one is sent.
async fn goes_on(dev: &Dev) {
    let waiting: uuid::Uuid = sqlx::query_scalar(
        "SELECT id FROM spool
         WHERE is_logged AND NOT outcome_unknown AND from_address LIKE '%@talentwerk.example' LIMIT 1",
    )
    .fetch_one(&mut dev.database().await)
    .await
    .unwrap();
    let id = mailgate_types::ids::LogId(waiting);
    let (status, answer) = dev.post(&format!("/logs/{id}/retry")).await;
    assert!((200..300).contains(&status), "{status}: {answer}");
    crate::support::patience::until("the waiting message is sent", async || {
        let log = dev.ask(&format!("/logs/{id}")).await;
        log["status"] == json!("sent")
    })
    .await;
    assert_eq!(dev.send("bob@example.com").await.0, 200);
    assert_eq!(dev.messages().await.len(), 42);
}
