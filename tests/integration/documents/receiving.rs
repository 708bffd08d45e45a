//! The examples that receive webhooks: they take what the gateway delivers, and refuse what is tampered with,
//! stale or unsigned.

use std::fs::OpenOptions;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::Utc;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

use super::examples::Task;
use super::languages::{Environment, Language, Program};
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::ports;
use crate::support::receiver::Receiver;

/// A secret of the standard's form.
const STANDARD_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// One of a customer's own, not of ASCII alone.
const OWN_SECRET: &str = "korrektes Pferd, Büroklammer";

/// A receiver that runs. Dropping it kills it.
pub struct Running {
    child: Child,
    url: String,
    output: NamedTempFile,
}

impl Running {
    async fn start(program: &Program, secret: &str) -> Self {
        let [port] = ports::reserve();
        Self::start_at(program, secret, port).await
    }

    /// At this port of 127.0.0.1.
    pub async fn start_at(program: &Program, secret: &str, port: u16) -> Self {
        let environment = Environment::from([
            ("MAILGATE_WEBHOOK_SECRET", secret.to_owned()),
            ("PORT", port.to_string()),
        ]);
        let command = match program.language {
            Language::Php => program.behind_phps_server(port, &environment),
            _ => program.command(&environment),
        };
        let output = NamedTempFile::new().unwrap();
        // At its end each time, since both outputs go there.
        let said = OpenOptions::new().append(true).open(output.path()).unwrap();
        let child = Command::from(command)
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{:?}: {error}", program.language));
        let mut running = Self {
            child,
            url: format!("http://127.0.0.1:{port}/"),
            output,
        };
        patience::until("receiver that listens", async || {
            let has_ended = running.child.try_wait().unwrap().is_some();
            assert!(!has_ended, "{}", running.said());
            tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .is_ok()
        })
        .await;
        running
    }

