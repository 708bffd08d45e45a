//! An ACME server (RFC 8555): an account, and orders of one name each. The server is not trusted: responses and waits
//! are bounded, and its texts are made safe for a log line and a database.

mod http;

use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, Error, ExternalAccountKey,
    Identifier, NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use secrecy::{ExposeSecret as _, SecretString};

use self::http::{Http, Pause};
use super::answer::one_line;
use super::tls::{self, ClientTlsError};
use mailgate_settings::{AcmeChallenge, AcmeSettings, ExternalAccount};
use mailgate_types::clock::SharedClock;

/// Polling for the server's decision: the first pause, and the longest total wait.
const POLLS: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(500))
    .backoff(1.5)
    .timeout(Duration::from_secs(90));

/// Longest token of a challenge; the usual ones have 43 characters.
const TOKEN: usize = 200;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The server refuses, with one of the types of RFC 8555 §6.7.
    #[error("{kind}: {detail}")]
    Refused {
        /// The type, without its prefix.
        kind: String,
        /// The server's words.
        detail: String,
        /// The delay that its Retry-After requests.
        retry_after: Option<Duration>,
    },
    /// No answer, or none that can be used.
    #[error("{reason}")]
    Failed {
        /// What went wrong.
        reason: String,
        /// How long the server wants to be left alone.
        retry_after: Option<Duration>,
    },
}

impl AcmeError {
    /// How long the server wants to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } | Self::Failed { retry_after, .. } => *retry_after,
        }
    }

    /// Whether the server refuses because of a rate limit.
    #[must_use]
    pub fn is_rate_limited(&self) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == "rateLimited")
    }

    /// Whether the server doesn't know the account.
    #[must_use]
    pub fn is_unknown_account(&self) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == "accountDoesNotExist")
    }
}

