//! The fields of bodies, and what they may hold.

use super::check_properties;
use crate::openapi::{document, start};
use crate::support::described::resolved;

#[tokio::test]
async fn every_field_has_a_description() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let count: usize = schemas
        .iter()
        .map(|(name, schema)| check_properties(name, schema))
        .sum();
    assert!(count > 50, "{count}");
    gateway.stop().await;
}

#[tokio::test]
async fn what_a_field_may_hold_is_listed() {
    let gateway = start().await;
    let document = document(&gateway).await;
    let schemas = &document["components"]["schemas"];
    for (schema, field) in [
        ("SentResponse", "status"),
        ("SentResponse", "plugin"),
        ("SendRequest", "plugin"),
        ("LogItem", "status"),
        ("LogItem", "plugin"),
        ("AttemptShown", "status"),
        ("ConnectedMailbox", "plugin"),
        ("ConnectedMailbox", "status"),
        ("FormerUser", "reason"),
        ("RefusalItem", "reason"),
        ("RefusalItem", "door"),
        ("DeliveryItem", "event"),
        ("LogDelivery", "event"),
        ("Me", "subscription_status"),
        ("StatusAnswer", "status"),
        ("SubscriptionView", "status"),
        ("AuditItem", "action"),
        ("AuditItem", "actor"),
    ] {
        let mut property = &schemas[schema]["properties"][field];
        if let Some(choices) = property["oneOf"].as_array() {
            property = choices.iter().find(|it| it["type"] != "null").unwrap();
        }
        let words = &resolved(&document, property)["enum"];
        assert!(words.is_array(), "{schema}.{field}: {property}");
    }
    gateway.stop().await;
}
