//! `dev --ephemeral`: what it announces and prints is all that a newcomer needs, and it leaves nothing.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::process::{
    END, Invocation, Running, http_client, is_alive, postgres_pid, run, state, text,
};
use crate::support::database;
use crate::support::patience;
use crate::support::smtp_client::SmtpClient;

/// A `dev` and what it announced.
pub struct Dev {
    pub child: Running,
    pub announcement: Value,
    pub http: reqwest::Client,
}

impl Dev {
    pub async fn start(invocation: Invocation, directory: &Path) -> Self {
        let mut child = invocation.start();
        let announcement = child.announced(directory).await;
        let http = http_client();
        Self {
            child,
            announcement,
            http,
        }
    }

    pub fn text(&self, pointer: &str) -> &str {
        text(&self.announcement, pointer)
    }

    /// `POST /send` with the app's keys.
    pub async fn send(&self, to: &str) -> (u16, Value) {
        let response = self
            .http
            .post(format!("{}/send", self.text("/base_url")))
            .header("x-send-key", self.text("/app/send_key"))
            .json(&json!({
                "pk": self.text("/app/pushable_key"),
                "to": to,
                "subject": "Hello",
                "body": "It works.",
            }))
            .send()
            .await
            .unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap())
    }

    /// The demo subscriber's subscription, in its trial.
    pub async fn trial(&self) -> String {
        let url = format!("{}/payprov/subscription", self.text("/base_url"));
        let secret = self.text("/subscriber/api_secret");
        patience::found("subscription of the demo subscriber", async || {
            let request = self.http.get(&url).header("x-api-secret", secret);
            let answer: Value = request.send().await.unwrap().json().await.unwrap();
            let subscription = &answer["subscription"];
            let id = subscription["payprov_subscription_id"].as_str()?;
            assert_eq!(subscription["status"], "trialing", "{answer}");
            Some(id.to_owned())
        })
        .await
    }

    /// What the sandbox's payment provider knows.
    pub async fn payments(&self) -> Value {
        let url = format!("{}/payprov/steering", self.text("/sandbox_url"));
        let response = self.http.get(url).send().await.unwrap();
        response.json().await.unwrap()
    }

    /// The sandbox's messages, newest first.
    pub async fn messages(&self) -> Vec<Value> {
        let url = format!("{}/messages", self.text("/sandbox_url"));
        let response = self.http.get(url).send().await.unwrap();
        response.json().await.unwrap()
    }

    /// The log rows' statuses, oldest first.
    pub async fn logged(&self) -> Vec<String> {
        sqlx::query_scalar("SELECT status FROM email_logs ORDER BY id")
            .fetch_all(&mut database::connect(self.text("/database_url")).await)
            .await
            .unwrap()
    }

    /// Where its Postgres keeps its cluster.
    pub async fn cluster(&self) -> PathBuf {
        let path: String = sqlx::query_scalar("SHOW data_directory")
            .fetch_one(&mut database::connect(self.text("/database_url")).await)
            .await
            .unwrap();
        path.into()
    }

    /// The command that it printed for `program`, with this word in it.
    fn printed(&self, program: &str, word: &str) -> String {
        let printed = self.child.stdout();
        let mut lines = printed
            .lines()
            .filter(|line| line.trim_start().starts_with(program) && line.contains(word));
        let line = lines
            .next()
            .unwrap_or_else(|| panic!("no {program} in:\n{printed}"));
        assert_eq!(lines.next(), None, "a second {program} in:\n{printed}");
        line.to_owned()
    }
}

/// Paths of all values in it, as in `/smtp/host`.
fn paths(value: &Value, path: &str) -> BTreeSet<String> {
    match value.as_object() {
        Some(object) => object
            .iter()
            .flat_map(|(key, value)| paths(value, &format!("{path}/{key}")))
            .collect(),
        None => BTreeSet::from([path.to_owned()]),
    }
}

