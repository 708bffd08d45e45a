//! New mail of a Gmail mailbox: messages that its history added to the inbox, and bounces that it added to spam.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tokio::time::Instant;

use super::GmailApi;
use super::fetch::Added;
use super::inbox::{MessagePage, PAGE, PAGES};
use super::message::MESSAGES;
use crate::mail::reader::{NewMail, ReadError};
use crate::mail::taken::Taken;
use crate::mail::transport::MailboxAccess;

const PROFILE: &str = "/gmail/v1/users/me/profile";
const HISTORY: &str = "/gmail/v1/users/me/history";

/// The labels that are read.
const INBOX: &str = "INBOX";
const SPAM: &str = "SPAM";

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

/// The messages that the history added under one label.
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
        until: Instant,
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
        // Both continue from the same record; messages that one has read beyond it are read again.
        let more = inbox.more || spam.more;
        let ends = [&inbox, &spam]
            .into_iter()
            .filter(|list| list.more || !more);
        let reached = ends.map(|list| list.reached).min().unwrap_or(start);
        let mut added = inbox.added;
        added.extend(spam.added);
        added.retain(|one| one.record <= reached);
        added.sort_by_key(|one| one.record);
        keep_first(&mut added);
        let fetched = self.fetch(account, &added, until).await?;
        // The record of the first message that is missing is read again as a whole.
        let next = added.get(fetched.done).map(|one| one.record);
        let is_whole = |one: &Added| next.is_none_or(|next| one.record < next);
        let cut = (added.iter().rev())
            .find(|one| is_whole(one))
            .filter(|_| next.is_some());
        let cursor = cut.map_or(reached, |last| last.record).max(start);
        let messages = (fetched.messages.into_iter())
            .filter(|(place, _)| added.get(*place).is_some_and(is_whole))
            .map(|(_, received)| received);
        Ok(Some(NewMail {
            messages: messages.collect(),
            cursor: cursor.to_string(),
            more: more || next.is_some(),
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

    /// New messages since a point in time: the newest ones, up to the limit of one check. If an earlier check has
    /// `begun` this: the history id to continue from afterwards, and the messages already taken.
    pub(super) async fn since_time(
        &self,
        account: &MailboxAccess,
        since: DateTime<Utc>,
        until: Instant,
        begun: Option<(&str, Taken)>,
    ) -> Result<NewMail, ReadError> {
        let (history_id, before) = if let Some((history_id, taken)) = begun {
            (history_id.to_owned(), taken)
        } else {
            // Read first: a message that arrives meanwhile is found twice rather than not at all.
            let profile: Option<Profile> = self.get(account, PROFILE, &[]).await?;
            let profile =
                profile.ok_or_else(|| ReadError::unavailable("HTTP 404 for the profile"))?;
            (profile.history_id, Taken::default())
        };
        let mut taken = Taken::default();
        let mut added = Vec::new();
        for label in [INBOX, SPAM] {
            for id in self.listed(account, since, label).await? {
                if before.has(&id) {
                    taken.add(&id);
                } else {
                    added.push(Added {
                        record: 0,
                        id,
                        is_spam: label == SPAM,
                    });
                }
            }
        }
        keep_first(&mut added);
        let fetched = self.fetch(account, &added, until).await?;
        let more = fetched.done < added.len();
        let cursor = if more {
            (added[..fetched.done].iter()).for_each(|one| taken.add(&one.id));
            taken.join(&history_id)
        } else {
            history_id
        };
        let messages = fetched.messages.into_iter().map(|(_, received)| received);
        Ok(NewMail {
            messages: messages.collect(),
            cursor,
            more,
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
}

/// Each message once, at its first position.
fn keep_first(added: &mut Vec<Added>) {
    let mut seen = HashSet::new();
    added.retain(|one| seen.insert(one.id.clone()));
}

fn history_id(text: &str) -> Result<u64, ReadError> {
    text.parse()
        .map_err(|_| ReadError::unavailable("HTTP 200 with a history id of no known form"))
}