/// Why the client can't be created.
#[derive(Debug, thiserror::Error)]
pub enum AcmeSetupError {
    /// The server's roots.
    #[error("acme.ca_file: {0}")]
    Tls(#[from] ClientTlsError),
    /// The client itself.
    #[error("the client for acme.directory_url can't be created: {0}")]
    Client(#[from] reqwest::Error),
}

/// A client of one server.
#[derive(Debug, Clone)]
pub struct Acme {
    http: Http,
    directory_url: String,
    contact: Option<String>,
    external_account: Option<ExternalAccount>,
}

impl Acme {
    /// A client of the server in the settings.
    ///
    /// # Errors
    ///
    /// If `acme.ca_file` can't be used.
    pub fn new(settings: &AcmeSettings, clock: SharedClock) -> Result<Self, AcmeSetupError> {
        let tls = tls::client(settings.ca_file.as_deref())?;
        let contact = (!settings.email.is_empty()).then(|| format!("mailto:{}", settings.email));
        Ok(Self {
            http: Http::new(&tls, &settings.directory_url, clock)?,
            directory_url: settings.directory_url.clone(),
            contact,
            external_account: settings.external_account.clone(),
        })
    }

    /// A new account, and its credentials to be kept.
    pub async fn create_account(&self) -> Result<(AcmeAccount, SecretString), AcmeError> {
        let (http, pause) = self.http.watched();
        let contact: Vec<&str> = self.contact.as_deref().into_iter().collect();
        let new = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let external = self.external_account.as_ref().map(|account| {
            ExternalAccountKey::new(account.key_id.clone(), account.mac_key.expose_secret())
        });
        let created = Account::builder_with_http(http)
            .create(&new, self.directory_url.clone(), external.as_ref())
            .await;
        let (account, credentials) = created.map_err(|error| failure(error, &pause))?;
        let credentials =
            serde_json::to_string(&credentials).map_err(|error| failure(error.into(), &pause))?;
        Ok((AcmeAccount { account, pause }, credentials.into()))
    }

    /// The account of these credentials.
    pub async fn open_account(&self, credentials: &SecretString) -> Result<AcmeAccount, AcmeError> {
        let (http, pause) = self.http.watched();
        let unreadable = |_| AcmeError::Failed {
            reason: "the stored account can't be read".to_owned(),
            retry_after: None,
        };
        let credentials: AccountCredentials =
            serde_json::from_str(credentials.expose_secret()).map_err(unreadable)?;
        let account = Account::builder_with_http(http)
            .from_credentials(credentials)
            .await
            .map_err(|error| failure(error, &pause))?;
        Ok(AcmeAccount { account, pause })
    }
}

/// An account at the server.
pub struct AcmeAccount {
    account: Account,
    pause: Arc<Pause>,
}

/// The challenge that the server will request.
#[derive(Debug)]
pub struct ChallengeToAnswer {
    /// Its name: letters, digits, `-` and `_`.
    pub token: String,
    /// The answer.
    pub key_authorization: String,
}

/// An order of a certificate for one name.
pub struct NameOrder {
    order: Order,
    kind: ChallengeType,
    pause: Arc<Pause>,
}

impl AcmeAccount {
    /// Orders a certificate for a name.
    pub async fn order(
        &self,
        name: &str,
        challenge: AcmeChallenge,
    ) -> Result<NameOrder, AcmeError> {
        let identifiers = [Identifier::Dns(name.to_owned())];
        let order = self.account.new_order(&NewOrder::new(&identifiers)).await;
        Ok(NameOrder {
            order: order.map_err(|error| failure(error, &self.pause))?,
            kind: match challenge {
                AcmeChallenge::Http01 => ChallengeType::Http01,
                AcmeChallenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
            },
            pause: Arc::clone(&self.pause),
        })
    }
}

impl NameOrder {
    /// The challenge to answer before [`Self::begin`]; `None` if the name is already validated.
    pub async fn challenge(&mut self) -> Result<Option<ChallengeToAnswer>, AcmeError> {
        let mut authorizations = self.order.authorizations();
        let Some(authorization) = authorizations.next().await else {
            return Err(unusable("the order has no authorization"));
        };
        let mut authorization = authorization.map_err(|error| failure(error, &self.pause))?;
        match authorization.status {
            AuthorizationStatus::Valid => return Ok(None),
            AuthorizationStatus::Pending => {}
            _ => return Err(unusable("the authorization is neither pending nor valid")),
        }
        let Some(challenge) = authorization.challenge(self.kind.clone()) else {
            return Err(unusable("the server doesn't offer this kind of challenge"));
        };
        let token = challenge.token.clone();
        let is_letter =
            |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_';
        if token.is_empty() || token.len() > TOKEN || !token.bytes().all(is_letter) {
            return Err(unusable("the challenge's token is malformed"));
        }
        Ok(Some(ChallengeToAnswer {
            key_authorization: challenge.key_authorization().as_str().to_owned(),
            token,
        }))
    }

    /// Asks the server to validate the challenge.
    pub async fn begin(&mut self) -> Result<(), AcmeError> {
        let mut authorizations = self.order.authorizations();
        if let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(|error| failure(error, &self.pause))?;
            if let Some(mut challenge) = authorization.challenge(self.kind.clone()) {
                let ready = challenge.set_ready().await;
                ready.map_err(|error| failure(error, &self.pause))?;
            }
        }
        Ok(())
    }

    /// Waits for the server's verdict, hands in the signing request, and waits for the chain, as PEM.
    pub async fn finish(&mut self, signing_request: &[u8]) -> Result<String, AcmeError> {
        let polled = self.order.poll_ready(&POLLS).await;
        match polled {
            Ok(OrderStatus::Ready) => {}
            Ok(_) => return Err(self.refusal().await),
            Err(error) => return Err(failure(error, &self.pause)),
        }
        let handed_in = self.order.finalize_csr(signing_request).await;
        handed_in.map_err(|error| failure(error, &self.pause))?;
        let chain = self.order.poll_certificate(&POLLS).await;
        chain.map_err(|error| failure(error, &self.pause))
    }

    /// Why the order is no longer valid: the server's validation error.
    async fn refusal(&mut self) -> AcmeError {
        let mut authorizations = self.order.authorizations();
        if let Some(Ok(mut authorization)) = authorizations.next().await {
            match authorization.refresh().await {
                Ok(state) => {
                    let mut challenges = state.challenges.iter();
                    if let Some(problem) = challenges.find_map(|it| it.error.clone()) {
                        return failure(Error::Api(problem), &self.pause);
                    }
                }
                Err(error) => return failure(error, &self.pause),
            }
        }
        unusable("the server has ended the order without a reason")
    }
}

fn unusable(reason: &str) -> AcmeError {
    AcmeError::Failed {
        reason: reason.to_owned(),
        retry_after: None,
    }
}

fn failure(error: Error, pause: &Pause) -> AcmeError {
    let retry_after = pause.take();
    let Error::Api(problem) = error else {
        let mut reason = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            reason = format!("{reason}: {cause}");
            source = cause.source();
        }
        return AcmeError::Failed {
            reason: one_line(&reason),
            retry_after,
        };
    };
    let kind = problem.r#type.as_deref().unwrap_or("about:blank");
    let kind = kind.strip_prefix("urn:ietf:params:acme:error:");
    AcmeError::Refused {
        kind: one_line(kind.unwrap_or("an unknown type")),
        detail: one_line(problem.detail.as_deref().unwrap_or("without a reason")),
        retry_after,
    }
}