#[tokio::test]
async fn a_newcomer_sends_within_a_minute_and_nothing_is_left() {
    let folder = TempDir::new().unwrap();
    let invocation = Invocation::dev(folder.path()).argument("--ephemeral");
    let mut dev = Dev::start(invocation, folder.path()).await;
    announces_all(&dev, folder.path());
    connects(&dev).await;
    is_billed(&dev).await;
    answers_to_its_own_names(&dev).await;
    tls_is_verified(&dev).await;
    printed_commands_deliver(&dev).await;
    run(
        "psql",
        &[
            dev.text("/database_url"),
            "--no-psqlrc",
            "-c",
            "SELECT count(*) FROM email_logs",
        ],
    )
    .await;

    let postgres = postgres_pid(&dev.cluster().await);
    let state = state(&dev.announcement);
    assert!(is_alive(postgres) && state.exists());
    assert!(!state.starts_with(folder.path()), "the state is apart");
    dev.child.terminate().await;
    assert!(!is_alive(postgres), "Postgres has ended before it");
    assert!(!state.exists(), "the state is gone");
    assert!(!dev.child.stderr().contains("panicked"));
}

/// Not so to a website's page whose name leads here.
async fn answers_to_its_own_names(dev: &Dev) {
    for (pointer, paths) in [
        ("/base_url", ["/healthz", "/portal", "/openapi.json"]),
        ("/sandbox_url", ["/", "/messages", "/payprov/steering"]),
    ] {
        for path in paths {
            let url = format!("{}{path}", dev.text(pointer));
            let status = async |host: &str| {
                let request = dev.http.get(&url).header("host", host);
                request.send().await.unwrap().status().as_u16()
            };
            assert_eq!(status("evil.example:8080").await, 421, "{url}");
            assert_ne!(status("mailgate.localhost:8080").await, 421, "{url}");
        }
    }
    let answer = dev.http.get(format!("{}/me", dev.text("/base_url")));
    let answer = answer.header("host", "evil.example").send().await.unwrap();
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], "misdirected_request");
}

