//! One attempt to get a certificate: claimed by a lease in the database, then ordered without holding a connection,
//! then stored unless a later attempt has begun.

use std::time::Duration;

use chrono::{DateTime, Utc};
use metrics::counter;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::pair::{self, PairError};
use super::{Certificates, renewal};
use mailgate_providers::acme::{AcmeAccount, AcmeError};
use mailgate_providers::tls::expiry;
use mailgate_server::certificate_names::is_for;
use mailgate_server::issued::{UnusablePair, read_pair};
use mailgate_storage::acme_accounts::{self, StoredAccount};
use mailgate_storage::acme_challenges;
use mailgate_storage::certificates::{self, Claim, NewCertificate};
use mailgate_storage::database::outage::trouble;
use mailgate_types::ids::AcmeAccountId;
use mailgate_types::seal::{SealError, UnsealError};

/// How long an order may take.
const ORDER: Duration = Duration::from_mins(4);

/// How long an issued certificate may wait to be stored, and the pause between attempts.
const STORE: Duration = Duration::from_mins(3);
const STORE_AGAIN: Duration = Duration::from_secs(5);

/// How long a gateway may order before another one begins: longer than both together.
const LEASE: Duration = Duration::from_mins(10);

/// How long a challenge is answered.
const CHALLENGE: Duration = LEASE;

