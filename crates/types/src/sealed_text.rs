//! Sealed values in URLs: they can't be read, modified or forged, so they are trusted when they come back, and needn't
//! be stored.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::seal::{SealError, SealKeys};

/// Maximum length to unseal, in bytes: values hold a callback URL (2,048 bytes), user ids (1,020) and the like.
const LONGEST: usize = 16 * 1024;

/// Seals a value for a use (`context`) as text that is safe in a URL.
///
/// # Errors
///
/// As [`SealKeys::seal`].
pub fn seal<T: Serialize>(keys: &SealKeys, context: &str, value: &T) -> Result<String, SealError> {
    let json = serde_json::to_string(value).map_err(|_| SealError::Cipher)?;
    Ok(URL_SAFE_NO_PAD.encode(keys.seal(context, &json)?))
}

/// Unseals a value that [`seal`] sealed for the same use; `None` for anything else.
#[must_use]
pub fn open<T: DeserializeOwned>(keys: &SealKeys, context: &str, text: &str) -> Option<T> {
    if text.len() > LONGEST {
        return None;
    }
    let sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
    let json = keys.unseal(context, &sealed).ok()?;
    serde_json::from_str(json.expose_secret()).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    #[test]
    fn it_opens_for_its_own_use_alone() {
        let keys = SealKeys::parse([KEY]).unwrap();
        let text = seal(&keys, "one", &("x", 1)).unwrap();
        assert_eq!(open(&keys, "one", &text), Some(("x".to_owned(), 1)));
        assert_eq!(open::<(String, i32)>(&keys, "another", &text), None);
        assert_eq!(open::<i32>(&keys, "one", &text), None);
        let mut changed = text.into_bytes();
        let last = changed.last_mut().unwrap();
        *last = if *last == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert_eq!(open::<(String, i32)>(&keys, "one", &changed), None);
    }

    proptest! {
        #[test]
        fn what_strangers_make_up_opens_nothing(text in "[A-Za-z0-9_-]{0,200}|.{0,50}") {
            let keys = SealKeys::parse([KEY]).unwrap();
            prop_assert_eq!(open::<serde_json::Value>(&keys, "one", &text), None);
        }
    }
}
