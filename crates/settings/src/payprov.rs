//! The payment provider's settings.

use std::time::Duration;

use secrecy::SecretString;

use super::reader::Reader;

/// The payment provider's settings.
#[derive(Debug, Clone)]
pub struct PayprovSettings {
    /// The base URL of its API, without a trailing slash.
    pub base_url: String,
    /// The key for its API.
    pub secret_key: SecretString,
    /// Verifies its events; `None`: they are accepted unverified.
    pub webhook_secret: Option<SecretString>,
    /// The provider's id of the price per mailbox and period.
    pub price: String,
    /// Days of trial; 0: none.
    pub trial_days: u32,
    /// Days for which sending continues after a failed payment; 0: it stops immediately.
    pub past_due_grace_days: u32,
    /// The version of the API: a date, with a name after a dot from 2024 on.
    pub api_version: String,
    /// The timeout of one request.
    pub request: Duration,
}

/// `None` without a key: billing is off.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<PayprovSettings> {
    let base_url = reader.url("payprov.base_url");
    let [secret_key, webhook_secret, price, api_version] =
        ["secret_key", "webhook_secret", "price", "api_version"]
            .map(|name| reader.text(&format!("payprov.{name}")));
    let accept_unsigned = reader.flag("payprov.accept_unsigned");
    let trial_days = reader.number("payprov.trial_days", 0, 730);
    let past_due_grace_days = reader.number("payprov.past_due_grace_days", 0, 90);
    let request = reader.seconds("payprov.request_seconds");
    // It is sent in a header.
    if !secret_key.bytes().all(|byte| byte.is_ascii_graphic()) {
        let text = "must be of printable ASCII without spaces";
        reader.problem("payprov.secret_key", text);
    }
    if !is_version(&api_version) {
        let text = "must be a version of the provider's interface, such as 2026-08-26.dahlia";
        reader.problem("payprov.api_version", text);
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
        past_due_grace_days,
        api_version,
        request,
    })
}

/// `2024-06-20`, `2026-08-26.dahlia`: requests depend on the date.
fn is_version(text: &str) -> bool {
    let (date, name) = text.split_once('.').unwrap_or((text, "acacia"));
    chrono::NaiveDate::parse_from_str(date, "%Y-%m-%d").is_ok()
        && date.len() == "2026-08-26".len()
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b';' | b'='))
}
