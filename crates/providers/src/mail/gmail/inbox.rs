//! Gmail mailboxes are read by their history; the history id is the cursor. Sent mail is searched here; new mail is read
//! in [`super::new_mail`].

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::message::MESSAGES;
use super::{GmailApi, MAXIMUM_ANSWER, verdict};
use crate::answer::{ProviderResponse, no_answer};
use crate::mail::reader::{MailReader, NewMail, RESPONSE, ReadError};
use crate::mail::sent_copy::{COPIES, Found, Sought};
use crate::mail::taken::Taken;
use crate::mail::transport::MailboxAccess;
use mailgate_types::ids::LOG_ID_HEADER;

/// Scopes that allow searching and reading; `gmail.metadata` doesn't allow searching.
const SCOPES: [&str; 3] = [
    "https://mail.google.com/",
    "https://www.googleapis.com/auth/gmail.readonly",
    "https://www.googleapis.com/auth/gmail.modify",
];

/// The scope that allows reading a message's headers, but not searching.
const METADATA_SCOPE: &str = "https://www.googleapis.com/auth/gmail.metadata";

/// How far back the sent messages are searched: longer than any message waits to be sent.
const SENT_WITHIN: TimeDelta = TimeDelta::days(6);

/// Entries per page, and the number of pages read in one check.
pub(super) const PAGE: &str = "100";
pub(super) const PAGES: usize = 2;

/// Messages of one mailbox that are fetched concurrently.
pub(super) const FETCHED_AT_ONCE: usize = 4;

/// Whether the granted scopes allow reading the headers of sent messages.
pub(super) fn may_read_headers(scopes: &[String]) -> bool {
    let is_one = |scope: &String| SCOPES.contains(&scope.as_str()) || scope == METADATA_SCOPE;
    scopes.iter().any(is_one)
}

/// A message as it appears in lists.
#[derive(Deserialize)]
pub(super) struct Listed {
    pub(super) id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessagePage {
    #[serde(default)]
    pub(super) messages: Vec<Listed>,
    pub(super) next_page_token: Option<String>,
}

impl GmailApi {
    /// A GET request.
    pub(super) async fn ask(
        &self,
        account: &MailboxAccess,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<ProviderResponse, ReadError> {
        let response = self
            .request(account, Method::GET, path)
            .timeout(self.command.min(RESPONSE))
            .query(query)
            .send()
            .await
            .map_err(|error| ReadError::unavailable(no_answer(error)))?;
        Ok(ProviderResponse::read(response, MAXIMUM_ANSWER, self.clock.now()).await)
    }

    /// A list, or the mailbox's profile; `None` if Gmail reports that it doesn't exist.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        account: &MailboxAccess,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<T>, ReadError> {
        let answer = self.ask(account, path, query).await?;
        match answer.status {
            200 => serde_json::from_value(answer.body)
                .map(Some)
                .map_err(|_| ReadError::unavailable("HTTP 200 of no known form")),
            404 => Ok(None),
            _ => Err(verdict::not_read(&answer, self.clock.now())),
        }
    }

    /// The Message-ID that Gmail gave a sent message. If it can't be read, the message still counts as sent.
    pub(super) async fn given_message_id(
        &self,
        account: &MailboxAccess,
        id: &str,
    ) -> Option<String> {
        let query = [("format", "metadata"), ("metadataHeaders", "Message-ID")];
        match self.metadata(account, id, &query).await {
            Ok(message) => message?.header("Message-ID").map(str::to_owned),
            Err(error) => {
                tracing::info!(credential_id = %account.credential, %error, "the Message-ID that Gmail gave a message can't be read");
                None
            }
        }
    }

