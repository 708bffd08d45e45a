//! An event, as the webhook receives it.

use serde::Deserialize;

use super::field::is_id;

/// An event, as the webhook receives it.
#[derive(Debug, Clone, Deserialize)]
pub struct Event {
    /// `evt_…`
    pub id: String,
    /// `customer.subscription.updated` and the like.
    pub r#type: String,
    /// The data of the event.
    pub data: EventData,
}

/// The data of an event.
#[derive(Debug, Clone, Deserialize)]
pub struct EventData {
    /// The object as it was at the time.
    pub object: serde_json::Map<String, serde_json::Value>,
}

impl EventData {
    /// The id in a field, whether the object there is expanded or not.
    #[must_use]
    pub fn id(&self, field: &str) -> Option<&str> {
        let value = self.object.get(field)?;
        let id = value.get("id").unwrap_or(value).as_str()?;
        is_id(id).then_some(id)
    }

    /// The subscription of an invoice, wherever this version of the API has it.
    #[must_use]
    pub fn invoice_subscription(&self) -> Option<&str> {
        let newer = || {
            let details = self.object.get("parent")?.get("subscription_details")?;
            let value = details.get("subscription")?;
            value.get("id").unwrap_or(value).as_str()
        };
        self.id("subscription")
            .or_else(newer)
            .filter(|id| is_id(id))
    }
}
