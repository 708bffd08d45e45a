//! ID tokens of every kind, good and bad.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use chrono::DateTime;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};

use super::claims::{Expected, is_for, nonce};
use super::jwk::{MOST_KEYS, PublicKey, public_keys};
use super::*;

const ISSUER: &str = "https://login.mail.example/";
const NOW: i64 = 1_764_000_000;

/// An RSA public key without its private key, and a signature made earlier.
const RSA_N: &str = "pfKF-jy7Vmr7SfWdTufXEHewn3aznPMNox1tHI7S6Eu4BWCBbxRQH8ENS22e1aNTyTyLD2188zsGZfvFEFd_K7Q3qhpDkzgCrBpJ\
 cA4WVjc8AMe6Xd41sdFVYi4niOy1137rqKjpwMOdtSnHluntLdCguVmVXf1xlgzjxlaevqezc3eYl0HyeK-6rljZ50uH_o9bbfWP\
 2GdEO1IWP-oDrTveRRPR_Tr8jKuLJKuNx5QGqss0w0rEjnoPCsxSRr9gWDX1ufwvQtBtyOycoHlcGhbV1lDTd3Gtsa2DRw0woLGv\
 wscLpDQGGK8W6xQSOBJRCdWyjRDG7vj6Q7_V-nBySw";
const RS256: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InIifQ.eyJpc3MiOiJodHRwczovL2xvZ2luLm1haWwuZXhhbXBsZS8iLCJhdWQiOiJ1cyIsI\
 mV4cCI6MTc2NDAwMDYwMCwiaWF0IjoxNzY0MDAwMDAwLCJub25jZSI6Im4iLCJlbWFpbCI6ImFkYUB4LmV4YW1wbGUifQ.VTig1g\
 wjxCZw9cNZgonB4BPqoEmxVi97kMgjVjEQXXY4MyalPcqsZ4gRvrKUD0g2qIXAg9HU5xuVPNswOYKeyXc0o0_km-6bbzIOR9UN4z\
 ubKkmQiiOOxs4aqaehFnDXKndJSOpH20thW7BPPSYLQmw487hj0fIiZOEJZteeOfnx823cZBxX6rMDjHmyy4ho9kKt7VTLya_3q9\
 rVkSO0yUGSxRDen0ScIfdkxPINACQFO6DBbjvHAZB-dqhkUq1XCTDK_lhlC2_y4GdgHDm3CJGY1awj7QcK_6oxUVftwyVA6aCjQn\
 _HxFUD7Z-VqMLRnBo7QH6E4udqSTHSC461Mw";
const PS256: &str = "eyJhbGciOiJQUzI1NiIsImtpZCI6InIifQ.eyJpc3MiOiJodHRwczovL2xvZ2luLm1haWwuZXhhbXBsZS8iLCJhdWQiOiJ1cyIsI\
 mV4cCI6MTc2NDAwMDYwMCwiaWF0IjoxNzY0MDAwMDAwLCJub25jZSI6Im4iLCJlbWFpbCI6ImFkYUB4LmV4YW1wbGUifQ.kdryEA\
 rmTs8_O5tY81M-qHhCT0Y7syoFmliT6cy6fOiPK87NMTE7RewugzoGxbrIwCzG78noDgXA1y5-kZAWs2KmFrbhFAAF-gMgzmPLXS\
 FUbIA3TzMx0fYx7zjPVvQ06dLIZ4_xK5jMz98KYOJUJpzlhuEbH9eSGcZ39KNni4ViejMQOXDYC4bhixGMRs4i-P_MGX6BYFuEf0\
 0T5MQKZ_c5gOkJFzkFUOEcXSv3EwsqUVbeEkMuwCo73RzKh9CRoN4oXkPAICZwECy5UzSqlV-ogMfacVCYNMTOasmJ1touBBEhHE\
 x9lKeZZw8xfqyFTXpF2cUNAbgKHc-u7VNylw";