fn announces_all(dev: &Dev, directory: &Path) {
    use std::os::unix::fs::PermissionsExt as _;

    let expected = [
        "/base_url",
        "/connect_url",
        "/smtp/host",
        "/smtp/starttls_port",
        "/smtp/tls_port",
        "/ca_file",
        "/database_url",
        "/sandbox_url",
        "/subscriber/subscriber_id",
        "/subscriber/api_secret",
        "/app/id",
        "/app/app_id",
        "/app/pushable_key",
        "/app/send_key",
        "/mailbox/email",
        "/mailbox/plugin",
        "/mailbox/user_key",
        "/portal_url",
        "/mailbox/credential_id",
    ];
    let expected: BTreeSet<String> = expected.map(str::to_owned).into();
    assert_eq!(paths(&dev.announcement, ""), expected);
    for path in expected {
        let value = dev.announcement.pointer(&path).unwrap();
        let is_said = match value {
            Value::Number(port) => port.as_u64().is_some_and(|port| port != 0),
            value => value.as_str().is_some_and(|text| !text.is_empty()),
        };
        assert!(is_said, "{path}: {value}");
    }
    assert_eq!(dev.text("/mailbox/email"), "ada@sandbox.example");
    assert_eq!(dev.text("/mailbox/plugin"), "plugin_a");
    let mode = std::fs::metadata(directory.join("dev.json"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "it holds keys");
    let log = dev.child.stderr();
    for secret in ["/app/send_key", "/subscriber/api_secret"] {
        assert!(!log.contains(dev.text(secret)), "{secret} in:\n{log}");
    }
}

/// The connect link opens, and its button leads to the sandbox.
async fn connects(dev: &Dev) {
    let link = dev.text("/connect_url");
    assert!(dev.child.stdout().contains(link));
    let page = http_client().get(link).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let page = page.text().await.unwrap();
    assert!(page.contains(">Connect Sandbox A</button>"), "{page}");
    let link = format!("{link}?plugin=plugin_a");
    let page = http_client().post(link).send().await.unwrap();
    let sandbox = dev.text("/sandbox_url");
    assert!(page.url().as_str().starts_with(sandbox), "{}", page.url());
    assert_eq!(page.status(), 200);
}

/// The screen says where the payments are, and the demo subscriber is there with one mailbox.
async fn is_billed(dev: &Dev) {
    let page = format!("{}/payprov", dev.text("/sandbox_url"));
    assert!(dev.child.stdout().contains(&page));
    let subscription = dev.trial().await;
    let known = dev.payments().await;
    let subscriptions = known["subscriptions"].as_object().unwrap();
    assert_eq!(subscriptions.len(), 1, "{known}");
    assert!(subscriptions.contains_key(&subscription), "{known}");
    let page = dev.http.get(page).send().await.unwrap();
    assert!(page.text().await.unwrap().contains("demo@sandbox.example"));
}

async fn tls_is_verified(dev: &Dev) {
    let port = |name: &str| dev.announcement["smtp"][name].as_u64().unwrap();
    let ca_file = Path::new(dev.text("/ca_file"));
    let address = |port: u64| -> SocketAddr { format!("127.0.0.1:{port}").parse().unwrap() };
    let mut client = SmtpClient::connect(address(port("starttls_port"))).await;
    client.reply().await;
    client.command("EHLO client.example").await;
    client.command("STARTTLS").await;
    let mut client = client.encrypt(ca_file).await;
    let reply = client.command("EHLO client.example").await;
    assert!(reply.contains("AUTH "), "{reply}");
    // Somebody else's eyes.
    let connect = format!("{}:{}", dev.text("/smtp/host"), port("tls_port"));
    let arguments = [
        "s_client",
        "-connect",
        &connect,
        "-verify_return_error",
        "-verify_hostname",
    ];
    let arguments = [
        &arguments[..],
        &[dev.text("/smtp/host"), "-CAfile", dev.text("/ca_file")],
    ];
    let said = run("openssl", &arguments.concat()).await;
    assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
}

/// The commands on the screen run as they stand, and the sandbox shows what they sent.
async fn printed_commands_deliver(dev: &Dev) {
    assert!(dev.messages().await.is_empty());
    let said = run("bash", &["-c", &dev.printed("curl ", "/send ")]).await;
    assert!(said.contains("\"status\":\"sent\""), "{said}");
    let said = run("bash", &["-c", &dev.printed("swaks ", "--to")]).await;
    assert!(said.contains("250 2.0.0 "), "{said}");
    assert_eq!(dev.logged().await, ["sent", "sent"]);
    let said = run("bash", &["-c", &dev.printed("curl ", "/webhooks ")]).await;
    assert!(said.contains("\"id\":\"wconf_"), "{said}");

    let messages = dev.messages().await;
    assert_eq!(messages.len(), 2);
    let sandbox = dev.text("/sandbox_url");
    for (message, content) in messages.iter().zip(["This is a test mailing", "It works."]) {
        assert_eq!(message["mailbox"], "ada@sandbox.example");
        assert_eq!(message["envelope_from"], "ada@sandbox.example");
        assert_eq!(message["envelope_to"], json!(["bob@example.com"]));
        chrono::DateTime::parse_from_rfc3339(text(message, "/received_at")).unwrap();
        let url = format!("{sandbox}/messages/{}/raw", text(message, "/id"));
        let raw = dev.http.get(url).send().await.unwrap();
        assert_eq!(raw.status(), 200);
        let raw = raw.bytes().await.unwrap();
        assert_eq!(message["size"], raw.len());
        let raw = String::from_utf8_lossy(&raw);
        assert!(raw.contains(content), "newest first:\n{raw}");
        assert!(
            raw.contains("\r\nSubject: Hello\r\n") || raw.starts_with("Subject: Hello\r\n"),
            "{raw}"
        );
    }
    let page = dev.http.get(format!("{sandbox}/")).send().await.unwrap();
    assert!(page.text().await.unwrap().contains("bob@example.com"));

    let url = format!("{sandbox}/messages");
    let cleared = dev.http.delete(&url).send().await.unwrap();
    assert!(cleared.status().is_success(), "{}", cleared.status());
    assert!(dev.messages().await.is_empty());
}

#[tokio::test]
async fn recipients_fail_on_demand() {
    let folder = TempDir::new().unwrap();
    let invocation = Invocation::dev(folder.path()).argument("--ephemeral");
    let mut dev = Dev::start(invocation, folder.path()).await;
    for (recipient, expected, taken) in [
        ("bob", 200, true),
        ("tempfail", 202, false),
        ("quota", 202, false),
        ("permfail", 502, false),
        ("permfail+tag", 502, false),
        ("LIMIT", 502, false),
        ("drop", 502, true),
    ] {
        let before = dev.messages().await.len();
        let (status, answer) = dev.send(&format!("{recipient}@example.com")).await;
        assert_eq!(status, expected, "{recipient}: {answer}");
        let arrived = dev.messages().await.len() - before;
        assert_eq!(arrived, usize::from(taken), "{recipient}");
    }
    let begun = Instant::now();
    let (status, answer) = dev.send("slow@example.com").await;
    assert_eq!(status, 200, "{answer}");
    assert!(begun.elapsed() >= Duration::from_secs(2));
    let mut logged = dev.logged().await;
    logged.sort_unstable();
    let expected = [
        vec!["failed_perm"; 4],
        vec!["failed_temp"; 2],
        vec!["sent"; 2],
    ];
    assert_eq!(logged, expected.concat());
    // With mail waiting for its next attempt it ends all the same.
    dev.child.terminate().await;
}

#[tokio::test]
async fn the_environment_wins_over_the_preset() {
    // A provider of our own, busy for everybody; on an address that only the environment names.
    let provider = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = provider.local_addr().unwrap();
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("mailgate.toml");
    std::fs::write(&config, "[smtp]\nhost = \"mail.dev.example\"\n").unwrap();
    let invocation = Invocation::dev(folder.path())
        .argument("--ephemeral")
        .argument("--config")
        .argument(&config)
        .set("PLUGINS__PLUGIN_A__SMTP_HOST", address.ip().to_string())
        .set("PLUGINS__PLUGIN_A__SMTP_PORT", address.port().to_string());
    let mut dev = Dev::start(invocation, folder.path()).await;
    assert_eq!(
        dev.text("/smtp/host"),
        "mail.dev.example",
        "a file does too"
    );
    let ((status, answer), ()) = tokio::join!(dev.send("bob@example.com"), async {
        let accepted = tokio::time::timeout(END, provider.accept()).await;
        let (mut stream, _) = accepted.expect("it comes to us").unwrap();
        stream
            .write_all(b"421 4.3.2 busy just now\r\n")
            .await
            .unwrap();
    });
    assert_eq!(status, 202, "{answer}");
    assert!(
        text(&answer, "/error").contains("busy just now"),
        "{answer}"
    );
    assert!(dev.messages().await.is_empty());
    dev.child.terminate().await;
}

#[tokio::test]
async fn a_payment_provider_of_ones_own_takes_the_sandboxs_place() {
    // It takes no connection, which is enough to see who is asked.
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = provider.local_addr().unwrap();
    let folder = TempDir::new().unwrap();
    let invocation = Invocation::dev(folder.path())
        .argument("--ephemeral")
        .set("PAYPROV__BASE_URL", format!("http://{address}"))
        .set("PAYPROV__SECRET_KEY", "sk_test_own")
        .set("PAYPROV__PRICE", "price_own")
        .set("PAYPROV__REQUEST_SECONDS", "2");
    let starting = Dev::start(invocation, folder.path());
    let asked = async { tokio::time::timeout(END, provider.accept()).await };
    let (mut dev, asked) = tokio::join!(starting, asked);
    asked.expect("it is asked").unwrap();
    assert_eq!(dev.payments().await["customers"], json!({}));
    assert!(!dev.child.stdout().contains("/payprov"));
    // What is being asked of it ends at once.
    drop(provider);
    dev.child.terminate().await;
}
