//! A real nginx with the lines of docs/certificates.md, in front of a gateway that trusts it.

use super::*;
use crate::command_line::process::certificates;
use crate::documents::{Use, the_block};
use crate::operator::troubles::check;
use crate::peers::nginx::Nginx;
use crate::support::ports;

const HEADER: &str = "proxy_set_header X-Forwarded-For $remote_addr;";

/// In front of a gateway, until it is dropped.
struct Proxied {
    _nginx: Nginx,
    base_url: String,
}

impl Proxied {
    /// With these lines.
    async fn start(gateway: &Gateway, lines: &str) -> Self {
        let [port] = ports::reserve();
        let lines = lines.replace("127.0.0.1:8080", &gateway.daemon.http_address.to_string());
        Self {
            _nginx: Nginx::start(port, &lines).await,
            base_url: format!("http://127.0.0.1:{port}"),
        }
    }

    /// The answer to a message whose sender claims an address.
    async fn send(&self, gateway: &Gateway, claimed: &[u8], key: &str) -> Answer {
        let body = json!({ "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "s", "body": "b" });
        let value = reqwest::header::HeaderValue::from_bytes(claimed).unwrap();
        let request = gateway.http.post(format!("{}/send", self.base_url));
        let request = request.header("x-send-key", key).json(&body);
        Answer::to(request.header("x-forwarded-for", value)).await
    }

    /// What `mailgate check` says of it.
    async fn checked(&self, gateway: &Gateway) -> (bool, String) {
        let (_folder, files) = certificates();
        let checked = check(gateway, &["--json"])
            .set("TLS__CERTIFICATE", &files.certificate)
            .set("TLS__KEY", &files.key)
            .set("HTTP__BASE_URL", &self.base_url)
            .finish()
            .await;
        let answer: Value = serde_json::from_str(&checked.stdout).unwrap();
        let mut checks = answer["checks"].as_array().unwrap().iter();
        let found = checks.find(|check| check["check"] == "client_address");
        let found = found.unwrap_or_else(|| panic!("{answer}"));
        (found["ok"] == true, text(found, "detail").to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_behind_it_claims_no_address() {
    let gateway = Gateway::builder()
        .set("HTTP__TRUSTED_PROXIES", "127.0.0.1")
        .start()
        .await;
    let fields = json!({ "name": "Limited", "allowed_addresses": ["192.0.2.7", "127.0.0.1"] });
    let created = create(&gateway, &fields).await;
    let key = text(&created, "send_key");
    let lines = the_block(Use::Nginx, "location / {");
    let nginx = Proxied::start(&gateway, &lines).await;
    for claimed in [&b"192.0.2.7"[..], b"", b"\xff", b"192.0.2.7, unknown"] {
        let answer = nginx.send(&gateway, claimed, key).await;
        assert_eq!(answer.problem(), (401, "invalid_send_key"), "{claimed:?}");
    }
    let (is_ok, detail) = nginx.checked(&gateway).await;
    assert!(is_ok, "{detail}");
    assert_eq!(detail, "this client is 127.0.0.1");

    // Without its line nginx passes on what clients write.
    assert!(lines.contains(HEADER));
    let open = Proxied::start(&gateway, &lines.replace(HEADER, "")).await;
    open.send(&gateway, b"192.0.2.7", key).await.success(200);
    let (is_ok, detail) = open.checked(&gateway).await;
    assert!(!is_ok && detail.contains("is believed"), "{detail}");

    let nobody = Proxied::start(&gateway, &lines.replace("$remote_addr", "\"\"")).await;
    let (is_ok, detail) = nobody.checked(&gateway).await;
    assert!(!is_ok && detail.contains("doesn't report"), "{detail}");

    // A gateway that doesn't trust it, and nothing that says who answers there to who has other keys.
    let strict = Gateway::start().await;
    let untrusted = Proxied::start(&strict, &lines).await;
    let (is_ok, detail) = untrusted.checked(&strict).await;
    assert!(!is_ok && detail.contains("doesn't name"), "{detail}");
    let answer = gateway.http.get(format!("{}/healthz", open.base_url));
    let answer = answer.header("x-mailgate-probe", "made up").send().await;
    assert_eq!(answer.unwrap().text().await.unwrap(), "ok\n");
    strict.stop().await;
    gateway.stop().await;
}