enum Signer {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Nobody,
}

impl Signer {
    fn p256() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self::P256(EcdsaKeyPair::from_pkcs8(algorithm, pair.as_ref(), &random).unwrap())
    }

    fn ed25519() -> Self {
        let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap())
    }

    fn key(&self, id: &str) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::P256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "kid": id, "x": encode(x), "y": encode(y) })
            }
            Self::Ed25519(pair) => {
                let x = encode(pair.public_key().as_ref());
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": x })
            }
            Self::Nobody => json!({ "kty": "oct", "k": "AAAA", "kid": id }),
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = match self {
            Self::P256(pair) => {
                let signed = pair.sign(&SystemRandom::new(), message.as_bytes());
                signed.unwrap().as_ref().to_vec()
            }
            Self::Ed25519(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
            Self::Nobody => Vec::new(),
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn set(keys: &[Value]) -> Vec<PublicKey> {
    public_keys(json!({ "keys": keys }).to_string().as_bytes()).unwrap_or_default()
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": "us", "exp": NOW + 600, "iat": NOW, "nonce": "n",
        "email": "ada@x.example",
    })
}

/// The error in a token; empty if there is none.
fn problem(token: &str, keys: &[PublicKey], now: i64) -> String {
    let expected = Expected {
        issuer: ISSUER,
        client_id: "us",
        nonce: "n",
        now: DateTime::from_timestamp(now, 0).unwrap(),
    };
    let checked = SignedToken::parse(token)
        .and_then(|token| token.verify(keys).and_then(|()| token.check(&expected)));
    checked.map_or_else(|error| error.to_string(), |()| String::new())
}

#[test]
fn a_token_is_known_by_the_published_keys() {
    let (p256, ed25519) = (Signer::p256(), Signer::ed25519());
    let rsa = json!({ "kty": "RSA", "kid": "r", "use": "sig", "n": RSA_N, "e": "AQAB" });
    let mut keys = vec![
        rsa,
        p256.key("p"),
        ed25519.key("e"),
        Signer::Nobody.key("o"),
    ];
    let all = set(&keys);
    assert_eq!(all.len(), 3);
    let es = |header: Value| p256.sign(&header, &claims());
    let signed = es(json!({ "alg": "ES256", "kid": "p" }));
    let ed = ed25519.sign(&json!({ "alg": "EdDSA", "kid": "e" }), &claims());
    for token in [
        RS256,
        PS256,
        &signed,
        &ed,
        &es(json!({ "alg": "ES256" })),
        &format!("{signed}=="),
    ] {
        assert_eq!(problem(token, &all, NOW), "", "{token}");
    }
    let (message, signature) = signed.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    let mut claims = claims();
    claims["email"] = "eve@x.example".into();
    let eves = URL_SAFE_NO_PAD.encode(claims.to_string());
    // The classic: an HMAC by the public key itself.
    let hmac = Signer::Nobody.sign(&json!({ "alg": "HS256", "kid": "r" }), &claims);
    for (token, expected) in [
        (format!("{header}.{eves}.{signature}"), "signature is wrong"),
        (
            Signer::p256().sign(&json!({ "alg": "ES256", "kid": "p" }), &claims),
            "signature is wrong",
        ),
        (format!("{message}."), "signature is wrong"),
        (
            Signer::Nobody.sign(&json!({ "alg": "none" }), &claims),
            "signature is wrong",
        ),
        (
            Signer::Nobody.sign(&json!({ "alg": "None", "kid": "p" }), &claims),
            "signature is wrong",
        ),
        (hmac, "signature is wrong"),
        (
            es(json!({ "alg": "ES384", "kid": "p" })),
            "signature is wrong",
        ),
        (
            es(json!({ "alg": "RS256", "kid": "p" })),
            "signature is wrong",
        ),
        (
            es(json!({ "alg": "ES256", "kid": "e" })),
            "signature is wrong",
        ),
        (
            es(json!({ "alg": "ES256", "kid": "x" })),
            "is not among those",
        ),
        (
            es(json!({ "alg": "ES256", "kid": "o" })),
            "is not among those",
        ),
        (
            es(json!({ "alg": "ES256", "kid": "p", "crit": ["b64"] })),
            "can't be read",
        ),
        (es(json!({ "kid": "p" })), "can't be read"),
        (message.to_owned(), "can't be read"),
        (String::new(), "can't be read"),
        ("a.b.c".to_owned(), "can't be read"),
        (format!("{signed}.x"), "can't be read"),
    ] {
        let problem = problem(&token, &all, NOW);
        assert!(problem.contains(expected), "{token}: {problem}");
    }
    // A key for something else signs nothing.
    for (name, value) in [
        ("use", "enc"),
        ("alg", "ES512"),
        ("crv", "P-521"),
        ("x", "AAAA"),
    ] {
        keys[1][name] = value.into();
        assert!(!problem(&signed, &set(&keys), NOW).is_empty(), "{name}");
        keys[1] = p256.key("p");
    }
    let many: Vec<Value> = (0..200).map(|_| p256.key("p")).collect();
    assert_eq!(set(&many).len(), MOST_KEYS);
    for none in [
        "",
        "[]",
        "{}",
        r#"{"keys":7}"#,
        r#"{"keys":[7,{},{"kty":"RSA"}]}"#,
    ] {
        assert!(public_keys(none.as_bytes()).is_none(), "{none}");
    }
}

