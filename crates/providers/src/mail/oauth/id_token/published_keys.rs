//! A provider's published keys: fetched, kept for a while, and used to verify ID tokens.

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Mutex;

use super::super::response::Fields;
use super::super::{OAuthClient, OAuthError, read, refusal};
use super::SignedToken;
use super::claims::{Expected, nonce};
use super::jwk::{PublicKey, public_keys};

/// How long published keys are used, and how long if they can't be fetched again; and the pause before they are fetched
/// again, for a token with an unknown key or after a failure.
const KEYS_LIFE: TimeDelta = TimeDelta::days(1);
const KEYS_LONGEST: TimeDelta = TimeDelta::days(2);
const KEYS_PAUSE: TimeDelta = TimeDelta::minutes(1);

/// A provider's published keys, as last fetched.
#[derive(Debug, Default)]
pub(in crate::mail::oauth) struct PublishedKeys(Mutex<Fetched>);

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
    pub(in crate::mail::oauth) async fn verified_claims(
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
        let request = self.http.get(&self.settings.account.jwks_url);
        let (status, body) = read(self.send(request).await?).await?;
        if !status.is_success() {
            return Err(refusal(status, &body));
        }
        public_keys(&body).ok_or(OAuthError::Nonsense("jwks_url has no keys"))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const NOW: i64 = 1_764_000_000;

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
