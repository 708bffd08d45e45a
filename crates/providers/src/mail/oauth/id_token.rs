//! ID tokens signed with a provider's published keys (`OpenID` Connect Core §3.1.3.7; RFC 7515, 7517 and 7518).
//! Only signatures by a private key count: `none` and the HMACs, which a public key could produce, are rejected.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::Response;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::response::{Fields, text};
use super::{OAuthClient, OAuthError, read, refusal, unreachable};

/// The tolerated difference from the provider's clock.
const SKEW: TimeDelta = TimeDelta::minutes(1);

/// How long published keys are used, and how long if they can't be fetched again; and the pause before they are fetched
/// again, for a token with an unknown key or after a failure.
const KEYS_LIFE: TimeDelta = TimeDelta::days(1);
const KEYS_LONGEST: TimeDelta = TimeDelta::days(2);
const KEYS_PAUSE: TimeDelta = TimeDelta::minutes(1);

/// Maximum keys kept per provider.
const MOST_KEYS: usize = 100;

/// The expected claims of an ID token.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now: DateTime<Utc>,
}

/// The nonce of an authorization request, which binds its ID token. It is derived from the code verifier, which is kept
/// as long and is as secret.
pub(super) fn nonce(code_verifier: &str) -> String {
    let digest = Sha256::new()
        .chain_update("nonce of ")
        .chain_update(code_verifier);
    URL_SAFE_NO_PAD.encode(digest.finalize())
}

/// A provider's published keys, as last fetched.
#[derive(Debug, Default)]
pub(super) struct PublishedKeys(Mutex<Fetched>);

#[derive(Debug, Default)]
struct Fetched {
    keys: Vec<PublicKey>,
    /// When they were fetched.
    at: Option<DateTime<Utc>>,
    /// The last attempt to fetch them, and its error.
    asked: Option<(DateTime<Utc>, Result<(), OAuthError>)>,
}

/// Also where the clock was set back.
fn is_past(age: TimeDelta, at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    at.is_none_or(|at| now < at || now - at >= age)
}

impl OAuthClient {
    /// The claims of an ID token that is signed with the provider's keys and belongs to this authorization.
    pub(super) async fn verified_claims(
        &self,
        token: &str,
        code_verifier: &str,
    ) -> Result<Fields, OAuthError> {
        let token = SignedToken::parse(token)?;
        // One task fetches, and the others wait for it.
        let mut fetched = self.published_keys.0.lock().await;
        let now = self.clock.now();
        if is_past(KEYS_LIFE, fetched.at, now)
            && let Err(error) = self.renew(&mut fetched, now).await
            && is_past(KEYS_LONGEST, fetched.at, now)
        {
            return Err(error);
        }
        // A provider may change its keys at any time and keep their ids.
        if token.verify(&fetched.keys).is_err() {
            self.renew(&mut fetched, now).await?;
        }
        token.verify(&fetched.keys)?;
        drop(fetched);
        token.check(&Expected {
            issuer: &self.settings.account.issuer,
            client_id: &self.settings.client_id,
            nonce: &nonce(code_verifier),
            now,
        })?;
        Ok(token.claims)
    }

    /// Fetches the keys, unless they were fetched a moment ago: then that result counts.
    async fn renew(&self, fetched: &mut Fetched, now: DateTime<Utc>) -> Result<(), OAuthError> {
        if let Some((at, answer)) = &fetched.asked
            && !is_past(KEYS_PAUSE, Some(*at), now)
        {
            return answer.clone();
        }
        let answer = match self.fetch_keys().await {
            Ok(keys) => {
                (fetched.keys, fetched.at) = (keys, Some(now));
                Ok(())
            }
            Err(error) => {
                tracing::warn!(plugin = %self.settings.plugin, %error, "the provider's keys can't be fetched");
                Err(error)
            }
        };
        fetched.asked = Some((now, answer.clone()));
        answer
    }

    async fn fetch_keys(&self) -> Result<Vec<PublicKey>, OAuthError> {
        let response: Response = self
            .http
            .get(&self.settings.account.jwks_url)
            .timeout(self.limit)
            .header("accept", "application/json")
            .send()
            .await
            .map_err(unreachable)?;
        let status = response.status();
        let body = read(response).await?;
        if !status.is_success() {
            return Err(refusal(status, &body));
        }
        public_keys(&body).ok_or(OAuthError::Nonsense("jwks_url has no keys"))
    }
}

