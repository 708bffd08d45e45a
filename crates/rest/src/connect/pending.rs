//! The authorizations that are in progress in a browser, which keeps each until its user returns: in cookies, since
//! providers accept only a short `state`. They are sealed, expire with the state, and are limited in number and size,
//! since a browser sends all of them with each request, and proxies accept 8 KB of cookies.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderValue};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use mailgate_domain::mailboxes::AUTHORIZATION_LIFE;
use mailgate_server::cookie::{cookies_under, set_cookie};

const NAME: &str = "mailgate_pending";

/// Maximum length of one cookie's value: browsers accept 4,096 bytes with its name (RFC 6265 §6.1). The longest link
/// takes three cookies.
const PIECE: usize = 3_800;
const MOST_PIECES: usize = 3;

/// Maximum number of a browser's pending authorizations, and of their cookies' bytes; beyond either, the oldest is
/// dropped.
const MOST: usize = 8;
const MOST_BYTES: usize = 7_000;

/// A cookie's bytes without the end of its name and its value: the name's prefix and start, `=` and `; `.
const OVERHEAD: usize = 30;

/// The authorization of a cookie; the oldest comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// When it was begun, in seconds, as 8 hexadecimal digits.
    begun: String,
    /// The start of the state's digest, as 16 more.
    state: String,
}

impl Key {
    fn new(state: &str, now: DateTime<Utc>) -> Self {
        let begun = u32::try_from(now.timestamp()).unwrap_or(u32::MAX);
        Self {
            begun: format!("{begun:08x}"),
            state: digest(state),
        }
    }

    /// The name of one of its cookies.
    fn name(&self, piece: usize) -> String {
        format!("{NAME}{}", self.end_of_name(piece))
    }

    fn end_of_name(&self, piece: usize) -> String {
        format!("_{}_{}_{piece}", self.begun, self.state)
    }

    /// Parses the output of [`Key::end_of_name`].
    fn parse(end: &str) -> Option<(Self, usize)> {
        let mut parts = end.strip_prefix('_')?.split('_');
        let (begun, state) = (parts.next()?, parts.next()?);
        let piece = parts.next()?.parse().ok()?;
        let key = Self {
            begun: begun.to_owned(),
            state: state.to_owned(),
        };
        // Any other form isn't ours.
        let is_hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_ours = (begun.len() == 8 && is_hexadecimal(begun))
            && (state.len() == 16 && is_hexadecimal(state))
            && piece < MOST_PIECES;
        (is_ours && key.end_of_name(piece) == end).then_some((key, piece))
    }
}

fn digest(state: &str) -> String {
    let digest = Sha256::digest(state);
    let start = digest.first_chunk().copied().map_or(0, u64::from_be_bytes);
    format!("{start:016x}")
}

/// The cookies that a browser sent, by authorization.
fn sent<'a>(headers: &'a HeaderMap, base_url: &str) -> BTreeMap<Key, BTreeMap<usize, &'a str>> {
    let mut sent: BTreeMap<Key, BTreeMap<usize, &str>> = BTreeMap::new();
    for (end, value) in cookies_under(headers, NAME, base_url) {
        if let Some((key, piece)) = Key::parse(end) {
            sent.entry(key).or_default().insert(piece, value);
        }
    }
    sent
}

/// The authorization that the browser kept for this state.
pub(crate) fn of(headers: &HeaderMap, base_url: &str, state: &str) -> Option<String> {
    let digest = digest(state);
    let mut sent = sent(headers, base_url).into_iter();
    let (_, pieces) = sent.find(|(key, _)| key.state == digest)?;
    let is_whole = pieces.keys().copied().eq(0..pieces.len());
    is_whole.then(|| pieces.into_values().collect())
}

/// The `Set-Cookie` fields with which the browser that sent `headers` stores an authorization, and drops the oldest
/// if it has too many. `None` if it is too long.
pub(crate) fn keep(
    headers: &HeaderMap,
    base_url: &str,
    state: &str,
    pending: &str,
    now: DateTime<Utc>,
) -> Option<Vec<HeaderValue>> {
    let key = Key::new(state, now);
    let pieces: Vec<&[u8]> = pending.as_bytes().chunks(PIECE).collect();
    if pieces.len() > MOST_PIECES {
        return None;
    }
    let life = u32::try_from(AUTHORIZATION_LIFE.num_seconds()).ok()?;
    let mut cookies = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        let piece = std::str::from_utf8(piece).ok()?;
        cookies.push(set_cookie(&key.name(number), piece, life, base_url)?);
    }
    let size = |key: &Key, length: usize| OVERHEAD + key.end_of_name(0).len() + length;
    let mut total: usize = pieces.iter().map(|piece| size(&key, piece.len())).sum();
    let mut count = 1;
    // Newest first: the ones that fit are kept.
    for (old, pieces) in sent(headers, base_url).into_iter().rev() {
        count += 1;
        total += (pieces.values())
            .map(|piece| size(&old, piece.len()))
            .sum::<usize>();
        if count > MOST || total > MOST_BYTES {
            cookies.extend(
                pieces
                    .keys()
                    .filter_map(|piece| dropped(&old, *piece, base_url)),
            );
        }
    }
    Some(cookies)
}

