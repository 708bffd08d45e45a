//! The addresses that a mailbox may send as besides its own. The provider is queried when the mailbox is connected,
//! once a day, and after it has refused a sender.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::timeout;

use super::{MailboxReadError, Mailboxes};
use mailgate_providers::mail::MailProvider;
use mailgate_providers::mail::aliases;
use mailgate_providers::mail::reader::ReadError;
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_storage::mailboxes::Mailbox;
use mailgate_storage::mailboxes::addresses::{self, AddressLook, AddressReport};
use mailgate_types::email_address::EmailAddress;

/// Mailboxes that one process queries at the same time.
pub const PLACES: usize = 8;

/// Time limit for one mailbox. After twice this time another replica takes over.
const LONGEST: Duration = Duration::from_mins(1);

/// How often a mailbox is queried, give or take a tenth, so that those of one day spread over the next.
const EVERY: TimeDelta = TimeDelta::hours(24);
const SPREAD: f64 = 0.1;

/// Retry interval after a transient failure.
const AGAIN: TimeDelta = TimeDelta::hours(4);

/// A refused sender doesn't trigger another query within this time of the last one.
const FRESH: TimeDelta = TimeDelta::minutes(1);

/// The addresses that a newly connected mailbox may send as besides its own.
pub(super) struct Aliases {
    /// `None` if they can't be determined at the moment; the stored ones are kept.
    pub(super) addresses: Option<Vec<EmailAddress>>,
    /// When the provider is queried next.
    pub(super) due_at: DateTime<Utc>,
}

impl Mailboxes {
    /// The addresses that the account of a new grant may send as. `proxies` came with the grant; Gmail is queried. A
    /// failure doesn't keep the mailbox from being connected.
    pub(super) async fn aliases_of(
        &self,
        provider: &MailProvider,
        account: &MailboxAccess,
        own: &EmailAddress,
        proxies: &[String],
    ) -> Aliases {
        let now = self.clock.now();
        let report = if provider.oauth.tells_proxies() {
            Ok(aliases::kept(own, proxies))
        } else {
            ask(provider, account, own).await
        };
        let due_at = now + wait_after(report.as_ref().err());
        if let Err(error) = &report {
            tracing::info!(%error, "the sender addresses of a mailbox that is being connected can't be read");
        }
        let addresses = match report {
            Ok(addresses) => Some(addresses),
            Err(ReadError::Forbidden(_)) => Some(Vec::new()),
            Err(_) => None,
        };
        Aliases { addresses, due_at }
    }

    /// Claims mailboxes whose addresses are due for a query.
    pub async fn claim_addresses(&self, places: usize) -> Result<Vec<AddressLook>, sqlx::Error> {
        let now = self.clock.now();
        let lease = TimeDelta::from_std(LONGEST * 2).unwrap_or(TimeDelta::minutes(2));
        let limit = i64::try_from(places).unwrap_or(i64::MAX);
        let mut connection = self.pool.acquire().await?;
        addresses::claim_due(&mut connection, now, now + lease, limit).await
    }

    /// Queries the provider of a claimed mailbox and stores the result. If access is forbidden, the mailbox is left
    /// with its own address alone; a transient failure changes nothing.
    pub async fn read_addresses(&self, look: AddressLook) {
        let AddressLook { mailbox, asked_at } = look;
        let read = self.ask_aliases(&mailbox).await;
        let addresses = match &read {
            Ok(addresses) => Some(addresses.as_slice()),
            Err(MailboxReadError::Read(ReadError::Forbidden(_))) => Some(&[][..]),
            Err(_) => None,
        };
        metrics::counter!("mailgate_address_reads_total", "outcome" => match &read {
            Ok(_) => "read",
            Err(MailboxReadError::Read(ReadError::Forbidden(_))) => "forbidden",
            Err(_) => "failed",
        })
        .increment(1);
        let wait = match &read {
            Ok(_) => wait_after(None),
            Err(MailboxReadError::Read(error)) => wait_after(Some(error)),
            Err(MailboxReadError::Token(_)) => AGAIN,
        };
        if let Err(error) = &read {
            tracing::info!(credential_id = %mailbox.id, %error, "a mailbox's sender addresses can't be read");
        }
        let report = AddressReport {
            addresses,
            asked_at,
            due_at: self.clock.now() + wait,
        };
        let stored = async {
            let mut connection = self.pool.acquire().await?;
            addresses::store(&mut connection, mailbox.id, &report).await
        };
        if let Err(error) = stored.await {
            // The mailbox becomes due again when the lease expires.
            tracing::error!(credential_id = %mailbox.id, %error, "a mailbox's sender addresses can't be stored");
        }
    }

    /// Queries with the mailbox's own token. If there is nothing to query, no token is fetched.
    async fn ask_aliases(&self, mailbox: &Mailbox) -> Result<Vec<EmailAddress>, MailboxReadError> {
        let Some(provider) = self.providers.get(mailbox.plugin) else {
            return Err(MailboxReadError::Read(ReadError::unavailable(
                "its plugin is switched off",
            )));
        };
        let own = EmailAddress::parse(&mailbox.email);
        let Ok(own) = own else { return Ok(Vec::new()) };
        if !provider.tells_aliases(&mailbox.scopes) {
            return Ok(Vec::new());
        }
        let own = &own;
        let question = |account: MailboxAccess| async move { ask(provider, &account, own).await };
        self.ask_reader(mailbox, question).await
    }

    /// Schedules an immediate query after the provider refused the sender of a message.
    pub async fn note_sender_refused(&self, mailbox: &Mailbox) {
        let now = self.clock.now();
        let brought_forward = async {
            let mut connection = self.pool.acquire().await?;
            addresses::bring_forward(&mut connection, mailbox.id, now, now - FRESH).await
        };
        if let Err(error) = brought_forward.await {
            tracing::warn!(credential_id = %mailbox.id, %error, "a sender was refused: the mailbox's sender addresses will be read again within a day");
        }
    }
}

/// Queries a provider, with a time limit.
async fn ask(
    provider: &MailProvider,
    account: &MailboxAccess,
    own: &EmailAddress,
) -> Result<Vec<EmailAddress>, ReadError> {
    timeout(LONGEST, provider.aliases(account, own))
        .await
        .unwrap_or_else(|_| Err(ReadError::unavailable("the provider took too long")))
}

fn wait_after(error: Option<&ReadError>) -> TimeDelta {
    match error {
        None | Some(ReadError::Forbidden(_)) => jittered(EVERY),
        Some(ReadError::Unavailable { retry_after, .. }) => {
            let named = retry_after.and_then(|wait| TimeDelta::from_std(wait).ok());
            AGAIN.max(named.unwrap_or_default())
        }
        Some(ReadError::TokenRefused(_) | ReadError::Unexplained(_)) => AGAIN,
    }
}

fn jittered(wait: TimeDelta) -> TimeDelta {
    let spread = wait.as_seconds_f64() * SPREAD * (rand::random::<f64>() * 2.0 - 1.0);
    #[expect(clippy::cast_possible_truncation, reason = "a tenth of a day")]
    let seconds = spread as i64;
    wait + TimeDelta::seconds(seconds)
}
