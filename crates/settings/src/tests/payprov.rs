//! The payment provider.

use super::*;

#[test]
fn billing_needs_a_price_and_keys_that_fit_a_header() {
    let mut environment = needed();
    let settings = load_with(&environment, None).unwrap();
    assert!(settings.payprov.is_none());
    environment.push(("MAILGATE__PAYPROV__SECRET_KEY", "sk_test_1"));
    let problems = load_with(&environment, None).unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("payprov.price: is required"));
    assert!(problems[1].starts_with("payprov.webhook_secret: is required"));
    environment.push(("MAILGATE__PAYPROV__PRICE", "price_1"));
    let mut signed = environment.clone();
    signed.push(("MAILGATE__PAYPROV__WEBHOOK_SECRET", "whsec_x"));
    assert!(load_with(&signed, None).is_ok());
    environment.push(("MAILGATE__PAYPROV__ACCEPT_UNSIGNED", "true"));
    let payprov = load_with(&environment, None).unwrap().payprov.unwrap();
    assert_eq!(payprov.base_url, "https://api.stripe.com");
    assert_eq!(payprov.trial_days, 14);
    assert!(payprov.webhook_secret.is_none());
    assert_eq!(payprov.api_version, "2026-08-26.dahlia");
    for (name, value, expected) in [
        ("BASE_URL", "stripe", "payprov.base_url: must be"),
        ("BASE_URL", "", "payprov.base_url: is required"),
        ("SECRET_KEY", "sk a", "payprov.secret_key: must be"),
        ("API_VERSION", "2025 basil", "payprov.api_version: must be"),
        ("API_VERSION", "", "payprov.api_version: must be"),
        ("API_VERSION", "2026-02-30", "payprov.api_version: must be"),
        ("API_VERSION", "2026-8-26", "payprov.api_version: must be"),
        ("API_VERSION", "2026-08-26.", "payprov.api_version: must be"),
        ("TRIAL_DAYS", "731", "payprov.trial_days: must be between"),
        ("REQUEST_SECONDS", "0", "payprov.request_seconds: must be"),
    ] {
        let name = format!("MAILGATE__PAYPROV__{name}");
        let mut environment = environment.clone();
        environment.push((&name, value));
        let problems = load_with(&environment, None).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with(expected), "{problems:?}");
    }
}
