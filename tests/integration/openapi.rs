//! The document at `/openapi.json` and the gateway say the same, and people can read it at `/docs`.

pub mod described;
mod driven;
mod generated;
mod page;

use std::collections::BTreeSet;

use serde_json::Value;

use super::support::gateway::Gateway;

const OPERATOR_TOKEN: &str = "an operator token of the tests' own";

/// A gateway whose limits are no noise, and whose sign-up is open.
async fn start() -> Gateway {
    Gateway::builder()
        .billed()
        // Nobody who makes requests up can sign them.
        .set("PAYPROV__WEBHOOK_SECRET", "")
        .set("PAYPROV__ACCEPT_UNSIGNED", true)
        .set("HTTP__OPERATOR_TOKEN", OPERATOR_TOKEN)
        .set("LIMITS__REQUESTS_PER_SECOND", 100_000)
        .set("LIMITS__REQUESTS_BURST", 100_000)
        .set("LIMITS__AUTHENTICATION_FAILURES_PER_MINUTE", 1_000_000)
        .set("LIMITS__CONNECT_VISITS_PER_MINUTE", 1_000_000)
        .start()
        .await
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The gateway's own document.
async fn document(gateway: &Gateway) -> Value {
    let url = format!("{}/openapi.json", gateway.daemon.base_url);
    let response = gateway.http.get(url).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    response.json().await.unwrap()
}

/// Its operations, as `(method in capitals, path)`.
async fn operations(gateway: &Gateway) -> BTreeSet<(String, String)> {
    let document = document(gateway).await;
    let of_path = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().expect("methods");
        methods
            .keys()
            .map(|method| (method.to_uppercase(), path.clone()))
            .collect::<Vec<_>>()
    };
    let paths = document["paths"].as_object().expect("paths");
    paths.iter().flat_map(of_path).collect()
}
