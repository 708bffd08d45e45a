//! schemathesis drives every operation from the document: no failure of the gateway's own, and no
//! answer that the document doesn't know.

mod configuration;
mod given;
mod messages;
mod rules;
mod schemathesis;

use std::collections::BTreeSet;

use super::{operations, start};
use configuration::{apps, credentials};
use given::sign_up;
use schemathesis::{drive, succeeded};

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