/// The `Set-Cookie` fields that drop the authorization of this state.
pub(crate) fn forget(headers: &HeaderMap, base_url: &str, state: &str) -> Vec<HeaderValue> {
    let digest = digest(state);
    let sent = sent(headers, base_url);
    let of_it = sent.iter().filter(|(key, _)| key.state == digest);
    let cookies = of_it.flat_map(|(key, pieces)| pieces.keys().map(move |piece| (key, *piece)));
    cookies
        .filter_map(|(key, piece)| dropped(key, piece, base_url))
        .collect()
}

fn dropped(key: &Key, piece: usize, base_url: &str) -> Option<HeaderValue> {
    set_cookie(&key.name(piece), "", 0, base_url)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::collections::BTreeMap;

    use axum::http::header::COOKIE;

    use super::*;

    const BASE_URL: &str = "https://gateway.example";

    /// A browser's cookies.
    #[derive(Default)]
    struct Jar(BTreeMap<String, String>);

    impl Jar {
        fn take(&mut self, cookies: Vec<HeaderValue>) {
            for cookie in cookies {
                let cookie = cookie.to_str().unwrap();
                assert!(cookie.len() <= 4_096 + 80, "{}", cookie.len());
                assert!(
                    cookie.ends_with("; HttpOnly; SameSite=Lax; Secure"),
                    "{cookie}"
                );
                let (pair, attributes) = cookie.split_once("; ").unwrap();
                let (name, value) = pair.split_once('=').unwrap();
                assert!(name.starts_with("__Host-mailgate_pending_"), "{name}");
                if attributes.contains("Max-Age=0;") {
                    assert!(self.0.remove(name).is_some(), "{name}");
                } else {
                    assert!(attributes.contains("Max-Age=600;"), "{attributes}");
                    self.0.insert(name.to_owned(), value.to_owned());
                }
            }
        }

        fn headers(&self) -> HeaderMap {
            let pairs = self.0.iter().map(|(name, value)| format!("{name}={value}"));
            let cookies = pairs.collect::<Vec<_>>().join("; ");
            HeaderMap::from_iter([(COOKIE, cookies.parse().unwrap())])
        }

        fn begin(&mut self, state: &str, pending: &str, seconds: i64) {
            let now = DateTime::from_timestamp(1_764_000_000 + seconds, 0).unwrap();
            let cookies = keep(&self.headers(), BASE_URL, state, pending, now);
            self.take(cookies.unwrap());
        }

        fn has(&self, state: &str) -> Option<String> {
            of(&self.headers(), BASE_URL, state)
        }
    }

    #[test]
    fn several_are_under_way_at_once_and_each_ends_alone() {
        let mut jar = Jar::default();
        for (number, length) in [(0, 700), (1, 900), (2, 1), (3, 1_100)] {
            jar.begin(&format!("s{number}"), &"ab".repeat(length / 2 + 1), number);
        }
        assert_eq!(jar.has("s3"), Some("ab".repeat(551)));
        assert_eq!(jar.has("s0"), Some("ab".repeat(351)));
        assert_eq!(jar.has("s4"), None);
        let forgotten = forget(&jar.headers(), BASE_URL, "s0");
        assert_eq!(forgotten.len(), 1);
        jar.take(forgotten);
        assert_eq!(jar.has("s0"), None);
        assert_eq!(jar.has("s2").as_deref(), Some("ab"));
        assert!(forget(&jar.headers(), BASE_URL, "s0").is_empty());
        assert!(
            keep(
                &HeaderMap::new(),
                BASE_URL,
                "s",
                &"a".repeat(11_401),
                Utc::now()
            )
            .is_none()
        );
    }

    #[test]
    fn the_oldest_goes_where_there_are_too_many_or_too_long_ones() {
        for (length, kept) in [
            (10, 8),
            (700, 8),
            (1_000, 6),
            (3_000, 2),
            (4_000, 1),
            (11_000, 1),
        ] {
            let mut jar = Jar::default();
            for number in 0..30 {
                jar.begin(&format!("s{number}"), &"a".repeat(length), number);
            }
            for number in 0..30 {
                let found = jar.has(&format!("s{number}"));
                let expected = (number >= 30 - kept).then(|| "a".repeat(length));
                assert_eq!(found, expected, "{length}: {number}");
            }
            let size = jar.headers()[COOKIE].len();
            assert!(size <= MOST_BYTES || kept == 1, "{length}: {size}");
        }
    }

    #[test]
    fn other_cookies_are_left_alone() {
        let mut jar = Jar::default();
        for name in [
            "_",
            "_x",
            "",
            "_00000000_0000000000000000_9",
            "_1_2_3",
            "_00000000_0000000000000000_00",
        ] {
            let name = format!("__Host-mailgate_pending{name}");
            jar.0.insert(name, "x".repeat(9_000));
        }
        jar.begin("s", "a", 0);
        assert_eq!(jar.has("s").as_deref(), Some("a"));
        assert_eq!(jar.0.len(), 7);
    }
}
