//! Mails links that sign in to the portal.
//!
//! Whoever asks is answered before anybody looks for the address, so neither the answer nor its time tells who has an
//! account. What waits here is lost with the process: its sender asks again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use chrono::TimeDelta;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Accounts;
use super::portal_links::MintError;
use crate::compose::{Composed, CustomHeader, Fields, compose};
use mailgate_providers::relay::{NotSent, Relay, Relayed};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::transaction;
use mailgate_storage::subscribers::{self, Subscriber};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::uuid_at;
use mailgate_types::plain_name::plain_name;
use mailgate_types::sign_in::SignedInBy;

/// How long a mailed link lasts.
const LIFE: TimeDelta = TimeDelta::minutes(15);

/// Mailed links that a subscriber may have open: nobody's mailbox is filled by others who know the address.
const OPEN: i64 = 3;

/// Accounts of one address that get a link though nobody has shown to read it.
const UNCONFIRMED: i64 = 100;

/// Addresses that wait for their mail.
const WAITING: usize = 100;

/// Mails that are sent concurrently.
const CONCURRENT: usize = 4;

/// The pauses before further attempts: who waits for a link waits no longer.
const PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

/// So many wait for their mail that there is no place for another.
#[derive(Debug, thiserror::Error)]
#[error("too many sign-in links are being asked for")]
pub struct TooBusy;

/// Takes addresses that want a link.
#[derive(Debug, Clone)]
pub struct SignInMail(mpsc::Sender<EmailAddress>);

/// Sends the mails.
#[derive(Debug)]
pub struct SignInMailer {
    asked: mpsc::Receiver<EmailAddress>,
    sender: Sender,
}

#[derive(Debug)]
struct Sender {
    accounts: Accounts,
    relay: Arc<Relay>,
    /// Where the portal is, without a slash at its end.
    portal: String,
    /// Who runs it.
    operator: String,
}

/// The mail as HTML.
#[derive(Template)]
#[template(path = "notice.html")]
struct Html<'a> {
    paragraphs: &'a [String],
    links: &'a [(String, String)],
}

impl SignInMail {
    /// Both ends. `portal` is where people reach the portal, `operator` who runs it.
    #[must_use]
    pub fn new(
        accounts: Accounts,
        relay: Arc<Relay>,
        portal: String,
        operator: String,
    ) -> (Self, SignInMailer) {
        let (ask, asked) = mpsc::channel(WAITING);
        let sender = Sender {
            accounts,
            relay,
            portal,
            operator,
        };
        (Self(ask), SignInMailer { asked, sender })
    }

    /// Has a link mailed to each account of this address, if there is any.
    ///
    /// # Errors
    ///
    /// [`TooBusy`]: nothing will be mailed.
    pub fn ask(&self, address: EmailAddress) -> Result<(), TooBusy> {
        self.0.try_send(address).map_err(|_| TooBusy)
    }
}

impl SignInMailer {
    /// Runs until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let Self { asked, sender } = self;
        let sender = &sender;
        stream::unfold(asked, async |mut asked| Some((asked.recv().await?, asked)))
            .for_each_concurrent(CONCURRENT, async |address| {
                tokio::select! {
                    () = sender.answer(&address) => {}
                    () = stop.cancelled() => {}
                }
            })
            .await;
    }
}

impl Sender {
    async fn answer(&self, asked: &EmailAddress) {
        let by_address = match self.links(asked).await {
            Ok(by_address) => by_address,
            Err(error) => {
                trouble!(error, error, "a sign-in link can't be made");
                return;
            }
        };
        for (address, links) in by_address {
            match self.mail(&address, &links) {
                Ok(mail) => self.send(&mail).await,
                Err(why) => tracing::error!(why, "a sign-in link can't be mailed"),
            }
        }
    }

