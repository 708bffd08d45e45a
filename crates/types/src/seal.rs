//! Sealed secrets and keyed lookup digests.
//!
//! A secret that must be shown or used again is stored sealed: encrypted by an AEAD with a configured key. Each sealed
//! value includes that key's id, so that keys can be rotated. A presented secret is looked up by a digest keyed with a
//! derived key, so a stolen database neither reveals secrets nor lets anyone test guesses.

use std::fmt::{Debug, Formatter};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use secrecy::SecretString;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::secrets::{NoRandomness, random_bytes};

/// The layout of a sealed value: this byte, the key id's length and bytes, a nonce, the ciphertext.
const VERSION: u8 = 1;
const NONCE_BYTES: usize = 24;

/// Why the configured keys can't be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidSealKeys {
    /// No key is configured.
    #[error(
        "is empty: give at least one key as id:base64 (make one with: echo \"k1:$(openssl rand -base64 32)\")"
    )]
    Empty,
    /// An entry isn't `id:base64`.
    #[error(
        "entry {0} is not of the form id:base64, with an id of 1 to 32 letters, digits, - and _"
    )]
    Form(usize),
    /// A key has the wrong length.
    #[error("key {0} must be base64 of exactly 32 bytes (openssl rand -base64 32)")]
    Length(String),
    /// Two keys share an id.
    #[error("the key id {0} stands there twice")]
    Twice(String),
}

/// Why a value can't be unsealed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UnsealError {
    /// It is sealed with a key that is no longer configured.
    #[error("sealed with the key {0}, which seal.keys doesn't have")]
    UnknownKey(String),
    /// It isn't a sealed value, was modified, or was sealed for another context.
    #[error("the sealed value is damaged or was moved here from another place")]
    Damaged,
}

/// Why sealing failed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// No nonce could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The cipher failed.
    #[error("the value can't be sealed")]
    Cipher,
}

struct SealKey {
    id: String,
    /// The prefix of all values that it seals.
    prefix: Vec<u8>,
    cipher: XChaCha20Poly1305,
    lookup: Hmac<Sha256>,
    addresses: Hmac<Sha256>,
}

/// Hashes email addresses for log lines: equal addresses get equal hashes, and guesses can't be tested without the key.
#[derive(Clone)]
pub struct AddressHash(Hmac<Sha256>);

impl AddressHash {
    /// 16 hexadecimal digits.
    #[must_use]
    pub fn of(&self, address: &str) -> String {
        let mut mac = self.0.clone();
        mac.update(address.as_bytes());
        let digest = mac.finalize().into_bytes();
        let first = digest
            .first_chunk()
            .map_or(0, |first| u64::from_be_bytes(*first));
        format!("{first:016x}")
    }
}

/// The configured keys; the first one seals, all of them unseal and look up.
pub struct SealKeys {
    first: SealKey,
    others: Vec<SealKey>,
}

