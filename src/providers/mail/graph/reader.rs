//! Reads a mailbox through Graph: whether a message is among the sent items, and what the delta queries of inbox and
//! junk folder report as new.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

mod entry;
mod folder;
mod item;
mod refusal;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::Method;
use serde::Deserialize;
use tokio::time::Instant;

use super::api::{CallError, GraphContent, GraphResponse, Patience, encoded};
use super::{Graph, grants};
use crate::providers::mail::reader::{MailReader, NewMail, RESPONSE, ReadError};
use crate::providers::mail::transport::MailboxAccess;
use refusal::{nonsense, refused, unreachable};

/// The well-known names of the folders that are read (mailFolder).
const INBOX: &str = "inbox";
const JUNK: &str = "junkemail";

#[derive(Deserialize)]
struct Found {
    value: Vec<serde_json::Value>,
}

impl Graph {
    /// Whether a message with this Message-ID, angle brackets included, is among the sent items.
    pub(super) async fn is_among_sent(
        &self,
        account: &MailboxAccess,
        message_id: &str,
        patience: Patience,
    ) -> Result<bool, ReadError> {
        let filter = format!("internetMessageId eq '{}'", message_id.replace('\'', "''"));
        let path = format!(
            "/mailFolders/sentitems/messages?$filter={}&$select=id",
            encoded(&filter)
        );
        let answer = self.look(account, &self.api.address(&path), patience).await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        if answer.status != 200 {
            return Err(refused(&answer));
        }
        let found: Found = serde_json::from_slice(&answer.body).map_err(|_| nonsense())?;
        Ok(!found.value.is_empty())
    }

    /// A plain GET.
    pub(super) async fn look(
        &self,
        account: &MailboxAccess,
        address: &str,
        patience: Patience,
    ) -> Result<GraphResponse, CallError> {
        self.api
            .call(
                account,
                Method::GET,
                address,
                GraphContent::Nothing,
                patience,
            )
            .await
    }

    async fn look_for_new(
        &self,
        account: &MailboxAccess,
        cursor: Option<&str>,
        since: DateTime<Utc>,
        until: Instant,
    ) -> Result<NewMail, ReadError> {
        // Releases that read the inbox alone stored its link alone.
        let (inbox, junk) = match cursor.and_then(|cursor| cursor.split_once(' ')) {
            Some((inbox, junk)) => (Some(inbox), Some(junk)),
            None => (cursor, None),
        };
        let inbox = self
            .read_folder(account, INBOX, inbox, since, until)
            .await?;
        let mut new = NewMail {
            messages: inbox.messages,
            cursor: inbox.cursor,
            more: inbox.more,
        };
        // The junk folder waits only while the inbox has new mail.
        let is_late = Instant::now() >= until && !new.messages.is_empty();
        let mut junk = junk.map(str::to_owned);
        if inbox.is_broken || is_late {
            new.more = true;
        } else {
            match self
                .read_folder(account, JUNK, junk.as_deref(), since, until)
                .await
            {
                Ok(read) => {
                    let bounces = read.messages.into_iter();
                    new.messages
                        .extend(bounces.filter(|received| received.bounce.is_some()));
                    new.more |= read.more;
                    junk = Some(read.cursor);
                }
                Err(error @ ReadError::TokenRefused(_)) => return Err(error),
                // It is read the next time; the inbox doesn't wait for it.
                Err(error) => {
                    tracing::debug!(credential_id = %account.credential, %error, "the junk folder can't be read");
                }
            }
        }
        if let Some(junk) = junk {
            new.cursor.push(' ');
            new.cursor.push_str(&junk);
        }
        Ok(new)
    }

    /// The timeout of a call outside a submission.
    fn one_call(&self) -> Patience {
        let each = self.command.min(RESPONSE);
        Patience {
            each,
            until: Instant::now() + each,
        }
    }
}

impl MailReader for Graph {
    fn may_read(&self, scopes: &[String]) -> bool {
        grants(scopes, "Mail.ReadWrite") || grants(scopes, "Mail.Read")
    }

    /// Exchange may give a message another Message-ID, and may hold it in the outbox for long, so a message that isn't
    /// found may still have been sent.
    fn keeps_sent_mail(&self) -> bool {
        false
    }

    fn find_sent<'a>(
        &'a self,
        account: &'a MailboxAccess,
        message_id: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReadError>> {
        self.is_among_sent(account, message_id, self.one_call())
            .boxed()
    }

    fn new_mail<'a>(
        &'a self,
        account: &'a MailboxAccess,
        cursor: Option<&'a str>,
        since: DateTime<Utc>,
        until: Instant,
    ) -> BoxFuture<'a, Result<NewMail, ReadError>> {
        self.look_for_new(account, cursor, since, until).boxed()
    }
}
