//! Reply tracking: each reply to a logged message is reported to its app, once.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use super::Mailboxes;
use mailgate_providers::mail::received::Received;
use mailgate_storage::mailboxes::Mailbox;
use mailgate_storage::replies::{self, Answered, NewReply};
use mailgate_storage::webhook_messages;
use mailgate_types::event::{Emission, Event};
use mailgate_types::hex::hex;
use mailgate_types::ids::{AppId, LogId};
use mailgate_types::past::Past;

/// Replies deleted in one batch.
const FORGOTTEN: i64 = 1_000;

/// Message-IDs that are looked up in one statement.
const ASKED_AT_ONCE: usize = 500;

/// Replies that were reported.
pub(super) struct ToldReplies(usize);

impl ToldReplies {
    /// Counts them, once they are committed.
    pub(super) fn count(self, mailbox: &Mailbox) {
        if self.0 > 0 {
            tracing::info!(credential_id = %mailbox.id, replies = self.0, "replies were found");
        }
        metrics::counter!("mailgate_replies_total", "plugin" => mailbox.plugin.as_str())
            .increment(u64::try_from(self.0).unwrap_or(u64::MAX));
    }
}

/// A reply to a logged message.
pub(super) struct Reply<'a> {
    received: &'a Received,
    original: Answered,
}

/// The messages that are replies to the mailbox's logged ones, in their order.
pub(super) async fn find<'a>(
    connection: &mut PgConnection,
    mailbox: &Mailbox,
    aliases: &[String],
    messages: &'a [Received],
) -> Result<Vec<Reply<'a>>, sqlx::Error> {
    let answers = answers(mailbox, aliases, messages);
    let named: BTreeSet<&str> = (answers.iter())
        .flat_map(|received| received.answers.iter().map(String::as_str))
        .collect();
    let named: Vec<&str> = named.into_iter().collect();
    let mut answered: HashMap<String, Answered> = HashMap::new();
    for some in named.chunks(ASKED_AT_ONCE) {
        for original in replies::answered(connection, mailbox.id, some).await? {
            answered.insert(original.message_id.clone(), original);
        }
    }
    let replies = answers.into_iter().filter_map(|received| {
        let original = received.answers.iter().find_map(|id| answered.get(id))?;
        Some(Reply {
            received,
            original: original.clone(),
        })
    });
    Ok(replies.collect())
}

/// Emits the events of replies, and stores the keys that deduplicate them, within the caller's transaction.
pub(super) async fn tell(
    connection: &mut PgConnection,
    app: AppId,
    mailbox: &Mailbox,
    replies: Vec<Reply<'_>>,
    now: DateTime<Utc>,
) -> Result<ToldReplies, sqlx::Error> {
    if replies.is_empty() {
        return Ok(ToldReplies(0));
    }
    let found: Vec<(String, Emission)> = replies
        .into_iter()
        .map(|Reply { received, original }| {
            let log = Some(original.log);
            let event = Event::EmailReply {
                message_id: original.message_id,
                from_address: received.from.clone(),
                to_address: original.from_address,
                subject: received.subject.clone(),
                metadata: original.metadata,
            };
            (key_of(received), Emission { app, event, log })
        })
        .collect();
    let found = within_bounds(connection, mailbox, found).await?;
    let keys: Vec<String> = found.keys().cloned().collect();
    let fresh = replies::insert(connection, mailbox.id, &keys, now).await?;
    let fresh: Vec<(&String, &Emission)> = fresh
        .iter()
        .filter_map(|key| found.get_key_value(key))
        .collect();
    let logged: Vec<NewReply<'_>> = (fresh.iter())
        .filter_map(|(key, emission)| logged(key, emission, now))
        .collect();
    replies::add_to_log(connection, &logged).await?;
    let emissions: Vec<Emission> = (fresh.into_iter())
        .map(|(_, emission)| emission.clone())
        .collect();
    webhook_messages::emit(connection, &emissions, now).await?;
    Ok(ToldReplies(emissions.len()))
}

/// The replies, in the order in which they were read, that are new and within their message's limit. The others are
/// neither recorded nor reported.
async fn within_bounds(
    connection: &mut PgConnection,
    mailbox: &Mailbox,
    found: Vec<(String, Emission)>,
) -> Result<HashMap<String, Emission>, sqlx::Error> {
    let keys: Vec<String> = found.iter().map(|(key, _)| key.clone()).collect();
    let known = replies::known(connection, mailbox.id, &keys).await?;
    let logs: HashSet<LogId> = (found.iter())
        .filter_map(|(_, emission)| emission.log)
        .collect();
    let logs: Vec<LogId> = logs.into_iter().collect();
    let mut room = replies::room(connection, &logs).await?;
    let mut within = HashMap::new();
    let mut left_out = 0_usize;
    for (key, emission) in found {
        if known.contains(&key) || within.contains_key(&key) {
            continue;
        }
        match emission.log.and_then(|log| room.get_mut(&log)) {
            Some(room) if *room > 0 => {
                *room -= 1;
                within.insert(key, emission);
            }
            _ => left_out += 1,
        }
    }
    if left_out > 0 {
        tracing::warn!(credential_id = %mailbox.id, replies = left_out, most = replies::MOST_OF_A_MESSAGE, "replies were left out: their messages have reached the limit of recorded replies");
    }
    Ok(within)
}

/// A reply as the log keeps it.
fn logged<'a>(
    key: &'a str,
    emission: &'a Emission,
    replied_at: DateTime<Utc>,
) -> Option<NewReply<'a>> {
    let (Event::EmailReply { from_address, .. }, Some(log)) = (&emission.event, emission.log)
    else {
        return None;
    };
    Some(NewReply {
        key,
        log,
        from_address,
        replied_at,
    })
}

impl Mailboxes {
    /// Deletes replies that no check can find again.
    pub async fn forget_replies(&self) -> Result<(), sqlx::Error> {
        let found = self.settings.replies_window * 2 + TimeDelta::days(2);
        let past = Past::by(&self.clock).before(found);
        let mut connection = self.pool.acquire().await?;
        while replies::forget(&mut connection, past, FORGOTTEN).await? > 0 {}
        Ok(())
    }
}

/// The messages that are replies, and were written by others.
fn answers<'a>(
    mailbox: &Mailbox,
    aliases: &[String],
    messages: &'a [Received],
) -> Vec<&'a Received> {
    let is_own = |from: &str| {
        let mut own = std::iter::once(&mailbox.email).chain(aliases);
        own.any(|own| from.eq_ignore_ascii_case(own))
    };
    let mut messages: Vec<&Received> = messages.iter().collect();
    messages.retain(|received| {
        !received.automatic
            && received.bounce.is_none()
            && !received.answers.is_empty()
            && !is_own(&received.from)
    });
    messages
}

/// The deduplication key of a reply: its Message-ID, or a digest of its sender, subject and references.
fn key_of(received: &Received) -> String {
    if let Some(id) = &received.message_id {
        return id.clone();
    }
    let mut digest = Sha256::new();
    for part in [&received.from, &received.subject]
        .into_iter()
        .chain(&received.answers)
    {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    format!("no-message-id:{}", hex(&digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_without_an_id_differ_by_what_they_are() {
        let reply = Received {
            from: "bob@example.org".to_owned(),
            answers: vec!["<m@example.com>".to_owned()],
            ..Received::default()
        };
        let other = Received {
            subject: "x".to_owned(),
            ..reply.clone()
        };
        assert_eq!(key_of(&reply), key_of(&reply.clone()));
        assert_ne!(key_of(&reply), key_of(&other));
    }
}