#[test]
fn a_signed_token_must_be_for_this_sign_in() {
    let signer = Signer::ed25519();
    let keys = set(&[signer.key("e")]);
    for (name, value, expected) in [
        ("iss", json!("https://login.mail.example"), "another issuer"),
        ("iss", json!(null), "another issuer"),
        ("iss", json!([ISSUER]), "another issuer"),
        ("aud", json!("them"), "another client"),
        ("aud", json!(["them"]), "another client"),
        ("aud", json!([]), "another client"),
        ("aud", json!(null), "another client"),
        ("aud", json!(["them", "us"]), ""),
        ("azp", json!("us"), ""),
        ("azp", json!("them"), "another client"),
        ("nonce", json!("m"), "another sign-in"),
        ("nonce", json!(null), "another sign-in"),
        ("exp", json!(NOW - 59), ""),
        ("exp", json!(NOW - 60), "has expired"),
        ("exp", json!(1_764_000_000.5), ""),
        ("exp", json!(null), "has expired"),
        ("exp", json!((NOW + 600).to_string()), "has expired"),
        ("exp", json!(1e300), "has expired"),
        ("exp", json!(-1e300), "has expired"),
        ("nbf", json!(NOW + 60), ""),
        ("nbf", json!(NOW + 61), "isn't valid yet"),
        ("iat", json!(NOW + 61), "isn't valid yet"),
    ] {
        let mut claims = claims();
        claims[name] = value;
        let token = signer.sign(&json!({ "alg": "EdDSA", "kid": "e" }), &claims);
        let problem = problem(&token, &keys, NOW);
        let is_so = problem.contains(expected) && problem.is_empty() == expected.is_empty();
        assert!(is_so, "{claims}: {problem}");
    }
    assert_eq!(nonce("a"), nonce("a"));
    assert_ne!(nonce("a"), nonce("b"));
    assert_eq!(nonce("a").len(), 43);
}

#[test]
fn an_id_token_is_read_or_not() {
    let token = |payload: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload));
    let read = unverified_claims(&token(r#"{"aud":"us","preferred_username":"a@x.example"}"#));
    assert!(read.is_some_and(|claims| is_for(&claims, "us") && !is_for(&claims, "u")));
    for bad in ["", "a", "a.b", "a.!!.c", &token("[1]"), &token("{")] {
        assert!(unverified_claims(bad).is_none(), "{bad}");
    }
}