    /// Searches by Message-ID, and among the newest ones in case Gmail has assigned another.
    async fn look_among_sent(
        &self,
        account: &MailboxAccess,
        sought: Sought<'_>,
    ) -> Result<Found, ReadError> {
        let id = (sought.message_id)
            .trim_matches(|letter: char| letter.is_whitespace() || matches!(letter, '<' | '>'));
        let mut found = Found::Nothing;
        if is_searchable(id) {
            let (copies, query) = (COPIES.to_string(), format!("rfc822msgid:{id}"));
            let page = self.sent_page(account, &query, &copies, None).await?;
            if !page.messages.is_empty() {
                found = Found::OtherCopies;
            }
            if self.has_sought(account, page.messages, sought).await? {
                return Ok(Found::Message);
            }
        }
        let since = self.clock.now() - SENT_WITHIN;
        let query = format!("after:{}", since.timestamp().max(0));
        let mut next_page: Option<String> = None;
        for _ in 0..PAGES {
            let page = self
                .sent_page(account, &query, PAGE, next_page.as_deref())
                .await?;
            if self.has_sought(account, page.messages, sought).await? {
                return Ok(Found::Message);
            }
            next_page = page.next_page_token;
            if next_page.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// A page of the sent messages that match a search.
    async fn sent_page(
        &self,
        account: &MailboxAccess,
        search: &str,
        size: &str,
        token: Option<&str>,
    ) -> Result<MessagePage, ReadError> {
        let mut query = vec![("labelIds", "SENT"), ("q", search), ("maxResults", size)];
        query.extend(token.map(|token| ("pageToken", token)));
        let page: Option<MessagePage> = self.get(account, MESSAGES, &query).await?;
        page.ok_or_else(|| ReadError::unavailable("HTTP 404 instead of a list"))
    }

    /// Whether the message is one of these, by its own header.
    async fn has_sought(
        &self,
        account: &MailboxAccess,
        listed: Vec<Listed>,
        sought: Sought<'_>,
    ) -> Result<bool, ReadError> {
        let query = [("format", "metadata"), ("metadataHeaders", LOG_ID_HEADER)];
        let query = &query;
        let mut messages = stream::iter(listed)
            .map(|listed| async move { self.metadata(account, &listed.id, query).await })
            .buffered(FETCHED_AT_ONCE);
        while let Some(message) = messages.try_next().await? {
            let message = message.as_ref();
            let id = message.and_then(|message| message.header(LOG_ID_HEADER));
            if id.is_some_and(|id| sought.is_named_by(id)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl MailReader for GmailApi {
    fn may_read(&self, scopes: &[String]) -> bool {
        scopes.iter().any(|scope| SCOPES.contains(&scope.as_str()))
    }

    /// Messages sent through this API have been seen to get a Message-ID from Gmail, and no documentation says that our
    /// header is preserved: a message that isn't found may have been sent.
    fn keeps_sent_mail(&self) -> bool {
        false
    }

    fn find_sent<'a>(
        &'a self,
        account: &'a MailboxAccess,
        sought: Sought<'a>,
    ) -> BoxFuture<'a, Result<Found, ReadError>> {
        self.look_among_sent(account, sought).boxed()
    }

    fn new_mail<'a>(
        &'a self,
        account: &'a MailboxAccess,
        cursor: Option<&'a str>,
        since: DateTime<Utc>,
        until: Instant,
    ) -> BoxFuture<'a, Result<NewMail, ReadError>> {
        async move {
            // A cursor left behind by another reader is not a history id.
            let is_number = |id: &str| !id.is_empty() && id.bytes().all(|it| it.is_ascii_digit());
            let begun = match cursor.map(Taken::split) {
                Some((history_id, taken)) if is_number(history_id) && taken.is_empty() => {
                    let new_mail = self.since_cursor(account, history_id, until).await?;
                    if let Some(new_mail) = new_mail {
                        return Ok(new_mail);
                    }
                    None
                }
                begun => begun.filter(|(history_id, _)| is_number(history_id)),
            };
            self.since_time(account, since, until, begun).await
        }
        .boxed()
    }
}

/// Whether a search for this Message-ID finds exactly that: no character of it may end the term or group terms.
fn is_searchable(id: &str) -> bool {
    !id.is_empty()
        && id.chars().all(|letter| {
            !letter.is_whitespace() && !letter.is_control() && !"\"(){}<>,|\\".contains(letter)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_a_search_can_name() {
        for (id, expected) in [
            ("log_1@example.com", true),
            ("a+b=c/d?e&f#g%h!$*'-^_`~.i@[127.0.0.1]", true),
            ("", false),
            ("a b@x", false),
            ("a\"b@x", false),
            ("a)@x", false),
            ("{a@x", false),
            ("a|b@x", false),
            ("a\u{a0}b@x", false),
        ] {
            assert_eq!(is_searchable(id), expected, "{id}");
        }
    }
}
