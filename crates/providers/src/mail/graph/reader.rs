//! Reads a mailbox through Graph: whether a message is among the sent items, and the new messages in the delta queries
//! of the inbox and junk folder.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

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
use crate::mail::reader::{MailReader, NewMail, RESPONSE, ReadError};
use crate::mail::sent_copy::{COPIES, Found, Sought};
use crate::mail::transport::MailboxAccess;
use refusal::{is_final, nonsense, refused, unreachable};

/// The well-known names of the folders that are read (mailFolder).
const INBOX: &str = "inbox";
const JUNK: &str = "junkemail";

/// The number of bytes of a copy that are read, for its header.
const HEADER_BYTES: usize = 64 * 1024;

#[derive(Deserialize)]
struct Copies {
    value: Vec<Copy>,
}

#[derive(Deserialize)]
struct Copy {
    id: String,
}

impl Graph {
    /// Looks for a message among the sent items. Their list of headers can be empty although the message itself has
    /// them (microsoftgraph/microsoft-graph-docs issues 2716 and 18761, OfficeDev/office-js 5413).
    pub(super) async fn look_among_sent(
        &self,
        account: &MailboxAccess,
        sought: Sought<'_>,
        patience: Patience,
    ) -> Result<Found, ReadError> {
        let filter = format!(
            "internetMessageId eq '{}'",
            sought.message_id.replace('\'', "''")
        );
        let path = format!(
            "/mailFolders/sentitems/messages?$filter={}&$select=id&$top={COPIES}",
            encoded(&filter)
        );
        let answer = self.look(account, &self.api.address(&path), patience).await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        if answer.status != 200 {
            return Err(refused(&answer));
        }
        let listed: Copies = serde_json::from_slice(&answer.body).map_err(|_| nonsense())?;
        let mut found = Found::Nothing;
        for copy in listed.value {
            found = Found::OtherCopies;
            let path = format!("/messages/{}/$value", encoded(&copy.id));
            let address = self.api.address(&path);
            let answer = self
                .api
                .beginning(account, &address, HEADER_BYTES, patience)
                .await;
            let answer = answer.map_err(|error| unreachable(&error))?;
            match answer.status {
                200 if sought.is_headed_by(&answer.body) => return Ok(Found::Message),
                200 => {}
                _ if is_final(&answer) => {}
                _ => return Err(refused(&answer)),
            }
        }
        Ok(found)
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
        // Older releases read only the inbox and stored only its link.
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
        sought: Sought<'a>,
    ) -> BoxFuture<'a, Result<Found, ReadError>> {
        self.look_among_sent(account, sought, self.one_call())
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