    /// The name and the link of each account, by its own spelling of the address: no other is mailed to.
    async fn links(
        &self,
        asked: &EmailAddress,
    ) -> Result<BTreeMap<String, Vec<(String, String)>>, sqlx::Error> {
        let accounts = &self.accounts;
        let found = {
            let mut connection = accounts.pool.acquire().await?;
            subscribers::find_by_email(&mut connection, asked.as_str(), UNCONFIRMED).await?
        };
        let mut by_address: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for Subscriber {
            id,
            label,
            email,
            created_at,
            ..
        } in found
        {
            let mut transaction = transaction::begin(&accounts.pool).await?;
            let kind = (SignedInBy::Link, Some(email.as_str()));
            let opened = accounts.open_portal_link(&mut transaction, id, kind, LIFE, OPEN);
            match opened.await {
                Ok((token, _)) => {
                    transaction.commit().await?;
                    let url = format!("{}/sign-in/{}", self.portal, token.expose());
                    // Names are anybody's to choose; the id and the day are not.
                    let words = format!(
                        "Sign in as {} ({id}, created {})",
                        plain_name(&label),
                        created_at.format("%Y-%m-%d"),
                    );
                    by_address.entry(email).or_default().push((words, url));
                }
                Err(MintError::TooMany) => {
                    tracing::warn!(subscriber_id = %id, "a subscriber has as many sign-in links as it may: no further one is mailed");
                }
                Err(MintError::Moved) => {}
                Err(MintError::NoRandomness(error)) => {
                    tracing::error!(%error, "a sign-in link can't be made");
                }
                Err(MintError::Database(error)) => {
                    trouble!(error, error, "a sign-in link can't be made");
                }
            }
        }
        Ok(by_address)
    }

    fn mail(&self, to: &str, links: &[(String, String)]) -> Result<Composed, String> {
        let to = EmailAddress::parse(to).map_err(|error| error.to_string())?;
        let operator = &self.operator;
        let paragraphs = [
            format!("Somebody, most likely you, wants to sign in to {operator} with this address."),
            format!(
                "{} once, within {} minutes.",
                if links.len() == 1 {
                    "This link works"
                } else {
                    "Each of these links works"
                },
                LIFE.num_minutes(),
            ),
            "If it wasn't you, you can ignore this mail: nobody gets in without it.".to_owned(),
        ];
        let html = Html {
            paragraphs: &paragraphs,
            links,
        };
        let html = html.render().map_err(|error| error.to_string())?;
        let below = links
            .iter()
            .map(|(words, url)| format!("{words}:\r\n{url}"));
        let text: Vec<String> = std::iter::once("Hello,".to_owned())
            .chain(paragraphs.iter().cloned())
            .chain(below)
            .collect();
        // RFC 3834 §5: suppresses automatic replies.
        let automatic = CustomHeader::new("Auto-Submitted", "auto-generated");
        let from = self.relay.from();
        let fields = Fields {
            from_name: from.name.clone(),
            to,
            cc: Vec::new(),
            bcc: Vec::new(),
            reply_to: None,
            subject: format!("Sign in to {operator}"),
            text: Some(text.join("\r\n\r\n")),
            html: Some(html),
            headers: vec![automatic.map_err(|error| error.to_string())?],
            attachments: Vec::new(),
        };
        let now = self.accounts.clock.now();
        let id = format!("signin_{}", uuid_at(now).simple());
        Ok(compose(fields, &from.address, now, &id))
    }

    /// Submits it, again if it may help.
    async fn send(&self, mail: &Composed) {
        let mut pauses = PAUSES.into_iter();
        loop {
            let failure = match self.submit(mail).await {
                Relayed::Sent => return,
                Relayed::NotSent(NotSent::Temporary(failure)) => failure,
                Relayed::NotSent(NotSent::Permanent(failure)) | Relayed::Unknown(failure) => {
                    tracing::error!(%failure, "a sign-in link was not mailed");
                    return;
                }
            };
            let Some(pause) = pauses.next() else {
                tracing::error!(%failure, "a sign-in link was not mailed");
                return;
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn submit(&self, mail: &Composed) -> Relayed {
        let begun = self
            .relay
            .begin(&mail.recipients, mail.smtputf8, &mail.message)
            .await;
        match begun {
            Ok(submission) => submission.finish(&mail.message).await,
            Err(not_sent) => Relayed::NotSent(not_sent),
        }
    }
}
