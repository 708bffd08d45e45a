//! Lets `mailgate check` find out which client address a gateway sees through the proxies in front of it. Only requests
//! proven with the sealing keys are answered.

use std::net::IpAddr;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::seal::{SealError, SealKeys};
use super::sealed_text;

/// The header field with the proof that the operator sent the request.
pub const HEADER: &str = "x-mailgate-probe";

/// The context that proofs are sealed for.
const CONTEXT: &str = "client address probe";

/// How long a proof is valid, which allows for clock skew.
const LIFETIME: TimeDelta = TimeDelta::minutes(5);

/// A request as it reached the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// The peer's address.
    pub peer: IpAddr,
    /// Whether the peer is one of `http.trusted_proxies`.
    pub is_trusted: bool,
    /// The address taken as the client's.
    pub client: IpAddr,
    /// The `X-Forwarded-For` fields, in order.
    pub forwarded_for: Vec<String>,
}

/// Creates a proof for this time.
///
/// # Errors
///
/// As [`SealKeys::seal`].
pub fn prove(keys: &SealKeys, now: DateTime<Utc>) -> Result<String, SealError> {
    sealed_text::seal(keys, CONTEXT, &(now + LIFETIME).timestamp())
}

/// Whether this is a valid proof.
#[must_use]
pub fn is_proof(keys: &SealKeys, text: &str, now: DateTime<Utc>) -> bool {
    let expires_at: Option<i64> = sealed_text::open(keys, CONTEXT, text);
    expires_at.is_some_and(|expires_at| now.timestamp() < expires_at)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_made_with_the_keys_and_ends() {
        let keys = SealKeys::parse(["k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]).unwrap();
        let others = SealKeys::parse(["k1:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="]).unwrap();
        let now = Utc::now();
        let proof = prove(&keys, now).unwrap();
        assert!(is_proof(&keys, &proof, now));
        assert!(!is_proof(&others, &proof, now));
        assert!(!is_proof(&keys, &proof, now + LIFETIME));
        assert!(!is_proof(&keys, "", now));
        let another = sealed_text::seal(&keys, "another use", &i64::MAX).unwrap();
        assert!(!is_proof(&keys, &another, now));
    }
}
