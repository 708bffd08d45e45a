//! The signature of an ID token (RFC 7515 §5.2), verified with the keys of a JWK set.

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

use super::super::OAuthError;
use super::SignedToken;
use super::jwk::{Material, PublicKey};

impl SignedToken<'_> {
    pub(in crate::mail::oauth) fn verify(&self, keys: &[PublicKey]) -> Result<(), OAuthError> {
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
}

impl PublicKey {
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
