//! The keys of a JWK set (RFC 7517) that can sign ID tokens.

use super::super::response::{Fields, text};
use super::decode;

/// Maximum keys kept per provider.
pub(super) const MOST_KEYS: usize = 100;

/// A key of a JWK set (RFC 7517 §4).
#[derive(Debug)]
pub(in crate::mail::oauth) struct PublicKey {
    pub(super) id: Option<String>,
    /// Its only algorithm, if it names one.
    pub(super) algorithm: Option<String>,
    pub(super) material: Material,
}

#[derive(Debug)]
pub(super) enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The signing keys of a JWK set, of known types; `None` if there are none.
pub(in crate::mail::oauth) fn public_keys(body: &[u8]) -> Option<Vec<PublicKey>> {
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
}
