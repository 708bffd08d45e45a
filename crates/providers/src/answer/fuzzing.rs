//! Fuzz targets for HTTP responses in general.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use std::sync::Arc;
use std::time::Duration;

use axum::http::Response as HttpResponse;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::{FutureExt, stream};
use reqwest::{Body, Client, Response};
use rustls::{ClientConfig, RootCertStore};

use super::{LONGEST_WAIT, ProviderResponse, one_line, retry_after, until};
use mailgate_types::fuzzing::{Input, is_printable, pieces};

/// Bytes of a response that the targets read.
const MAXIMUM: usize = 4 * 1024;

/// Any time that a clock can have.
pub fn moment(input: &mut Input<'_>) -> DateTime<Utc> {
    let seconds = i64::from_be_bytes(input.take(8).try_into().unwrap_or([0; 8]));
    // Up to the year 9999.
    DateTime::from_timestamp(seconds.rem_euclid(253_402_300_800), 0).unwrap_or_default()
}

/// A client that trusts no certificate, for constructors that need one.
pub fn client() -> Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()
        .map(|builder| builder.with_root_certificates(RootCertStore::empty()))
        .and_then(|builder| {
            let tls = builder.with_no_client_auth();
            Client::builder()
                .tls_backend_preconfigured(tls)
                .build()
                .ok()
        });
    let Some(client) = client else {
        unreachable!("a client can be made");
    };
    client
}

/// A response as it arrives over the network: a status, a Retry-After, and a body in pieces.
pub fn answer(input: &mut Input<'_>, now: DateTime<Utc>) -> ProviderResponse {
    let status = 100 + u16::try_from(input.number() % 500).unwrap_or_default();
    let length = input.byte() % 40;
    let wait = input.take(length.into());
    let cuts = input.cuts();
    let body = input.rest();
    let response = |cuts: &[u8]| {
        let parts: Vec<_> = pieces(body, cuts)
            .into_iter()
            .map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece)))
            .collect();
        let response = HttpResponse::builder()
            .status(status)
            .header("retry-after", wait)
            .body(Body::wrap_stream(stream::iter(parts)));
        response.map(Response::from).ok()
    };
    let read = |cuts: &[u8]| ProviderResponse::read(response(cuts)?, MAXIMUM, now).now_or_never();
    let (whole, cut) = (read(&[]), read(cuts));
    let (Some(whole), Some(cut)) = (whole, cut) else {
        return ProviderResponse {
            status,
            retry_after: None,
            body: serde_json::from_slice(body).unwrap_or_default(),
            is_too_long: false,
        };
    };
    assert_eq!(whole.status, status);
    assert_eq!(whole.body, cut.body);
    assert!(body.len() <= MAXIMUM || whole.body.is_null());
    assert_eq!(whole.is_too_long, body.len() > MAXIMUM);
    assert!(whole.retry_after.is_none_or(|wait| wait <= LONGEST_WAIT));
    whole
}

/// Whether untrusted text was reduced to one short line.
pub fn is_told(text: &str) -> bool {
    // Our own text around two texts from the provider.
    is_printable(text) && text.chars().count() <= 1_000
}

/// The delay: at most a day, never in the past.
pub fn retry_after_header(data: &[u8]) {
    let mut input = Input::new(data);
    let now = moment(&mut input);
    let text = String::from_utf8_lossy(input.rest());
    for now in [Some(now), None] {
        let wait = retry_after(&text, now);
        assert!(wait.is_none_or(|wait| wait <= LONGEST_WAIT), "{text:?}");
        if let Ok(seconds) = text.trim().parse::<u64>()
            && !text.contains('+')
        {
            let expected = Duration::from_secs(seconds).min(LONGEST_WAIT);
            assert_eq!(wait, Some(expected), "{text:?}");
        }
    }
    if let Ok(date) = DateTime::parse_from_rfc2822(text.trim()) {
        let wait = until(date.to_utc(), now);
        assert_eq!(wait.is_some(), date >= now, "{text:?}");
    }
    let line = one_line(&text);
    assert!(is_printable(&line) && line.chars().count() <= 300);
}
