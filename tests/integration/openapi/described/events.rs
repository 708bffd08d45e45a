//! The events that webhooks tell.

use std::collections::BTreeSet;

use mailgate_types::event_name::EventName;
use serde_json::Value;

use super::check_properties;
use crate::openapi::{document, start, text};
use crate::support::described::resolved;

#[tokio::test]
async fn every_event_is_described() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let webhooks = document["webhooks"].as_object().unwrap();
    let names: BTreeSet<&str> = webhooks.keys().map(String::as_str).collect();
    assert_eq!(names, BTreeSet::from(EventName::ALL.map(EventName::as_str)));
    for (name, webhook) in webhooks {
        let post = &webhook["post"];
        assert!(!text(&post["summary"]).is_empty(), "{name}");
        let headers = post["parameters"].as_array().unwrap();
        let headers: BTreeSet<&str> = headers.iter().map(|it| text(&it["name"])).collect();
        let signing = ["webhook-id", "webhook-signature", "webhook-timestamp"];
        assert_eq!(headers, BTreeSet::from(signing), "{name}");
        let schema = &post["requestBody"]["content"]["application/json"]["schema"];
        let schema = resolved(&document, schema);
        assert!(check_properties(name, schema) >= 5, "{name}");
        let listed = &document["components"]["schemas"]["EventName"]["enum"];
        assert!(
            listed
                .as_array()
                .unwrap()
                .contains(&Value::from(name.as_str()))
        );
    }
    gateway.stop().await;
}
