//! The payment provider's settings.

use std::time::Duration;

use secrecy::SecretString;

use super::reader::Reader;

/// Where subscriptions are billed.
#[derive(Debug, Clone)]
pub struct PayprovSettings {
    /// Where its interface is, without a slash at the end.
    pub base_url: String,
    /// Opens its interface.
    pub secret_key: SecretString,
    /// Verifies its events; `None`: they are taken unverified.
    pub webhook_secret: Option<SecretString>,
    /// What one connected mailbox costs in a period: the provider's id.
    pub price: String,
    /// Days of trial; 0: none.
    pub trial_days: u32,
    /// The version that the provider is asked to speak; `None`: the account's own.
    pub api_version: Option<String>,
    /// For one answer of the provider.
    pub request: Duration,
}

/// `None` without a key: nothing is billed.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<PayprovSettings> {
    let base_url = reader.url("payprov.base_url");
    let [secret_key, webhook_secret, price, api_version] =
        ["secret_key", "webhook_secret", "price", "api_version"]
            .map(|name| reader.text(&format!("payprov.{name}")));
    let accept_unsigned = reader.flag("payprov.accept_unsigned");
    let trial_days = reader.number("payprov.trial_days", 0, 730);
    let request = reader.seconds("payprov.request_seconds");
    // Both go into headers.
    for (name, value) in [("secret_key", &secret_key), ("api_version", &api_version)] {
        if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            let setting = format!("payprov.{name}");
            reader.problem(&setting, "must be of printable ASCII without spaces");
        }
    }
    if secret_key.is_empty() {
        return None;
    }
    if price.is_empty() {
        let text = "is required with payprov.secret_key: the price of one mailbox (price_…)";
        reader.problem("payprov.price", text);
    }
    if webhook_secret.is_empty() && !accept_unsigned {
        let text = "is required with payprov.secret_key: the signing secret of the webhook endpoint (whsec_…); or set payprov.accept_unsigned = true to take events from anybody";
        reader.problem("payprov.webhook_secret", text);
    }
    if base_url.is_empty() {
        reader.problem("payprov.base_url", "is required with payprov.secret_key");
    }
    let some = |text: String| (!text.is_empty()).then_some(text);
    Some(PayprovSettings {
        base_url,
        secret_key: SecretString::from(secret_key),
        webhook_secret: some(webhook_secret).map(SecretString::from),
        price,
        trial_days,
        api_version: some(api_version),
        request,
    })
}
