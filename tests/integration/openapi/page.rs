//! `/docs`, the pages that show the document, and the command that prints it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{document, start, text};
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::Gateway;

/// What stands in `src`, and in `href` of a page's head.
fn resources(html: &str) -> BTreeSet<String> {
    let (head, _) = html.split_once("</head>").expect("a head");
    let values = |html, attribute: &'static str| str::split(html, attribute).skip(1);
    values(html, "src=\"")
        .chain(values(head, "href=\""))
        .filter_map(|rest| rest.split('"').next())
        .filter(|address| *address != "data:,")
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
    response.text().await.unwrap()
}

#[tokio::test]
async fn the_pages_need_nothing_from_elsewhere() {
    let gateway = start().await;
    for (page, least) in [("/docs", 1), ("/docs/try", 5)] {
        let html = get(&gateway, page).await;
        let resources = resources(&html);
        assert!(resources.len() >= least, "{resources:?}");
        for resource in &resources {
            assert!(!is_elsewhere(resource), "{resource}");
            let path = match resource.strip_prefix("./") {
                Some(file) => format!("/docs/{file}"),
                None => resource.clone(),
            };
            let content = get(&gateway, &path).await;
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
    }
    // The scripts themselves hold many addresses that they never ask for. What they ask for stands
    // in their settings, and in their default for the one thing that would be elsewhere: a service
    // that says whether the document is good.
    let settings = get(&gateway, "/docs/swagger-initializer.js").await;
    assert!(settings.contains("\"/openapi.json\""), "{settings}");
    assert!(
        settings.contains("\"validatorUrl\": \"none\""),
        "{settings}"
    );
    assert!(!settings.contains("://"), "{settings}");
    gateway.stop().await;
}

/// A response's status, encoding, caching, tag and length.
async fn asked(gateway: &Gateway, path: &str, encoding: &str, known: &str) -> Asked {
    let url = format!("{}{path}", gateway.daemon.base_url);
    let request = gateway.http.get(url).header("accept-encoding", encoding);
    let response = request.header("if-none-match", known).send().await.unwrap();
    let header = |name| response.headers().get(name).map(|it| it.to_str().unwrap());
    let header = |name| header(name).unwrap_or_default().to_owned();
    Asked {
        status: response.status().as_u16(),
        encoding: header("content-encoding"),
        caching: header("cache-control"),
        vary: header("vary"),
        tag: header("etag"),
        bytes: response.bytes().await.unwrap().len(),
    }
}

struct Asked {
    status: u16,
    encoding: String,
    caching: String,
    vary: String,
    tag: String,
    bytes: usize,
}

#[tokio::test]
async fn what_never_changes_is_compressed_and_sent_once() {
    let gateway = start().await;
    let style = resources(&get(&gateway, "/docs").await)
        .pop_first()
        .unwrap();
    let sign_in = get(&gateway, "/portal/sign-in").await;
    let sign_in = resources(&sign_in);
    let portal = sign_in
        .iter()
        .filter(|it| it.starts_with("/portal/assets/"));
    let portal: Vec<String> = portal.cloned().collect();
    assert!(portal.len() >= 3, "{sign_in:?}");
    let hashed: BTreeSet<String> = portal.into_iter().chain([style.clone()]).collect();
    let docs = [
        "/docs",
        "/docs/try",
        "/openapi.json",
        "/docs/swagger-ui-bundle.js",
    ];
    for path in hashed.iter().map(String::as_str).chain(docs) {
        let whole = asked(&gateway, path, "identity", "").await;
        let short = asked(&gateway, path, "br, gzip", "").await;
        assert_eq!((whole.status, &*whole.encoding), (200, ""), "{path}");
        assert_eq!((short.status, &*short.encoding), (200, "gzip"), "{path}");
        assert!(short.bytes < whole.bytes, "{path}");
        assert!(
            short.tag.starts_with('"') && short.tag != whole.tag,
            "{path}"
        );
        let is_kept = short.caching.contains("immutable");
        assert_eq!(is_kept, hashed.contains(path), "{path}: {}", short.caching);
        let again = asked(&gateway, path, "gzip", &short.tag).await;
        assert_eq!((again.status, again.bytes), (304, 0), "{path}");
        assert_eq!((again.tag, again.caching), (short.tag, short.caching));
        assert_eq!([whole.vary, short.vary, again.vary], ["accept-encoding"; 3]);
    }
    let page = asked(&gateway, "/docs", "gzip", "").await.bytes;
    let style = asked(&gateway, &style, "gzip", "").await.bytes;
    assert!(page + style < 150_000, "{page} + {style}");
    gateway.stop().await;
}

#[tokio::test]
async fn what_depends_on_the_caller_is_not_compressed() {
    let gateway = start().await;
    for path in ["/portal/sign-in", "/me", "/connect/result", "/healthz"] {
        let answer = asked(&gateway, path, "gzip", "").await;
        assert_eq!((&*answer.encoding, &*answer.tag), ("", ""), "{path}");
        assert_eq!(answer.caching, "no-store", "{path}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn former_addresses_lead_on() {
    let gateway = start().await;
    for (path, said) in [
        ("/docs/", "id=\"send\""),
        ("/docs/index.html", "swagger-ui-bundle.js"),
    ] {
        assert!(get(&gateway, path).await.contains(said), "{path}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn the_reference_has_every_operation_and_field_of_the_document() {
    let gateway = start().await;
    let html = get(&gateway, "/docs").await;
    let document = document(&gateway).await;
    let base_url = &gateway.daemon.base_url;
    let mut names = BTreeSet::new();
    collect(&document["components"]["schemas"], &mut names);
    assert!(names.len() > 150, "{}", names.len());
    for name in names {
        assert!(
            html.contains(&format!("{name}</code> <span class=\"kind\">")),
            "{name}"
        );
    }
    for place in ["paths", "webhooks"] {
        for (path, methods) in document[place].as_object().unwrap() {
            for operation in methods.as_object().unwrap().values() {
                let id = text(&operation["operationId"]);
                let start = format!("<section class=\"operation\" id=\"{id}\"");
                let (_, section) = html.split_once(&start).expect(id);
                let (section, _) = section.split_once("</section>").expect(id);
                assert!(section.contains(path.as_str()), "{id}");
                let is_called = section.contains(&format!("{base_url}/"));
                assert_eq!(is_called, place == "paths", "{id}");
            }
        }
    }
    gateway.stop().await;
}

/// The names of all properties.
fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let properties = fields.get("properties").and_then(Value::as_object);
            names.extend(properties.into_iter().flat_map(|it| it.keys().cloned()));
            for (keyword, inner) in fields {
                if !matches!(keyword.as_str(), "example" | "examples" | "default") {
                    collect(inner, names);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, names)),
        _ => {}
    }
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
async fn the_pages_are_for_everybody() {
    let gateway = start().await;
    let docs = format!("{}/docs", gateway.daemon.base_url);
    let tried = format!("{docs}/try");
    for (browser, device) in [(Browser::desktop(), "desktop"), (Browser::phone(), "phone")] {
        let results = browser
            .run(&[
                Step::goto(&docs),
                Step::expect_text("Sends a message from a connected mailbox of the app"),
                Step::Accessible(()),
                Step::screenshot(&format!("docs-{device}")),
                Step::goto(&tried),
                Step::expect_text("Sends a message from a connected mailbox of the app"),
                Step::Accessible(()),
                Step::click("#operations-Send-send button.opblock-summary-control"),
                Step::expect_text("Idempotent-Replayed"),
                Step::Accessible(()),
                Step::screenshot(&format!("docs-try-{device}")),
            ])
            .await;
        assert_eq!(results[0].title, "Mailgate API");
    }
    gateway.stop().await;
}