    /// What it wrote.
    pub fn said(&self) -> String {
        let bytes = std::fs::read(self.output.path()).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// What somebody posts.
#[derive(Clone)]
struct Post {
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Post {
    /// Signed as the gateway would, `ago` seconds ago.
    fn signed(secret: &str, ago: i64) -> Self {
        let body = json!({
            "event": "email.sent",
            "app_id": "a",
            "timestamp": "2026-01-02T03:04:05.678Z",
            "data": { "subject": "Grüße 📨" },
        });
        let body = body.to_string().into_bytes();
        let timestamp = (Utc::now().timestamp() - ago).to_string();
        let key = secret.strip_prefix("whsec_").map_or_else(
            || secret.as_bytes().to_vec(),
            |encoded| STANDARD.decode(encoded).unwrap(),
        );
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(format!("msg_1.{timestamp}.").as_bytes());
        mac.update(&body);
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        Self {
            headers: vec![
                ("webhook-id", "msg_1".to_owned()),
                ("webhook-timestamp", timestamp),
                ("webhook-signature", format!("v1,{signature}")),
            ],
            body,
        }
    }

    fn with(mut self, name: &str, change: impl Fn(&str) -> String) -> Self {
        for (header, value) in &mut self.headers {
            if *header == name {
                *value = change(value);
            }
        }
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(header, _)| *header != name);
        self
    }

    async fn status(&self, url: &str) -> u16 {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = client.post(url).body(self.body.clone());
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request.send().await.unwrap().status().as_u16()
    }
}

async fn ask(gateway: &Gateway, method: &str, path: &str, body: Value) -> Value {
    let credentials = gateway
        .daemon
        .accounts
        .app_credentials(gateway.app.id)
        .await;
    let credentials = credentials.unwrap().expect("the app is there");
    let pk = gateway.app.pushable_key.expose();
    let url = format!("{}/apps/{pk}/webhooks{path}", gateway.daemon.base_url);
    let request = gateway
        .http
        .request(method.parse().unwrap(), url)
        .header("x-api-secret", credentials.api_secret.expose())
        .json(&body);
    let response = request.send().await.unwrap();
    assert!(response.status().is_success(), "{response:?}");
    response.json().await.unwrap()
}

async fn takes_what_the_gateway_delivers(gateway: &Gateway, receiver: &Running, secret: &str) {
    let body = json!({ "url": receiver.url, "events": ["email.sent"], "secret": secret });
    let created = ask(gateway, "POST", "", body).await;
    let id = created["id"].as_str().unwrap();
    let tested = ask(gateway, "POST", &format!("/{id}/test"), json!({})).await;
    assert_eq!(tested["http_status"], 204, "{tested}\n{}", receiver.said());
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    gateway
        .eventually("a delivery", async |gateway| {
            // Beside the test.
            let path = format!("/{id}/deliveries?event=email.sent");
            let listed = ask(gateway, "GET", &path, json!({})).await;
            let Some(delivery) = listed["deliveries"].get(0) else {
                return false;
            };
            assert_eq!(delivery["http_status"], 204, "{listed}");
            true
        })
        .await;
    let said = receiver.said();
    let log = answer["log_id"].as_str().unwrap();
    assert!(said.contains("email.sent") && said.contains(log), "{said}");
}

async fn refuses_what_is_not_genuine(language: Language, receiver: &Running, secret: &str) {
    let genuine = Post::signed(secret, 0);
    let mut taken = vec![
        genuine.clone(),
        Post::signed(secret, 280),
        Post::signed(secret, -280),
    ];
    // While a secret is exchanged there may be several, and there may be other schemes one day.
    for others in [
        "v1,AAAA {}",
        "{} v1,AAAA",
        "v2,AAAA v1,MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo= {}",
    ] {
        let change = |own: &str| others.replace("{}", own);
        taken.push(genuine.clone().with("webhook-signature", change));
    }
    for (post, case) in taken.iter().zip(0..) {
        let status = post.status(&receiver.url).await;
        assert_eq!(status, 204, "{language:?}, {case}:\n{}", receiver.said());
    }

    let mut tampered = genuine.clone();
    tampered.body[12] ^= 1;
    let mut longer = genuine.clone();
    longer.body.push(b' ');
    let of_nobody = Post::signed("another secret of somebody", 0);
    let own = |change: fn(&str) -> String| genuine.clone().with("webhook-signature", change);
    let mut refused = vec![
        ("tampered", tampered),
        ("longer", longer),
        ("stale", Post::signed(secret, 320)),
        ("early", Post::signed(secret, -320)),
        ("another's", of_nobody),
        ("the second version", own(|own| own.replace("v1,", "v2,"))),
        ("no version", own(|own| own.replace("v1,", ""))),
        ("nothing behind the version", own(|_| "v1,".to_owned())),
        ("no comma", own(|_| "v1".to_owned())),
        ("an empty one", own(|_| String::new())),
        ("cut", own(|own| own[..own.len() - 4].to_owned())),
        ("not base64", own(|_| "v1,äöü!".to_owned())),
        (
            "another id",
            genuine.clone().with("webhook-id", |_| "msg_2".to_owned()),
        ),
        (
            "no time",
            genuine
                .clone()
                .with("webhook-timestamp", |_| "now".to_owned()),
        ),
        (
            "another time",
            genuine.clone().with("webhook-timestamp", |own| {
                (own.parse::<i64>().unwrap() + 1).to_string()
            }),
        ),
        (
            "a time beyond all",
            genuine
                .clone()
                .with("webhook-timestamp", |_| "9".repeat(30)),
        ),
    ];
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        refused.push((name, genuine.clone().without(name)));
    }
    let mut unsigned = genuine.clone();
    unsigned.headers.clear();
    refused.push(("unsigned", unsigned));
    for (what, post) in refused {
        let status = post.status(&receiver.url).await;
        assert_eq!(status, 400, "{language:?}, {what}:\n{}", receiver.said());
    }
    assert_eq!(
        genuine.status(&receiver.url).await,
        204,
        "{language:?} goes on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn receivers_take_what_is_genuine_and_nothing_else() {
    let gateway = Gateway::builder()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .start()
        .await;
    for language in Language::ALL {
        let program = Program::of(language, Task::Receive).await;
        for secret in [STANDARD_SECRET, OWN_SECRET] {
            let receiver = Running::start(&program, secret).await;
            takes_what_the_gateway_delivers(&gateway, &receiver, secret).await;
            refuses_what_is_not_genuine(language, &receiver, secret).await;
        }
    }
    gateway.stop().await;
}

/// What the gateway really sent, word for word, once again to another receiver, and with a word changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_delivery_is_genuine_until_it_is_changed() {
    let gateway = Gateway::builder()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .start()
        .await;
    let stand_in = Receiver::start().await;
    let body = json!({
        "url": stand_in.url("/"),
        "events": ["email.sent"],
        "secret": STANDARD_SECRET,
    });
    ask(&gateway, "POST", "", body).await;
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    gateway
        .eventually("a delivery", async |_| stand_in.count() == 1)
        .await;
    let delivery = &stand_in.received()[0];
    let headers = ["webhook-id", "webhook-timestamp", "webhook-signature"]
        .map(|name| (name, delivery.header(name).to_owned()));
    let recorded = Post {
        headers: headers.to_vec(),
        body: delivery.body.to_vec(),
    };
    let mut changed = recorded.clone();
    changed.body = String::from_utf8(changed.body)
        .unwrap()
        .replace("bob@", "eve@")
        .into_bytes();
    assert_ne!(changed.body, recorded.body);
    for language in Language::ALL {
        let program = Program::of(language, Task::Receive).await;
        let receiver = Running::start(&program, STANDARD_SECRET).await;
        assert_eq!(recorded.status(&receiver.url).await, 204, "{language:?}");
        assert_eq!(changed.status(&receiver.url).await, 400, "{language:?}");
    }
    gateway.stop().await;
}
