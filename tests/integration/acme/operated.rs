//! What an operator sees of a gateway whose orders fail: log, metrics, `/readyz` and `mailgate check`.

use serde_json::Value;

use super::{MX, local};
use crate::command_line::process::{Invocation, certificates, http_client};
use crate::peers::pebble::Pebble;
use crate::support::gateway::SEAL_KEY;
use crate::support::{database, patience, ports};

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_fails_is_seen_everywhere() {
    let pebble = Pebble::start().await;
    let (_folder, files) = certificates();
    let url = database::create().await;
    let acme = |invocation: Invocation| {
        invocation
            .set("TLS__CERTIFICATE", "")
            .set("TLS__KEY", "")
            .set("SMTP__HOST", MX)
            .set("ACME__CHALLENGE", "http-01")
            .set("ACME__TERMS_AGREED", "true")
            .set("ACME__DIRECTORY_URL", &pebble.directory_url)
            .set("ACME__CA_FILE", &pebble.ca_file)
            // Pebble asks at another one.
            .set("ACME__HTTP_LISTEN", "127.0.0.1:0")
    };
    let metrics = ports::local_address();
    let serve = Invocation::serve(&url, &files).set("METRICS__LISTEN", metrics.to_string());
    let mut serve = acme(serve).start();
    let addresses = serve.ready().await;
    let failed = serve
        .logged("no certificate was issued; the current one stays in use")
        .await;
    assert_eq!(failed["level"], "ERROR", "{failed}");
    assert!(serve.stderr().contains("there is no certificate yet"));
    let sample = |setting: &str, value: &str| {
        format!("mailgate_acme_failed_attempts{{setting=\"{setting}\"}} {value}\n")
    };
    let scraped = patience::found("metric", async || {
        let scraped = http_client().get(format!("http://{metrics}/metrics"));
        let scraped = scraped.send().await.unwrap().text().await.unwrap();
        scraped
            .contains(&sample("smtp.host", "1"))
            .then_some(scraped)
    })
    .await;
    assert!(scraped.contains(&sample("http.base_url", "0")), "{scraped}");
    assert!(
        scraped.contains("mailgate_acme_orders_total{outcome=\"failed\"} 1\n"),
        "{scraped}"
    );
    let none = "mailgate_certificate_expiry_timestamp_seconds{setting=\"smtp.host\"} NaN\n";
    assert!(scraped.contains(none), "{scraped}");
    let ready = http_client().get(format!("http://{}/readyz", addresses.http));
    let ready = ready.send().await.unwrap();
    assert_eq!(ready.status(), 200);
    assert_eq!(
        ready.text().await.unwrap(),
        format!("ready\nno certificate yet for {MX}\n")
    );
    let check = Invocation::new(["check", "--json"])
        .set("DATABASE__URL", &url)
        .set("SEAL__KEYS", SEAL_KEY);
    let check = acme(check).finish().await;
    check.fails(1, &["checks failed"]);
    let answer: Value = serde_json::from_str(&check.stdout).unwrap();
    let checks = answer["checks"].as_array().unwrap();
    let certificate = checks
        .iter()
        .find(|it| it["check"] == "certificate")
        .unwrap();
    assert_eq!(certificate["target"], MX);
    assert_eq!(certificate["ok"], false);
    let detail = certificate["detail"].as_str().unwrap();
    assert!(
        detail.contains("there is none yet; the last order failed: "),
        "{detail}"
    );
    serve.terminate().await;
}

/// Files are for a name, and that is the one that clients connect to.
#[tokio::test(flavor = "multi_thread")]
async fn check_compares_the_names() {
    let (_folder, files) = certificates();
    let url = database::create().await;
    for (host, is_ok) in [("localhost", true), (MX, false)] {
        let check = Invocation::new(["check", "--json"])
            .set("DATABASE__URL", &url)
            .set("SEAL__KEYS", SEAL_KEY)
            .set("TLS__CERTIFICATE", &files.certificate)
            .set("TLS__KEY", &files.key)
            .set("SMTP__HOST", host)
            .set("HTTP__TLS_LISTEN", local(0).to_string())
            .finish()
            .await;
        let answer: Value = serde_json::from_str(&check.stdout).unwrap();
        let checks = answer["checks"].as_array().unwrap();
        let certificate = checks
            .iter()
            .find(|it| it["check"] == "certificate")
            .unwrap();
        assert_eq!(certificate["ok"], is_ok, "{certificate}");
        let detail = certificate["detail"].as_str().unwrap();
        assert_eq!(
            detail.contains("it is not for mx.mailgate.test"),
            !is_ok,
            "{detail}"
        );
    }
}