/// How soon another gateway may begin after this one has given up.
const RELEASED: Duration = Duration::from_secs(30);

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
enum OrderError {
    #[error(transparent)]
    Acme(#[from] AcmeError),
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Pair(#[from] PairError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("the account's key can't be opened: {0}")]
    Unseal(#[from] UnsealError),
    #[error("the issued certificate can't be used: {0}")]
    Unusable(#[from] UnusablePair),
    #[error("the issued certificate can't be used: {0}")]
    Wrong(&'static str),
    #[error("the order was not complete within {} seconds", ORDER.as_secs())]
    TimedOut,
    #[error("another gateway has taken over")]
    Superseded,
}

/// The result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempted {
    /// No certificate is due.
    Nothing,
    /// There is a new one.
    Issued,
    /// It failed; the next attempt is scheduled.
    Failed,
    /// This process ends, or another gateway has taken over.
    BrokenOff,
}

impl Certificates {
    /// Orders the certificate that has been due longest, if there is one.
    pub async fn renew_due(&self, stop: &CancellationToken) -> Result<Attempted, sqlx::Error> {
        let inner = &self.0;
        let claimed = {
            let mut connection = inner.pool.acquire().await?;
            let directory_url = &inner.settings.directory_url;
            let seconds = LEASE.as_secs_f64();
            certificates::claim(&mut connection, &inner.names, directory_url, seconds).await?
        };
        let Some(claim) = claimed else {
            return Ok(Attempted::Nothing);
        };
        let name = claim.name.as_str();
        tracing::info!(name, certificate_id = %claim.id, directory_url = inner.settings.directory_url, "ordering a certificate");
        let ordered = stop.run_until_cancelled(timeout(ORDER, Box::pin(self.order(&claim))));
        let ordered = match ordered.await {
            None => {
                let mut connection = inner.pool.acquire().await?;
                let seconds = RELEASED.as_secs_f64();
                certificates::release(&mut connection, &claim, seconds).await?;
                return Ok(Attempted::BrokenOff);
            }
            Some(Err(_)) => Err(OrderError::TimedOut),
            Some(Ok(ordered)) => ordered,
        };
        let error = match ordered {
            Ok(new) => match self.store(&claim, &new).await {
                Ok(due_at) => {
                    counter!("mailgate_acme_orders_total", "outcome" => "issued").increment(1);
                    tracing::info!(name, certificate_id = %claim.id, expires = %new.not_after, %due_at, "a certificate was issued");
                    self.refresh().await?;
                    return Ok(Attempted::Issued);
                }
                Err(error) => error,
            },
            Err(error) => error,
        };
        self.fail(&claim, &error).await
    }

    async fn fail(&self, claim: &Claim, error: &OrderError) -> Result<Attempted, sqlx::Error> {
        let name = claim.name.as_str();
        let (retry_after, is_rate_limited) = match error {
            OrderError::Acme(error) => (error.retry_after(), error.is_rate_limited()),
            _ => (None, false),
        };
        let wait = renewal::wait_after(claim.failures, retry_after, rand::random());
        let mut connection = self.0.pool.acquire().await?;
        let text = error.to_string();
        let is_latest =
            certificates::fail(&mut connection, claim, &text, wait.as_secs_f64()).await?;
        if !is_latest {
            counter!("mailgate_acme_orders_total", "outcome" => "superseded").increment(1);
            tracing::warn!(name, certificate_id = %claim.id, %error, "an order of a certificate is given up: another gateway has taken over");
            return Ok(Attempted::BrokenOff);
        }
        let outcome = if is_rate_limited {
            "rate_limited"
        } else {
            "failed"
        };
        counter!("mailgate_acme_orders_total", "outcome" => outcome).increment(1);
        let (failures, next_attempt_seconds) = (claim.failures + 1, wait.as_secs());
        tracing::error!(name, certificate_id = %claim.id, %error, failures, next_attempt_seconds, "no certificate was issued; the current one stays in use");
        Ok(Attempted::Failed)
    }

    async fn order(&self, claim: &Claim) -> Result<NewCertificate, OrderError> {
        let challenge = self.0.settings.challenge;
        let account = self.account().await?;
        let mut order = account.order(&claim.name, challenge).await;
        if let Err(error) = &order
            && error.is_unknown_account()
        {
            // The server has lost it, or it was deactivated there.
            let account = self.replace_account().await?;
            order = account.order(&claim.name, challenge).await;
        }
        let mut order = order?;
        let asked = order.challenge().await?;
        if let Some(asked) = &asked {
            let published = {
                let mut connection = self.0.pool.acquire().await?;
                let (token, answer) = (&asked.token, &asked.key_authorization);
                let seconds = CHALLENGE.as_secs_f64();
                acme_challenges::publish(&mut connection, claim, token, answer, seconds).await?
            };
            if !published {
                return Err(OrderError::Superseded);
            }
            order.begin().await?;
        }
        let (key, request) = pair::signing_request(&claim.name)?;
        let chain = order.finish(&request).await;
        if let Some(asked) = &asked {
            // If this fails, it ends by itself; the issued certificate counts.
            if let Err(error) = self.withdraw(claim, &asked.token).await {
                trouble!(warn, error, certificate_id = %claim.id, "an answered challenge can't be withdrawn");
            }
        }
        self.accept(claim, &key, &chain?)
    }

    async fn withdraw(&self, claim: &Claim, token: &str) -> Result<(), sqlx::Error> {
        let mut connection = self.0.pool.acquire().await?;
        acme_challenges::withdraw(&mut connection, claim, token).await
    }

    /// Checks the issued certificate against the order, and seals it.
    fn accept(
        &self,
        claim: &Claim,
        key: &SecretString,
        chain: &str,
    ) -> Result<NewCertificate, OrderError> {
        let both = SecretString::from(format!("{}{chain}", key.expose_secret()));
        let pair = read_pair(both.expose_secret().as_bytes())?;
        let leaf = pair.end_entity_cert();
        let leaf = leaf.map_err(|_| OrderError::Wrong("there is no certificate"))?;
        if !is_for(leaf, &claim.name) {
            return Err(OrderError::Wrong("the certificate is for another name"));
        }
        let unreadable = OrderError::Wrong("the certificate's dates can't be read");
        let (not_before, not_after) = expiry::validity_of(leaf).ok_or(unreadable)?;
        if not_after <= not_before || not_after <= self.0.clock.now() {
            return Err(OrderError::Wrong("the certificate has expired already"));
        }
        let context = certificates::context(claim.id);
        let pair_sealed = self.0.seal_keys.seal(&context, both.expose_secret())?;
        Ok(NewCertificate {
            pair_sealed,
            not_before,
            not_after,
            renew_at: renewal::renew_at(not_before, not_after, rand::random()),
        })
    }

    /// Stores the issued certificate, retrying while the database is unavailable.
    async fn store(
        &self,
        claim: &Claim,
        new: &NewCertificate,
    ) -> Result<DateTime<Utc>, OrderError> {
        let stored = async {
            loop {
                let stored = async {
                    let mut connection = self.0.pool.acquire().await?;
                    certificates::store(&mut connection, claim, new).await
                };
                match stored.await {
                    Ok(due_at) => return due_at.ok_or(OrderError::Superseded),
                    Err(error) => {
                        trouble!(warn, error, certificate_id = %claim.id, "a new certificate can't be stored yet");
                    }
                }
                sleep(STORE_AGAIN).await;
            }
        };
        let stored = timeout(STORE, stored).await;
        stored.unwrap_or(Err(OrderError::Database(sqlx::Error::PoolTimedOut)))
    }

    /// The account at the server: the one that all gateways share, or a new one.
    async fn account(&self) -> Result<AcmeAccount, OrderError> {
        match self.stored_account().await? {
            Some((_, credentials)) => Ok(self.0.acme.open_account(&credentials).await?),
            None => self.create_account().await,
        }
    }

    async fn replace_account(&self) -> Result<AcmeAccount, OrderError> {
        tracing::warn!(
            directory_url = self.0.settings.directory_url,
            "the ACME server doesn't know the account; a new one is made"
        );
        if let Some((id, _)) = self.stored_account().await? {
            let mut connection = self.0.pool.acquire().await?;
            acme_accounts::remove(&mut connection, id).await?;
        }
        self.create_account().await
    }

    async fn stored_account(&self) -> Result<Option<(AcmeAccountId, SecretString)>, OrderError> {
        let stored = {
            let mut connection = self.0.pool.acquire().await?;
            acme_accounts::find(&mut connection, &self.0.settings.directory_url).await?
        };
        let Some(stored) = stored else {
            return Ok(None);
        };
        let context = acme_accounts::context(stored.id);
        let credentials = self
            .0
            .seal_keys
            .unseal(&context, &stored.credentials_sealed)?;
        Ok(Some((stored.id, credentials)))
    }

    async fn create_account(&self) -> Result<AcmeAccount, OrderError> {
        let (account, credentials) = self.0.acme.create_account().await?;
        let id = AcmeAccountId::at(self.0.clock.now());
        let context = acme_accounts::context(id);
        let credentials_sealed = (self.0.seal_keys).seal(&context, credentials.expose_secret())?;
        let stored = StoredAccount {
            id,
            credentials_sealed,
        };
        let mut connection = self.0.pool.acquire().await?;
        let directory_url = &self.0.settings.directory_url;
        // If another gateway was faster, this one's account is used for this order only.
        acme_accounts::insert(&mut connection, &stored, directory_url).await?;
        Ok(account)
    }
}
