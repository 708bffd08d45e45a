//! Answers to ACME challenges while a name is being validated. They are in the database, since any gateway may get the
//! request. However many strangers send requests, the database is queried only a few times a second: waiting requests
//! share one query, which began after they arrived, so that a published answer is found.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use rustls::sign::CertifiedKey;
use sqlx::PgPool;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use super::pair::proof;
use mailgate_server::http::ChallengeCertificates;
use mailgate_storage::acme_challenges::{self, LiveChallenge};
use mailgate_storage::database::outage::trouble;

/// The time between two queries.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a request may wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest token that may be requested.
const TOKEN: usize = 200;

/// The database didn't answer in time.
#[derive(Debug, thiserror::Error)]
#[error("the database doesn't respond")]
pub struct ChallengeError;

/// The answers to challenges.
#[derive(Debug, Clone)]
pub struct Challenges {
    pool: PgPool,
    /// The names of this gateway: no others are looked up.
    names: Arc<Vec<String>>,
    last: Arc<Mutex<Look>>,
}

/// The result of a query.
#[derive(Debug, Default)]
struct Look {
    began: Option<Instant>,
    live: Vec<LiveChallenge>,
}

impl Challenges {
    pub(super) fn new(pool: PgPool, names: Vec<String>) -> Self {
        Self {
            pool,
            names: Arc::new(names),
            last: Arc::default(),
        }
    }

    /// The answer to HTTP-01 for a token; `None` for an unknown one.
    ///
    /// # Errors
    /// If the database doesn't respond.
    pub async fn answer(&self, token: &str) -> Result<Option<String>, ChallengeError> {
        let is_letter =
            |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_';
        if token.len() > TOKEN || !token.bytes().all(is_letter) {
            return Ok(None);
        }
        let found = self.find(|it| it.token == token).await?;
        Ok(found.map(|it| it.key_authorization))
    }

    /// The certificates that answer TLS-ALPN-01.
    #[must_use]
    pub fn certificates(&self) -> ChallengeCertificates {
        let challenges = self.clone();
        ChallengeCertificates::new(move |name| {
            let challenges = challenges.clone();
            async move { challenges.certificate(&name).await }.boxed()
        })
    }

    async fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        if !self.names.iter().any(|it| it == name) {
            return None;
        }
        let challenge = self.find(|it| it.name == name).await.ok()??;
        match proof(name, &challenge.key_authorization) {
            Ok(certificate) => Some(certificate),
            Err(error) => {
                tracing::error!(%error, name, "a challenge can't be answered");
                None
            }
        }
    }

    async fn find(
        &self,
        is_it: impl Fn(&LiveChallenge) -> bool,
    ) -> Result<Option<LiveChallenge>, ChallengeError> {
        let came = Instant::now();
        let found = async {
            let mut last = self.last.lock().await;
            if last.began.is_none_or(|began| began < came) {
                if let Some(began) = last.began {
                    sleep_until(began + PAUSE).await;
                }
                // Requests from now on need a later query, also if this one fails.
                last.began = Some(Instant::now());
                last.live.clear();
                let mut connection = self.pool.acquire().await?;
                last.live = acme_challenges::live(&mut connection).await?;
            }
            Ok(last.live.iter().find(|it| is_it(it)).cloned())
        };
        match timeout(PATIENCE, found).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err::<_, sqlx::Error>(error)) => {
                trouble!(warn, error, "challenges can't be read");
                Err(ChallengeError)
            }
            Err(_) => Err(ChallengeError),
        }
    }
}
