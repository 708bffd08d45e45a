//! The `state` of an authorization (RFC 6749 §10.12), and the rest of it. Providers accept 250 to 1,024 characters, so
//! the state holds only the data for an error page; the rest stays with the browser.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::link::ConnectLink;
use mailgate_types::language::Language;
use mailgate_types::seal::{SealError, SealKeys};
use mailgate_types::sealed_text;

/// The sealing contexts of both parts, and of states of the previous release, which held everything.
const STATE_CONTEXT: &str = "oauth state";
const AUTHORIZATION_CONTEXT: &str = "pending authorization";
const FORMER_CONTEXT: &str = "connect state";

/// Longest state, in characters, whatever the seal key's id.
const LONGEST: usize = 128;

/// The bytes of a browser's digest in the state. The full digest is in the rest, and is compared there.
const BROWSER_BYTES: usize = 8;

/// The contents of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    /// In whole seconds.
    pub(super) expires_at: DateTime<Utc>,
    browser: [u8; BROWSER_BYTES],
    /// The language requested for the pages.
    pub(super) language: Option<Language>,
}

/// A sealed state.
#[derive(Debug)]
pub(super) struct SealedState {
    pub(super) text: String,
    /// The id that binds the rest to it.
    pub(super) id: Uuid,
}

/// The start of a browser's digest.
fn start_of(browser: &str) -> [u8; BROWSER_BYTES] {
    let digest = Sha256::digest(browser);
    digest.first_chunk().copied().unwrap_or_default()
}

/// The id of the authorization that a state begins: the nonce makes each state unique.
fn id_of(state: &str) -> Uuid {
    let digest = Sha256::digest(state);
    let start = digest.first_chunk::<16>().copied().unwrap_or_default();
    uuid::Builder::from_random_bytes(start).into_uuid()
}

impl State {
    pub(super) fn new(
        browser: &str,
        language: Option<Language>,
        expires_at: DateTime<Utc>,
    ) -> Self {
        Self {
            expires_at,
            browser: start_of(browser),
            language,
        }
    }

    pub(super) fn is_of(&self, browser: &str) -> bool {
        self.browser == start_of(browser)
    }

    pub(super) fn seal(&self, keys: &SealKeys) -> Result<SealedState, SealError> {
        let seconds = u32::try_from(self.expires_at.timestamp()).unwrap_or(u32::MAX);
        let mut bytes = seconds.to_be_bytes().to_vec();
        bytes.extend(self.browser);
        bytes.extend(self.language.map_or("", Language::tag).bytes());
        let sealed = keys.seal(STATE_CONTEXT, &URL_SAFE_NO_PAD.encode(bytes))?;
        let text = URL_SAFE_NO_PAD.encode(sealed);
        let id = id_of(&text);
        Ok(SealedState { text, id })
    }

    /// The state that was sealed as this text, and the id of its authorization.
    pub(super) fn open(keys: &SealKeys, text: &str) -> Option<(Self, Uuid)> {
        if text.len() > LONGEST {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let bytes = keys.unseal(STATE_CONTEXT, &sealed).ok()?;
        let bytes = URL_SAFE_NO_PAD.decode(bytes.expose_secret()).ok()?;
        let (seconds, rest) = bytes.split_first_chunk::<4>()?;
        let (browser, language) = rest.split_first_chunk::<BROWSER_BYTES>()?;
        let seconds = u32::from_be_bytes(*seconds);
        let state = Self {
            expires_at: DateTime::from_timestamp(seconds.into(), 0)?,
            browser: *browser,
            language: Language::look_up(std::str::from_utf8(language).ok()?),
        };
        Some((state, id_of(text)))
    }
}

/// An authorization in progress.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Authorization {
    pub(super) id: Uuid,
    pub(super) app: Uuid,
    pub(super) pushable_key: String,
    pub(super) link: ConnectLink,
    pub(super) redirect_uri: String,
    pub(super) code_verifier: String,
    /// Digest of the secret that the browser was given.
    pub(super) browser: String,
    pub(super) expires_at: DateTime<Utc>,
}

impl Authorization {
    pub(super) fn seal(&self, keys: &SealKeys) -> Result<String, SealError> {
        sealed_text::seal(keys, AUTHORIZATION_CONTEXT, self)
    }

    pub(super) fn open(keys: &SealKeys, text: &str) -> Option<Self> {
        sealed_text::open(keys, AUTHORIZATION_CONTEXT, text)
    }

    /// The authorization in a state of the previous release: it is accepted until that state has expired.
    pub(super) fn open_former(keys: &SealKeys, state: &str) -> Option<Self> {
        sealed_text::open(keys, FORMER_CONTEXT, state)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn keys(id: &str) -> SealKeys {
        let key = format!("{id}:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
        SealKeys::parse([key.as_str()]).unwrap()
    }

    // supabase/auth#2340, casdoor/casdoor#2498: providers cap the state at 250 to 1,024 characters.
    #[test]
    fn a_state_is_short_whatever_it_says() {
        let moment = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        for key_id in ["k", "k1", "a-rather-long-name", &"x".repeat(32)] {
            let keys = keys(key_id);
            for language in [None, Some(Language::English), Some(Language::Japanese)] {
                for seconds in [0, 1_764_175_791, i64::from(u32::MAX)] {
                    let state = State::new("browser", language, moment(seconds));
                    let sealed = state.seal(&keys).unwrap();
                    assert!(
                        sealed.text.len() <= LONGEST,
                        "{key_id}: {}",
                        sealed.text.len()
                    );
                    let opened = State::open(&keys, &sealed.text);
                    assert_eq!(opened, Some((state.clone(), sealed.id)));
                    let another = state.seal(&keys).unwrap();
                    assert!(another.text != sealed.text && another.id != sealed.id);
                }
            }
        }
    }

    #[test]
    fn what_is_no_state_opens_nothing() {
        let keys = keys("k1");
        let state = State::new("browser", None, DateTime::UNIX_EPOCH);
        assert!(state.is_of("browser") && !state.is_of("another") && !state.is_of(""));
        let text = state.seal(&keys).unwrap().text;
        let other = sealed_text::seal(&keys, STATE_CONTEXT, &"x").unwrap();
        let former = sealed_text::seal(&keys, FORMER_CONTEXT, &"x").unwrap();
        let long = "A".repeat(20_000);
        for wrong in [
            "",
            "x",
            &text[1..],
            &format!("{text}A"),
            &other,
            &former,
            &long,
        ] {
            assert_eq!(State::open(&keys, wrong), None, "{wrong}");
            assert!(Authorization::open(&keys, wrong).is_none());
            assert!(Authorization::open_former(&keys, wrong).is_none());
        }
    }
}
