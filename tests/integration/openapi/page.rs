//! `/docs`, the page that shows the document, and the command that prints it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{document, start};
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::Gateway;

/// What stands in `src` and `href` of a page.
fn resources(html: &str) -> BTreeSet<String> {
    let values = |attribute: &'static str| html.split(attribute).skip(1);
    values("src=\"")
        .chain(values("href=\""))
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect()
}

fn is_elsewhere(address: &str) -> bool {
    address.starts_with("//") || address.contains("://")
}

async fn get(gateway: &Gateway, path: &str) -> String {
    let url = format!("{}{path}", gateway.daemon.base_url);
    let response = gateway.http.get(url).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    // The favicons are no text.
    String::from_utf8_lossy(&response.bytes().await.unwrap()).into_owned()
}

#[tokio::test]
async fn the_page_needs_nothing_from_elsewhere() {
    let gateway = start().await;
    let html = get(&gateway, "/docs").await;
    let resources = resources(&html);
    assert!(resources.len() >= 5, "{resources:?}");
    for resource in &resources {
        assert!(!is_elsewhere(resource), "{resource}");
        let content = get(&gateway, &format!("/docs/{resource}")).await;
        assert!(!content.is_empty(), "{resource}");
        let is_style = std::path::Path::new(resource)
            .extension()
            .is_some_and(|extension| extension == "css");
        if is_style {
            assert!(!content.contains("@import"), "{resource}");
            for address in content.split("url(").skip(1) {
                let address = address.trim_start_matches(['"', '\'']);
                assert!(address.starts_with("data:"), "{resource}: {address:.60}");
            }
        }
    }
    // The scripts themselves hold many addresses that they never ask for. What they ask for stands
    // in their settings, and in their default for the one thing that would be elsewhere: a service
    // that says whether the document is good.
    let settings = get(&gateway, "/docs/swagger-initializer.js").await;
    assert!(resources.contains("./swagger-initializer.js"));
    assert!(settings.contains("\"/openapi.json\""), "{settings}");
    assert!(
        settings.contains("\"validatorUrl\": \"none\""),
        "{settings}"
    );
    assert!(!settings.contains("://"), "{settings}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_file_that_the_page_lacks_is_a_problem_like_others() {
    let gateway = start().await;
    let url = format!("{}/docs/nothing.js", gateway.daemon.base_url);
    let response = gateway.http.get(url).send().await.unwrap();
    assert_eq!(response.status(), 404);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["code"], "not_found");
    gateway.stop().await;
}

#[tokio::test]
async fn the_command_prints_the_document_that_is_served() {
    let gateway = start().await;
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_mailgate"))
        .arg("openapi")
        .output()
        .await
        .unwrap();
    assert!(output.status.success());
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed, document(&gateway).await);
    gateway.stop().await;
}

#[tokio::test]
async fn the_page_is_for_everybody() {
    let gateway = start().await;
    let docs = format!("{}/docs", gateway.daemon.base_url);
    for (browser, device) in [(Browser::desktop(), "desktop"), (Browser::phone(), "phone")] {
        let results = browser
            .run(&[
                Step::goto(&docs),
                Step::expect_text("Sends a message from a connected mailbox of the app"),
                Step::Accessible(()),
                Step::click("#operations-Send-send button.opblock-summary-control"),
                Step::expect_text("Idempotent-Replayed"),
                Step::Accessible(()),
                Step::screenshot(&format!("docs-{device}")),
            ])
            .await;
        assert_eq!(results[0].title, "Mailgate API");
    }
    gateway.stop().await;
}
