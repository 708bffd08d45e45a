//! Mails sign-in links for the portal.
//! A request is answered before the address is looked up, so neither the response nor its timing reveals whether there
//! is an account. Queued mails are lost with the process: the user requests another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use chrono::TimeDelta;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::links::MintError;
use crate::accounts::Accounts;
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

/// Maximum open mailed links of a subscriber, so that others who know the address can't flood its mailbox.
const OPEN: i64 = 3;

/// Maximum accounts of one unconfirmed address that get a link.
const UNCONFIRMED: i64 = 100;

/// Addresses that wait for their mail.
const WAITING: usize = 100;

/// Mails that are sent concurrently.
const CONCURRENT: usize = 4;

/// The pauses before further attempts: nobody waits longer for a link.
const PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

/// The queue of sign-in mails is full.
#[derive(Debug, thiserror::Error)]
#[error("too many sign-in links are being requested")]
pub struct TooBusy;

/// Queues addresses for a link.
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
    /// The portal's URL, without a slash at its end.
    portal: String,
    /// The operator's name.
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
    /// Both ends. `portal` is the portal's URL, `operator` the operator's name.
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

    /// Queues a link for each account of this address, if there is any.
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
                trouble!(error, error, "a sign-in link can't be created");
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

    /// The name and the link of each account, by its own spelling of the address: mail goes to no other spelling.
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
                    // Names can be chosen freely; the id and the day can't.
                    let words = format!(
                        "Sign in as {} ({id}, created {})",
                        plain_name(&label),
                        created_at.format("%Y-%m-%d"),
                    );
                    by_address.entry(email).or_default().push((words, url));
                }
                Err(MintError::TooMany) => {
                    tracing::warn!(subscriber_id = %id, "a subscriber has reached its limit of sign-in links: no further one is mailed");
                }
                Err(MintError::Moved) => {}
                Err(MintError::NoRandomness(error)) => {
                    tracing::error!(%error, "a sign-in link can't be created");
                }
                Err(MintError::Database(error)) => {
                    trouble!(error, error, "a sign-in link can't be created");
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

    /// Submits it, with retries if they may help.
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