impl SealKeys {
    /// Parses keys of the form `id:base64`, each of 32 bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidSealKeys`] for the first invalid entry.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidSealKeys> {
        let mut keys: Vec<SealKey> = Vec::new();
        for (position, entry) in entries.into_iter().enumerate() {
            let key = parse_key(position + 1, entry)?;
            if keys.iter().any(|other| other.id == key.id) {
                return Err(InvalidSealKeys::Twice(key.id));
            }
            keys.push(key);
        }
        let mut keys = keys.into_iter();
        let first = keys.next().ok_or(InvalidSealKeys::Empty)?;
        Ok(Self {
            first,
            others: keys.collect(),
        })
    }

    fn all(&self) -> impl Iterator<Item = &SealKey> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// An address hash with a key derived from the first one.
    #[must_use]
    pub fn address_hash(&self) -> AddressHash {
        AddressHash(self.first.addresses.clone())
    }

    /// The id of the key that seals.
    #[must_use]
    pub fn first_id(&self) -> &str {
        &self.first.id
    }

    /// The ids of the keys that only unseal.
    #[must_use]
    pub fn other_ids(&self) -> Vec<&str> {
        self.others.iter().map(|key| key.id.as_str()).collect()
    }

    /// The prefix of exactly the values sealed with the first key.
    #[must_use]
    pub fn first_prefix(&self) -> &[u8] {
        &self.first.prefix
    }

    /// Seals `secret` for `context` (table, column and row); no other context unseals it.
    ///
    /// # Errors
    ///
    /// If no nonce can be generated.
    pub fn seal(&self, context: &str, secret: &str) -> Result<Vec<u8>, SealError> {
        let nonce = random_bytes::<NONCE_BYTES>()?;
        let sealed = self
            .first
            .cipher
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: secret.as_bytes(),
                    aad: context.as_bytes(),
                },
            )
            .map_err(|_| SealError::Cipher)?;
        let prefix = &self.first.prefix;
        let mut value = Vec::with_capacity(prefix.len() + NONCE_BYTES + sealed.len());
        value.extend_from_slice(prefix);
        value.extend_from_slice(&nonce);
        value.extend_from_slice(&sealed);
        Ok(value)
    }

    /// Unseals a value that [`Self::seal`] sealed for the same `context`.
    ///
    /// # Errors
    ///
    /// [`UnsealError`] if the key is missing, or the value wasn't sealed for this context.
    pub fn unseal(&self, context: &str, value: &[u8]) -> Result<SecretString, UnsealError> {
        let (&[version, id_length], rest) =
            value.split_first_chunk().ok_or(UnsealError::Damaged)?;
        if version != VERSION {
            return Err(UnsealError::Damaged);
        }
        let (id, rest) = rest
            .split_at_checked(usize::from(id_length))
            .ok_or(UnsealError::Damaged)?;
        let (nonce, sealed) = rest
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(UnsealError::Damaged)?;
        let key = self
            .all()
            .find(|key| key.id.as_bytes() == id)
            .ok_or_else(|| UnsealError::UnknownKey(String::from_utf8_lossy(id).into_owned()))?;
        let opened = key
            .cipher
            .decrypt(
                &XNonce::from(*nonce),
                Payload {
                    msg: sealed,
                    aad: context.as_bytes(),
                },
            )
            .map(Zeroizing::new)
            .map_err(|_| UnsealError::Damaged)?;
        std::str::from_utf8(&opened)
            .map(SecretString::from)
            .map_err(|_| UnsealError::Damaged)
    }

    /// The digest under which a new secret is stored.
    #[must_use]
    pub fn lookup_digest(&self, secret: &str) -> Vec<u8> {
        digest(&self.first, secret)
    }

    /// The digests under which a presented secret may be stored, one for each configured key.
    #[must_use]
    pub fn lookup_digests(&self, secret: &str) -> Vec<Vec<u8>> {
        self.all().map(|key| digest(key, secret)).collect()
    }
}

impl Debug for SealKeys {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_list()
            .entries(self.all().map(|key| &key.id))
            .finish()
    }
}