/// A key of a JWK set (RFC 7517 §4).
#[derive(Debug)]
pub(super) struct PublicKey {
    id: Option<String>,
    /// Its only algorithm, if it names one.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The signing keys of a JWK set, of known types; `None` if there are none.
pub(super) fn public_keys(body: &[u8]) -> Option<Vec<PublicKey>> {
    let set: Fields = serde_json::from_slice(body).ok()?;
    let keys = set.get("keys")?.as_array()?.iter();
    let keys = keys.filter_map(|key| PublicKey::parse(key.as_object()?));
    let keys: Vec<PublicKey> = keys.take(MOST_KEYS).collect();
    (!keys.is_empty()).then_some(keys)
}

impl PublicKey {
    fn parse(key: &Fields) -> Option<Self> {
        if text(key, "use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let bytes = |name| decode(text(key, name)?);
        let number = |name| {
            let bytes: Vec<u8> = bytes(name)?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            Some(bytes.into_iter().skip(zeros).collect::<Vec<u8>>())
        };
        // A point, uncompressed (SEC 1 §2.3.3), of coordinates in full length (RFC 7518 §6.2.1.2).
        let point = |length| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == length && y.len() == length).then(|| [&[4], &x[..], &y[..]].concat())
        };
        let material = match (text(key, "kty")?, text(key, "crv")) {
            ("RSA", _) => Material::Rsa {
                n: number("n")?,
                e: number("e")?,
            },
            ("EC", Some("P-256")) => Material::P256(point(32)?),
            ("EC", Some("P-384")) => Material::P384(point(48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x")?),
            _ => return None,
        };
        Some(Self {
            id: text(key, "kid").map(str::to_owned),
            algorithm: text(key, "alg").map(str::to_owned),
            material,
        })
    }

    /// Whether this key may have signed a token, by their key ids.
    fn may_sign(&self, token: &SignedToken<'_>) -> bool {
        let is_named = match (&token.key_id, &self.id) {
            (Some(named), Some(id)) => named == id,
            _ => true,
        };
        let is_for_it = (self.algorithm.as_ref()).is_none_or(|it| *it == token.algorithm);
        is_named && is_for_it
    }

    fn has_signed(&self, token: &SignedToken<'_>) -> bool {
        let (message, signature) = (token.message.as_bytes(), &token.signature);
        let by = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key)
                .verify(message, signature)
                .is_ok()
        };
        match (token.algorithm.as_str(), &self.material) {
            (algorithm, Material::Rsa { n, e }) => rsa(algorithm).is_some_and(|parameters| {
                RsaPublicKeyComponents { n, e }
                    .verify(parameters, message, signature)
                    .is_ok()
            }),
            ("ES256", Material::P256(point)) => by(&ECDSA_P256_SHA256_FIXED, point),
            ("ES384", Material::P384(point)) => by(&ECDSA_P384_SHA384_FIXED, point),
            ("EdDSA", Material::Ed25519(key)) => by(&ED25519, key),
            _ => false,
        }
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// An unverified token in three parts (RFC 7515 §7.1).
#[derive(Debug)]
pub(super) struct SignedToken<'a> {
    message: &'a str,
    signature: Vec<u8>,
    algorithm: String,
    key_id: Option<String>,
    claims: Fields,
}

impl<'a> SignedToken<'a> {
    pub(super) fn parse(token: &'a str) -> Result<Self, OAuthError> {
        let parsed = || {
            let (message, signature) = token.rsplit_once('.')?;
            let (header, payload) = message.split_once('.')?;
            let json = |part| serde_json::from_slice::<Fields>(&decode(part)?).ok();
            let header = json(header)?;
            // Critical extensions (RFC 7515 §4.1.11): none is supported.
            if header.contains_key("crit") {
                return None;
            }
            Some(Self {
                message,
                signature: decode(signature)?,
                algorithm: text(&header, "alg")?.to_owned(),
                key_id: text(&header, "kid").map(str::to_owned),
                claims: json(payload)?,
            })
        };
        parsed().ok_or(OAuthError::Nonsense("the id token can't be read"))
    }

    pub(super) fn verify(&self, keys: &[PublicKey]) -> Result<(), OAuthError> {
        let mut named = keys.iter().filter(|key| key.may_sign(self)).peekable();
        if named.peek().is_none() {
            return Err(OAuthError::Nonsense(
                "the id token's key is not among those at jwks_url",
            ));
        }
        if named.any(|key| key.has_signed(self)) {
            return Ok(());
        }
        Err(OAuthError::Nonsense("the id token's signature is wrong"))
    }

    pub(super) fn check(&self, expected: &Expected<'_>) -> Result<(), OAuthError> {
        let claims = &self.claims;
        let says = |name, value: &str| text(claims, name) == Some(value);
        // Seconds, perhaps with a fraction (RFC 7519 §2).
        let moment = |name| {
            let seconds = claims.get(name).and_then(Value::as_f64)?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a float that is too large stops at the end"
            )]
            let seconds = seconds as i64;
            DateTime::from_timestamp(seconds, 0)
        };
        let now = expected.now;
        let problem = if !says("iss", expected.issuer) {
            "the id token is of another issuer"
        } else if !is_for(claims, expected.client_id)
            || text(claims, "azp").is_some_and(|client| client != expected.client_id)
        {
            "the id token is for another client"
        } else if !says("nonce", expected.nonce) {
            "the id token is of another sign-in"
        } else if moment("exp").is_none_or(|end| end <= now - SKEW) {
            "the id token has expired"
        } else if ["nbf", "iat"]
            .into_iter()
            .filter_map(moment)
            .any(|begin| begin > now + SKEW)
        {
            "the id token isn't valid yet"
        } else {
            return Ok(());
        };
        Err(OAuthError::Nonsense(problem))
    }
}

/// Whether a token is for this client, alone or among others.
pub(super) fn is_for(claims: &Fields, client_id: &str) -> bool {
    let is_it = |value: &Value| value.as_str() == Some(client_id);
    match claims.get("aud") {
        Some(Value::Array(clients)) => clients.iter().any(is_it),
        Some(client) => is_it(client),
        None => false,
    }
}

/// Base64url without padding (RFC 7515 §2); some pad it.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
    };
    use serde_json::json;

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
    fn keys_are_fetched_again_when_they_are_old() {
        let moment = |seconds| DateTime::from_timestamp(NOW + seconds, 0).unwrap();
        let at = Some(moment(0));
        for (at, age, now, expected) in [
            (None, KEYS_LIFE, 0, true),
            (at, KEYS_PAUSE, 0, false),
            (at, KEYS_PAUSE, 59, false),
            (at, KEYS_PAUSE, 60, true),
            (at, KEYS_LIFE, 60, false),
            (at, KEYS_LIFE, 86_400, true),
            (at, KEYS_LIFE, -1, true),
        ] {
            assert_eq!(is_past(age, at, moment(now)), expected, "{age} {now}");
        }
    }
}
