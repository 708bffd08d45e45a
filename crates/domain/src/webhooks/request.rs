//! The headers of a delivery, for its subscriber: as they were sent, and signed anew, to send it by hand.

use bytes::Bytes;

use super::sign::SigningKeys;
use super::{Delivery, Webhooks, secret_context};
use mailgate_providers::egress::{MEDIA_TYPE, USER_AGENT};
use mailgate_storage::{apps, webhook_configs};
use mailgate_types::ids::{AppId, EndpointId, WebhookConfigId, WebhookMessageId};

/// A header's name and value.
pub type RequestHeader = (String, String);

/// Those that each delivery has.
fn common() -> [RequestHeader; 2] {
    [("content-type", MEDIA_TYPE), ("user-agent", USER_AGENT)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// The headers of an attempt, but for its signature, which isn't stored.
#[must_use]
pub fn headers_of(delivery: &Delivery) -> Vec<RequestHeader> {
    let timestamp = delivery.delivered_at.timestamp();
    let own = [
        ("webhook-id".to_owned(), delivery.message.to_string()),
        ("webhook-timestamp".to_owned(), timestamp.to_string()),
    ];
    common().into_iter().chain(own).collect()
}

impl Webhooks {
    /// The headers of a request that delivers a message's body now, signed with the secrets of a configuration, or
    /// without `config` of the app's own `webhook_url`; `None` if there is no such endpoint, or its secret can't sign.
    pub async fn signed_headers(
        &self,
        app: AppId,
        config: Option<WebhookConfigId>,
        message: WebhookMessageId,
        body: &str,
    ) -> Result<Option<Vec<RequestHeader>>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let secrets = match config {
            Some(id) => {
                let found = webhook_configs::find(&mut connection, app, id).await?;
                found.map(|config| config.secrets)
            }
            None => apps::find_webhook_secrets(&mut connection, app).await?,
        };
        drop(connection);
        let endpoint = config.map_or_else(|| EndpointId::from(app), EndpointId::from);
        let context = secret_context(app, endpoint);
        let keys =
            secrets.and_then(|secrets| SigningKeys::unseal(&self.seal_keys, &context, &secrets));
        let body = Bytes::copy_from_slice(body.as_bytes());
        Ok(keys.map(|keys| {
            let signed = keys.headers(message, self.clock.now(), &body);
            let signed = signed.iter().map(|(name, value)| {
                // Letters, digits and base64 symbols are always text.
                let value = value.to_str().unwrap_or_default();
                (name.as_str().to_owned(), value.to_owned())
            });
            common().into_iter().chain(signed).collect()
        }))
    }
}
