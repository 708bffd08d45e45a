//! The headers of answers.

use std::collections::BTreeSet;

use crate::openapi::{document, start, text};

#[tokio::test]
async fn the_headers_of_answers_are_described() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let headers = |path: &str, method: &str, status: &str| {
        let response = &document["paths"][path][method]["responses"][status];
        let headers = response["headers"].as_object().unwrap().keys();
        headers.cloned().collect::<BTreeSet<_>>()
    };
    for (path, method, status, name) in [
        ("/send", "post", "200", "RateLimit"),
        ("/send", "post", "200", "RateLimit-Policy"),
        ("/send", "post", "200", "Idempotent-Replayed"),
        ("/send", "post", "502", "Idempotent-Replayed"),
        ("/send", "post", "409", "Retry-After"),
        ("/send", "post", "429", "Retry-After"),
        ("/send", "post", "401", "WWW-Authenticate"),
        ("/apps", "get", "200", "RateLimit"),
        ("/apps", "get", "503", "Retry-After"),
    ] {
        let headers = headers(path, method, status);
        assert!(headers.contains(name), "{path} {status}: {headers:?}");
    }
    assert_eq!(document["servers"][0]["url"], "/");
    for methods in document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let summary = text(&operation["summary"]);
            assert!(
                !summary.contains(['`', '\n']) && !summary.ends_with('.'),
                "{summary}"
            );
        }
    }
    gateway.stop().await;
}