fn digest(key: &SealKey, secret: &str) -> Vec<u8> {
    let mut mac = key.lookup.clone();
    mac.update(secret.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn parse_key(position: usize, entry: &str) -> Result<SealKey, InvalidSealKeys> {
    let (id, encoded) = entry
        .trim()
        .split_once(':')
        .ok_or(InvalidSealKeys::Form(position))?;
    let id_is_well_formed = (1..=32).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if !id_is_well_formed {
        return Err(InvalidSealKeys::Form(position));
    }
    let wrong_length = || InvalidSealKeys::Length(id.to_owned());
    let bytes = STANDARD
        .decode(encoded)
        .map(Zeroizing::new)
        .map_err(|_| wrong_length())?;
    let bytes: &[u8; 32] = bytes.as_slice().try_into().map_err(|_| wrong_length())?;
    // The other keys are derived, so the output of one use reveals nothing about another.
    let derived = |purpose: &[u8]| -> Result<Hmac<Sha256>, InvalidSealKeys> {
        let mut derivation =
            <Hmac<Sha256> as KeyInit>::new_from_slice(bytes).map_err(|_| wrong_length())?;
        derivation.update(purpose);
        let key = Zeroizing::new(derivation.finalize().into_bytes().to_vec());
        <Hmac<Sha256> as KeyInit>::new_from_slice(&key).map_err(|_| wrong_length())
    };
    let length = u8::try_from(id.len()).map_err(|_| InvalidSealKeys::Form(position))?;
    Ok(SealKey {
        id: id.to_owned(),
        prefix: [&[VERSION, length], id.as_bytes()].concat(),
        cipher: XChaCha20Poly1305::new(bytes.into()),
        lookup: derived(b"mailgate look-up digest")?,
        addresses: derived(b"mailgate addresses in log lines")?,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use secrecy::ExposeSecret;

    fn key(id: &str, byte: u8) -> String {
        format!("{id}:{}", STANDARD.encode([byte; 32]))
    }

    #[test]
    fn opens_only_in_its_own_place() {
        let (one, two) = (key("one", 1), key("two", 2));
        let keys = SealKeys::parse([one.as_str()]).unwrap();
        let sealed = keys.seal("apps.send_key 1", "sek_secret").unwrap();
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        assert_eq!(
            keys.unseal("apps.send_key 1", &sealed)
                .unwrap()
                .expose_secret(),
            "sek_secret"
        );
        assert_eq!(
            keys.unseal("apps.send_key 2", &sealed).unwrap_err(),
            UnsealError::Damaged
        );
        // After a rotation the old key still unseals; once it is removed, the error names it.
        let rotated = SealKeys::parse([two.as_str(), one.as_str()]).unwrap();
        assert!(rotated.unseal("apps.send_key 1", &sealed).is_ok());
        let without = SealKeys::parse([two.as_str()]).unwrap();
        assert_eq!(
            without.unseal("apps.send_key 1", &sealed).unwrap_err(),
            UnsealError::UnknownKey("one".to_owned())
        );
    }

    #[test]
    fn any_damage_is_noticed() {
        let keys = SealKeys::parse([key("k", 7).as_str()]).unwrap();
        let sealed = keys.seal("place", "x").unwrap();
        for length in 0..sealed.len() {
            assert!(keys.unseal("place", &sealed[..length]).is_err());
        }
        for position in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[position] ^= 1;
            assert!(keys.unseal("place", &changed).is_err());
        }
    }

    #[test]
    fn digests_follow_the_keys() {
        let (one, two) = (key("one", 1), key("two", 2));
        let before = SealKeys::parse([one.as_str()]).unwrap();
        let after = SealKeys::parse([two.as_str(), one.as_str()]).unwrap();
        let stored = before.lookup_digest("sk_x");
        assert!(after.lookup_digests("sk_x").contains(&stored));
        assert_ne!(after.lookup_digest("sk_x"), stored);
        assert!(!after.lookup_digests("sk_y").contains(&stored));
    }

    #[test]
    fn wrong_keys_are_named() {
        let parse = |entries: &[&str]| SealKeys::parse(entries.iter().copied()).unwrap_err();
        let good = key("a", 1);
        assert_eq!(parse(&[]), InvalidSealKeys::Empty);
        assert_eq!(parse(&["nocolon"]), InvalidSealKeys::Form(1));
        assert_eq!(parse(&[&good, ":AAAA"]), InvalidSealKeys::Form(2));
        assert_eq!(parse(&["b:AAAA"]), InvalidSealKeys::Length("b".to_owned()));
        assert_eq!(parse(&["b:!!"]), InvalidSealKeys::Length("b".to_owned()));
        assert_eq!(
            parse(&[&good, &good]),
            InvalidSealKeys::Twice("a".to_owned())
        );
    }
}
