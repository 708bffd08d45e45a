//! Gmail mailboxes are read by their history; the history id is the cursor.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{GmailApi, MARK, MAXIMUM_ANSWER, verdict};
use crate::providers::answer::{ProviderResponse, no_answer};
use crate::providers::mail::reader::{MailReader, NewMail, ReadError};
use crate::providers::mail::received::{self, HEADERS, Received};
use crate::providers::mail::transport::MailboxAccess;

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
const PAGE: &str = "100";
const PAGES: usize = 2;

/// Messages of one mailbox that are fetched concurrently.
const FETCHED_AT_ONCE: usize = 4;

const PROFILE: &str = "/gmail/v1/users/me/profile";
const HISTORY: &str = "/gmail/v1/users/me/history";
const MESSAGES: &str = "/gmail/v1/users/me/messages";

/// Whether the granted scopes allow reading the headers of sent messages.
pub(super) fn may_read_headers(scopes: &[String]) -> bool {
    let is_one = |scope: &String| SCOPES.contains(&scope.as_str()) || scope == METADATA_SCOPE;
    scopes.iter().any(is_one)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    history_id: String,
}

/// A message as it appears in lists.
#[derive(Deserialize)]
struct Listed {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessagePage {
    #[serde(default)]
    messages: Vec<Listed>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HistoryPage {
    #[serde(default)]
    history: Vec<HistoryRecord>,
    next_page_token: Option<String>,
    /// The mailbox's current history id.
    history_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HistoryRecord {
    id: String,
    #[serde(default)]
    messages_added: Vec<MessageAdded>,
}

#[derive(Deserialize)]
struct MessageAdded {
    message: Listed,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    payload: Payload,
}

impl Metadata {
    /// The value of a header.
    fn header(&self, name: &str) -> Option<&str> {
        let found =
            (self.payload.headers.iter()).find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(found.value.trim())
    }
}

#[derive(Deserialize, Default)]
struct Payload {
    #[serde(default)]
    headers: Vec<Header>,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
}

impl GmailApi {
    /// A GET request; `None` if Gmail reports that the object doesn't exist.
    async fn get<T: DeserializeOwned>(
        &self,
        account: &MailboxAccess,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<T>, ReadError> {
        let response = self
            .request(account, Method::GET, path)
            .timeout(self.command)
            .query(query)
            .send()
            .await
            .map_err(|error| ReadError::unavailable(no_answer(error)))?;
        let now = self.clock.now();
        let answer = ProviderResponse::read(response, MAXIMUM_ANSWER, now).await;
        match answer.status {
            200 => serde_json::from_value(answer.body)
                .map(Some)
                .map_err(|_| ReadError::unavailable("HTTP 200 of no known form")),
            404 => Ok(None),
            _ => Err(verdict::not_read(&answer, now)),
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

    async fn metadata(
        &self,
        account: &MailboxAccess,
        id: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<Metadata>, ReadError> {
        let id: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
        self.get(account, &format!("{MESSAGES}/{id}"), query).await
    }

    /// Searches by Message-ID, or by the header that preserves it if Gmail has assigned another.
    async fn is_among_the_sent(
        &self,
        account: &MailboxAccess,
        message_id: &str,
    ) -> Result<bool, ReadError> {
        let id = message_id
            .trim_matches(|letter: char| letter.is_whitespace() || matches!(letter, '<' | '>'));
        if is_searchable(id) && self.is_found(account, id).await? {
            return Ok(true);
        }
        self.is_marked(account, message_id.trim()).await
    }

    /// Whether one of the recently sent messages carries our mark with this Message-ID.
    async fn is_marked(
        &self,
        account: &MailboxAccess,
        message_id: &str,
    ) -> Result<bool, ReadError> {
        let since = self.clock.now() - SENT_WITHIN;
        let after = format!("after:{}", since.timestamp().max(0));
        let mut next_page: Option<String> = None;
        for _ in 0..PAGES {
            let mut query = vec![
                ("labelIds", "SENT"),
                ("q", after.as_str()),
                ("maxResults", PAGE),
            ];
            query.extend(next_page.as_deref().map(|token| ("pageToken", token)));
            let page: Option<MessagePage> = self.get(account, MESSAGES, &query).await?;
            let page = page.ok_or_else(|| ReadError::unavailable("HTTP 404 instead of a list"))?;
            let query = [("format", "metadata"), ("metadataHeaders", MARK)];
            let query = &query;
            let mut marks = stream::iter(page.messages)
                .map(|listed| async move { self.metadata(account, &listed.id, query).await })
                .buffered(FETCHED_AT_ONCE);
            while let Some(message) = marks.try_next().await? {
                if message.is_some_and(|message| message.header(MARK) == Some(message_id)) {
                    return Ok(true);
                }
            }
            next_page = page.next_page_token;
            if next_page.is_none() {
                break;
            }
        }
        Ok(false)
    }

    async fn is_found(&self, account: &MailboxAccess, id: &str) -> Result<bool, ReadError> {
        let query = [
            ("q", &*format!("rfc822msgid:{id}")),
            ("labelIds", "SENT"),
            ("maxResults", "1"),
        ];
        let found: Option<MessagePage> = self.get(account, MESSAGES, &query).await?;
        let found = found.ok_or_else(|| ReadError::unavailable("HTTP 404 instead of a list"))?;
        Ok(!found.messages.is_empty())
    }

    /// New messages since `cursor`; `None` if Gmail's history no longer goes back that far.
    async fn since_cursor(
        &self,
        account: &MailboxAccess,
        cursor: &str,
    ) -> Result<Option<NewMail>, ReadError> {
        let mut ids = Vec::new();
        let mut reached = cursor.to_owned();
        let mut next_page: Option<String> = None;
        for _ in 0..PAGES {
            let mut query = vec![
                ("startHistoryId", cursor),
                ("historyTypes", "messageAdded"),
                ("labelId", "INBOX"),
                ("maxResults", PAGE),
            ];
            query.extend(next_page.as_deref().map(|token| ("pageToken", token)));
            let page: Option<HistoryPage> = self.get(account, HISTORY, &query).await?;
            let Some(page) = page else {
                return Ok(None);
            };
            if let Some(last) = page.history.last() {
                reached.clone_from(&last.id);
            }
            ids.extend(
                (page.history.into_iter())
                    .flat_map(|record| record.messages_added)
                    .map(|added| added.message.id),
            );
            next_page = page.next_page_token;
            if next_page.is_none() {
                reached = page.history_id.unwrap_or(reached);
                break;
            }
        }
        Ok(Some(NewMail {
            messages: self.fetch(account, ids).await?,
            cursor: reached,
            more: next_page.is_some(),
        }))
    }

    /// New messages since a point in time: the newest ones, up to the limit of one check.
    async fn since_time(
        &self,
        account: &MailboxAccess,
        since: DateTime<Utc>,
    ) -> Result<NewMail, ReadError> {
        // Read first: a message that arrives meanwhile is found twice rather than not at all.
        let profile: Option<Profile> = self.get(account, PROFILE, &[]).await?;
        let profile = profile.ok_or_else(|| ReadError::unavailable("HTTP 404 for the profile"))?;
        let after = format!("after:{}", since.timestamp().max(0));
        let mut ids = Vec::new();
        let mut next_page: Option<String> = None;
        for _ in 0..PAGES {
            let mut query = vec![
                ("labelIds", "INBOX"),
                ("q", after.as_str()),
                ("maxResults", PAGE),
            ];
            query.extend(next_page.as_deref().map(|token| ("pageToken", token)));
            let page: Option<MessagePage> = self.get(account, MESSAGES, &query).await?;
            let page = page.ok_or_else(|| ReadError::unavailable("HTTP 404 instead of a list"))?;
            ids.extend(page.messages.into_iter().map(|listed| listed.id));
            next_page = page.next_page_token;
            if next_page.is_none() {
                break;
            }
        }
        if next_page.is_some() {
            tracing::info!(credential_id = %account.credential, "an inbox has more new messages than one check reads; only the newest are checked");
        }
        // Lists are newest first.
        ids.reverse();
        Ok(NewMail {
            messages: self.fetch(account, ids).await?,
            cursor: profile.history_id,
            more: false,
        })
    }

    /// The headers of messages, in order. Messages deleted meanwhile are left out.
    async fn fetch(
        &self,
        account: &MailboxAccess,
        ids: Vec<String>,
    ) -> Result<Vec<Received>, ReadError> {
        let mut seen = HashSet::new();
        let ids: Vec<String> = (ids.into_iter())
            .filter(|id| seen.insert(id.clone()))
            .collect();
        let mut query = vec![("format", "metadata")];
        query.extend(HEADERS.map(|name| ("metadataHeaders", name)));
        let query = &query;
        let fetched: Vec<Option<Metadata>> = stream::iter(ids)
            .map(|id| async move { self.metadata(account, &id, query).await })
            .buffered(FETCHED_AT_ONCE)
            .try_collect()
            .await?;
        Ok((fetched.into_iter().flatten())
            .map(|message| Received::parse(&header_block(&message.payload.headers)))
            .collect())
    }
}

impl MailReader for GmailApi {
    fn may_read(&self, scopes: &[String]) -> bool {
        scopes.iter().any(|scope| SCOPES.contains(&scope.as_str()))
    }

    /// Messages sent through this API have been seen to get a Message-ID from Gmail, and no documentation says that our
    /// mark is preserved: a message that isn't found may have been sent.
    fn keeps_sent_mail(&self) -> bool {
        false
    }

    fn find_sent<'a>(
        &'a self,
        account: &'a MailboxAccess,
        message_id: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReadError>> {
        self.is_among_the_sent(account, message_id).boxed()
    }

    fn new_mail<'a>(
        &'a self,
        account: &'a MailboxAccess,
        cursor: Option<&'a str>,
        since: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<NewMail, ReadError>> {
        async move {
            // A cursor left behind by another reader is not a history id.
            let number = |cursor: &&str| cursor.bytes().all(|byte| byte.is_ascii_digit());
            if let Some(cursor) = cursor.filter(number)
                && let Some(new_mail) = self.since_cursor(account, cursor).await?
            {
                return Ok(new_mail);
            }
            self.since_time(account, since).await
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

/// The headers as lines; Gmail has already unfolded the values.
fn header_block(headers: &[Header]) -> Vec<u8> {
    let pairs = headers
        .iter()
        .map(|header| (header.name.as_str(), header.value.as_str()));
    received::header_block(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_become_lines_and_nothing_else() {
        let header = |name: &str, value: &str| Header {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let block = header_block(&[
            header("From", "Bob <bob@example.org>"),
            header(
                "Subject",
                "=?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nIn-Reply-To: <forged@x>",
            ),
            header("In-Reply-To", "<m1@example.com>"),
            header("X:\r\nReferences", "<forged@x>"),
            header("", "x"),
        ]);
        let received = Received::parse(&block);
        assert_eq!(received.from, "bob@example.org");
        assert_eq!(received.answers, ["<m1@example.com>"]);
        assert_eq!(received.subject, "Grüße In-Reply-To: <forged@x>");
    }

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
