//! Fuzz targets for HTTP requests.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use axum::extract::Query;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use chrono::Datelike;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::send;
use super::stats::EmailStatsQuery;
use crate::apps::fields::{ChangeAppRequest, CreateAppRequest};
use crate::http::query::QueryParameters;
use crate::http::request::parse;
use crate::logs::query::LogQuery;
use crate::webhooks::deliveries::Page;
use crate::webhooks::fields::{ChangeWebhookRequest, CreateWebhookRequest};
use mailgate_domain::reports::Start;
use mailgate_domain::sending::accept::idempotency::read_key;
use mailgate_types::fuzzing::{Input, is_printable};
use mailgate_types::ids::SubscriberId;
use mailgate_types::seal::SealKeys;
use mailgate_types::trusted_peers::TrustedPeers;

/// Seals cursors.
const SEAL_KEY: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Bodies that create or change apps and webhooks.
pub fn rest_bodies(data: &[u8]) {
    let name = |name: &str| {
        assert!(
            (1..=255).contains(&name.chars().count()) && is_printable(name),
            "{name:?}"
        );
    };
    let address = |address: &str| {
        let url = url::Url::parse(address);
        assert!(address.is_empty() || url.is_ok_and(|url| url.scheme() == "https"));
        assert!(
            address.len() <= 2_048 && is_printable(address),
            "{address:?}"
        );
    };
    if let Ok(app) = parse::<CreateAppRequest>(data).and_then(|it| it.validate(false)) {
        name(&app.name);
        for text in [&app.logo_url, &app.webhook_url, &app.callback_url] {
            address(text);
        }
    }
    if let Ok(app) = parse::<ChangeAppRequest>(data).and_then(|it| it.validate(false)) {
        if let Some(given) = &app.name {
            name(given);
        }
        let given = [&app.logo_url, &app.webhook_url, &app.callback_url];
        for text in given.into_iter().flatten() {
            address(text);
        }
    }
    if let Ok(webhook) = parse::<CreateWebhookRequest>(data).and_then(|it| it.validate(false)) {
        address(&webhook.url);
        assert!((1..=20).contains(&webhook.events.len()));
    }
    if let Ok(webhook) = parse::<ChangeWebhookRequest>(data).and_then(|it| it.validate(false)) {
        if let Some(given) = &webhook.url {
            address(given);
        }
        assert!(
            webhook
                .events
                .is_none_or(|events| (1..=20).contains(&events.len()))
        );
    }
}

/// Query strings of every request that has one.
pub fn queries(data: &[u8]) {
    let Some(text) = Input::new(data).text() else {
        return;
    };
    let parameters = QueryParameters::parse(Some(text));
    for name in ["plugin", "user_id", "login_hint", "state", "code", "error"] {
        if let Ok(Some(value)) = parameters.text(name, 255) {
            assert!(is_printable(value) && (1..=255).contains(&value.chars().count()));
            assert_eq!(parameters.once(name), Ok(Some(value)));
        }
    }
    let Ok(uri) = format!("/?{text}").parse::<Uri>() else {
        return;
    };
    if let Some(query) = read::<LogQuery>(&uri)
        && let Ok(keys) = SealKeys::parse([SEAL_KEY])
        && let Ok(wanted) = query.validate(SubscriberId(Uuid::nil()), &keys)
    {
        assert!((1..=100).contains(&wanted.limit));
        // Only the gateway makes cursors.
        assert!(matches!(wanted.start, Start::Offset(offset) if offset >= 0));
        let search = wanted.filter.search;
        for text in [search.message_id, search.user, search.subject] {
            assert!(text.is_none_or(|text| is_printable(&text) && (1..=998).contains(&text.len())));
        }
        let moments = [wanted.filter.from, wanted.filter.before];
        for moment in moments.into_iter().flatten() {
            assert!((-1..=10_000).contains(&moment.year()), "{moment}");
            assert_eq!(moment.timestamp_subsec_nanos() % 1_000_000, 0);
        }
    }
    let _ = (read::<EmailStatsQuery>(&uri), read::<Page>(&uri));
}

fn read<T: DeserializeOwned>(uri: &Uri) -> Option<T> {
    Query::try_from_uri(uri).ok().map(|Query(query)| query)
}

/// Headers whose values are parsed.
pub fn http_headers(data: &[u8]) {
    let mut input = Input::new(data);
    let peer = std::net::IpAddr::from([10, 0, 0, input.byte()]);
    let text = String::from_utf8_lossy(input.rest());
    if let Some(key) = read_key(&text) {
        assert!((1..=255).contains(&key.len()));
        assert_eq!(read_key(&key).as_ref(), Some(&key));
        assert!(key.bytes().all(|byte| matches!(byte, b' '..=b'~')));
    }
    if let Ok(value) = HeaderValue::from_bytes(input.rest()) {
        let mut headers = HeaderMap::new();
        headers.append(HeaderName::from_static("idempotency-key"), value);
        let key = send::fuzzing::has_key(&headers, b"{}");
        let is_key = headers
            .values()
            .all(|value| value.to_str().is_ok_and(|text| read_key(text).is_some()));
        assert_eq!(key, is_key.then_some(true));
    }
    let Ok(trusted) = TrustedPeers::parse(["10.0.0.0/8"]) else {
        return;
    };
    let client = trusted.client(peer, [text.as_bytes()].into_iter());
    let named = text.contains(&client.to_string());
    assert!(
        client == peer || named || client.is_ipv6() || text.contains(':'),
        "{client}"
    );
    let untrusted = TrustedPeers::default().client(peer, [text.as_bytes()].into_iter());
    assert_eq!(untrusted, peer);
    // A client behind two proxies can't impersonate another by adding addresses to the header.
    let forged = [input.rest(), b",192.0.2.7, 10.0.0.9"].concat();
    for fields in [vec![&forged[..]], vec![input.rest(), b"192.0.2.7"]] {
        let client = trusted.client(peer, fields.into_iter());
        assert_eq!(client, std::net::IpAddr::from([192, 0, 2, 7]));
    }
}
