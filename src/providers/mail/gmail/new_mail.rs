//! New mail of a Gmail mailbox: what its history added to the inbox, and the bounces that it added to the spam.

use std::collections::HashSet;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;

use super::GmailApi;
use super::inbox::{FETCHED_AT_ONCE, Header, MESSAGES, MessagePage, PAGE, PAGES};
use crate::providers::mail::reader::{NewMail, ReadError};
use crate::providers::mail::received::{
    self, BOUNCE_BYTES, BOUNCES, HEADERS, Received, may_be_bounce,
};
use crate::providers::mail::transport::MailboxAccess;

const PROFILE: &str = "/gmail/v1/users/me/profile";
const HISTORY: &str = "/gmail/v1/users/me/history";

/// Where mail is looked for.
const INBOX: &str = "INBOX";
const SPAM: &str = "SPAM";

/// The largest message that is fetched whole, in bytes: base64 makes a third more of it, within
/// [`super::MAXIMUM_ANSWER`]. Of a larger one the headers have to do; Gmail's own bounces are never that large.
const LARGEST_WHOLE: u64 = 2_900_000;

/// Gmail writes the padding, and others that speak its API may not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Characters of base64 that hold as much of a message as is read.
const ENCODED: usize = BOUNCE_BYTES.div_ceil(3) * 4;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HistoryPage {
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
    message: super::inbox::Listed,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Profile {
    history_id: String,
}

/// A message as it was sent, in base64.
#[derive(Deserialize)]
pub(super) struct Whole {
    #[serde(default)]
    raw: String,
}

impl Whole {
    /// The beginning of the message.
    pub(super) fn beginning(&self) -> Vec<u8> {
        let encoded = self.raw.as_bytes();
        let encoded = &encoded[..encoded.len().min(ENCODED)];
        BASE64.decode(encoded).unwrap_or_default()
    }
}

/// A message that was added.
#[derive(Debug)]
struct Added {
    /// The history record that added it; zero if it was found by time.
    record: u64,
    id: String,
    is_spam: bool,
}

/// What the history added under one label.
struct Additions {
    added: Vec<Added>,
    /// The history id up to which all additions are known.
    reached: u64,
    more: bool,
}

impl GmailApi {
    /// New messages since `cursor`; `None` if Gmail's history no longer goes back that far.
    pub(super) async fn since_cursor(
        &self,
        account: &MailboxAccess,
        cursor: &str,
    ) -> Result<Option<NewMail>, ReadError> {
        let Ok(start) = cursor.parse() else {
            return Ok(None);
        };
        let Some(inbox) = self.additions(account, start, INBOX).await? else {
            return Ok(None);
        };
        let Some(spam) = self.additions(account, start, SPAM).await? else {
            return Ok(None);
        };
        // Both go on from the same record, and what one of them has read beyond it is read again.
        let more = inbox.more || spam.more;
        let ends = [&inbox, &spam]
            .into_iter()
            .filter(|list| list.more || !more);
        let reached = ends.map(|list| list.reached).min().unwrap_or(start);
        let mut added = inbox.added;
        added.extend(spam.added);
        added.retain(|one| one.record <= reached);
        added.sort_by_key(|one| one.record);
        let (messages, cut) = self.fetch(account, added).await?;
        Ok(Some(NewMail {
            messages,
            cursor: cut.unwrap_or(reached).max(start).to_string(),
            more: more || cut.is_some(),
        }))
    }

    async fn additions(
        &self,
        account: &MailboxAccess,
        start: u64,
        label: &str,
    ) -> Result<Option<Additions>, ReadError> {
        let cursor = start.to_string();
        let mut added = Vec::new();
        let mut reached = start;
        let mut next_page: Option<String> = None;
        for _ in 0..PAGES {
            let mut query = vec![
                ("startHistoryId", cursor.as_str()),
                ("historyTypes", "messageAdded"),
                ("labelId", label),
                ("maxResults", PAGE),
            ];
            query.extend(next_page.as_deref().map(|token| ("pageToken", token)));
            let page: Option<HistoryPage> = self.get(account, HISTORY, &query).await?;
            let Some(page) = page else {
                return Ok(None);
            };
            for record in page.history {
                let number = history_id(&record.id)?;
                reached = reached.max(number);
                added.extend(record.messages_added.into_iter().map(|it| Added {
                    record: number,
                    id: it.message.id,
                    is_spam: label == SPAM,
                }));
            }
            next_page = page.next_page_token;
            if next_page.is_none() {
                reached = match page.history_id {
                    Some(id) => history_id(&id)?,
                    None => reached,
                };
                break;
            }
        }
        Ok(Some(Additions {
            added,
            reached,
            more: next_page.is_some(),
        }))
    }

    /// New messages since a point in time: the newest ones, up to the limit of one check.
    pub(super) async fn since_time(
        &self,
        account: &MailboxAccess,
        since: DateTime<Utc>,
    ) -> Result<NewMail, ReadError> {
        // Read first: a message that arrives meanwhile is found twice rather than not at all.
        let profile: Option<Profile> = self.get(account, PROFILE, &[]).await?;
        let profile = profile.ok_or_else(|| ReadError::unavailable("HTTP 404 for the profile"))?;
        let mut added = Vec::new();
        for label in [INBOX, SPAM] {
            let ids = self.listed(account, since, label).await?;
            added.extend(ids.into_iter().map(|id| Added {
                record: 0,
                id,
                is_spam: label == SPAM,
            }));
        }
        let (messages, _) = self.fetch(account, added).await?;
        Ok(NewMail {
            messages,
            cursor: profile.history_id,
            more: false,
        })
    }

    /// The newest messages with a label, oldest first.
    async fn listed(
        &self,
        account: &MailboxAccess,
        since: DateTime<Utc>,
        label: &str,
    ) -> Result<Vec<String>, ReadError> {
        let after = format!("after:{}", since.timestamp().max(0));
        let mut ids = Vec::new();
        let mut next_page: Option<String> = None;
        for _ in 0..PAGES {
            let mut query = vec![
                ("labelIds", label),
                ("q", after.as_str()),
                ("maxResults", PAGE),
            ];
            if label == SPAM {
                query.push(("includeSpamTrash", "true"));
            }
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
            tracing::info!(credential_id = %account.credential, label, "a mailbox has more new messages than one check reads; only the newest are checked");
        }
        // Lists are newest first.
        ids.reverse();
        Ok(ids)
    }

    /// Reads messages, in order: the headers of each, and what may be a bounce whole. Messages deleted meanwhile are
    /// left out, and of the spam all but the bounces. If more may be bounces than one check fetches, answers the
    /// history id from which the next one goes on; those found by time are then read by their headers.
    async fn fetch(
        &self,
        account: &MailboxAccess,
        added: Vec<Added>,
    ) -> Result<(Vec<Received>, Option<u64>), ReadError> {
        let mut seen = HashSet::new();
        let added = (added.into_iter()).filter(|one| seen.insert(one.id.clone()));
        let mut query = vec![("format", "metadata")];
        query.extend(HEADERS.map(|name| ("metadataHeaders", name)));
        let query = &query;
        let mut fetched = stream::iter(added)
            .map(|one| async move {
                let found = self.metadata(account, &one.id, query).await?;
                Ok::<_, ReadError>((one, found))
            })
            .buffered(FETCHED_AT_ONCE);
        let mut messages = Vec::new();
        let mut bounces = 0;
        // The records of the message at hand and of the one before.
        let (mut record, mut before) = (0, None);
        while let Some((one, found)) = fetched.try_next().await? {
            if one.record != record {
                before = Some(record).filter(|record| *record > 0);
                record = one.record;
            }
            let Some(found) = found else {
                continue;
            };
            let headers = header_block(&found.payload.headers);
            let mut received = Received::parse(&headers);
            if may_be_bounce(&headers) {
                if bounces >= BOUNCES
                    && let Some(before) = before
                {
                    return Ok((messages, Some(before)));
                }
                bounces += 1;
                let is_fetched = found.size_estimate <= LARGEST_WHOLE && bounces <= BOUNCES;
                let whole = if is_fetched {
                    self.whole(account, &one.id).await?
                } else {
                    None
                };
                received.read_bounce(whole.as_deref().unwrap_or(&headers));
            }
            if !one.is_spam || received.bounce.is_some() {
                messages.push(received);
            }
        }
        Ok((messages, None))
    }

    /// The beginning of a message as it was sent; `None` if it was deleted meanwhile.
    async fn whole(&self, account: &MailboxAccess, id: &str) -> Result<Option<Vec<u8>>, ReadError> {
        let id: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
        let path = format!("{MESSAGES}/{id}");
        let whole: Option<Whole> = self.get(account, &path, &[("format", "raw")]).await?;
        Ok(whole.map(|whole| whole.beginning()))
    }
}

fn history_id(text: &str) -> Result<u64, ReadError> {
    text.parse()
        .map_err(|_| ReadError::unavailable("HTTP 200 with a history id of no known form"))
}

/// The headers as lines; Gmail has already unfolded the values.
pub(super) fn header_block(headers: &[Header]) -> Vec<u8> {
    let pairs = headers
        .iter()
        .map(|header| (header.name.as_str(), header.value.as_str()));
    received::header_block(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_message() {
        let of = |raw: &str| {
            let raw = raw.to_owned();
            Whole { raw }.beginning()
        };
        assert_eq!(of("SGk_"), b"Hi?");
        assert_eq!(of("SGk"), b"Hi");
        assert_eq!(of("SGk="), b"Hi");
        assert_eq!(of("S G"), b"");
        assert_eq!(of(""), b"");
        let beginning = of(&"AAAA".repeat(BOUNCE_BYTES)).len();
        assert!((BOUNCE_BYTES..BOUNCE_BYTES + 3).contains(&beginning));
    }

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
}
