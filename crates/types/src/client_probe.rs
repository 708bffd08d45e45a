//! How `mailgate check` learns, by way of the proxies in front of a gateway, whom that takes for the client. Only who
//! has the sealing keys is answered.

use std::net::IpAddr;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::seal::{SealError, SealKeys};
use super::sealed_text;

/// The field that proves that the operator asks.
pub const HEADER: &str = "x-mailgate-probe";

/// What a proof is sealed for.
const CONTEXT: &str = "client address probe";

/// How long a proof is good: a clock may be that far off.
const LIFETIME: TimeDelta = TimeDelta::minutes(5);

/// A request as it reached the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// The connection's other end.
    pub peer: IpAddr,
    /// Whether that is one of `http.trusted_proxies`.
    pub is_trusted: bool,
    /// Who counts as the client.
    pub client: IpAddr,
    /// The fields of `X-Forwarded-For`, in their order.
    pub forwarded_for: Vec<String>,
}

/// A proof for the moment.
///
/// # Errors
///
/// As [`SealKeys::seal`].
pub fn prove(keys: &SealKeys, now: DateTime<Utc>) -> Result<String, SealError> {
    sealed_text::seal(keys, CONTEXT, &(now + LIFETIME).timestamp())
}

/// Whether this is a proof, and still good.
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
