//! What came back: bounces and replies.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{History, HistoryError};
use mailgate_storage::bounces::{self, NewBounce};
use mailgate_storage::database::transaction;
use mailgate_storage::replies::{self, NewReply};
use mailgate_storage::{bounced_messages, suppressions};
use mailgate_types::bounce_type::BounceType;
use mailgate_types::email_address::comparison_key;
use mailgate_types::ids::{AppId, CredentialId, LogId};

/// Bounces of one type per message: no message of a past has more.
const MOST: i64 = 10;

/// A bounce that was read in a mailbox.
#[derive(Debug, Clone)]
pub struct PastBounce {
    /// The message's app.
    pub app: AppId,
    /// The mailbox.
    pub credential: CredentialId,
    /// The bounce.
    pub bounce: NewBounce,
    /// When it was read.
    pub at: DateTime<Utc>,
}

/// A reply that was read in a mailbox.
#[derive(Debug, Clone)]
pub struct PastReply {
    /// The mailbox.
    pub credential: CredentialId,
    /// Its own Message-ID.
    pub message_id: String,
    /// The message that it answers.
    pub log: LogId,
    /// Who wrote it.
    pub from_address: String,
    /// When it was read.
    pub at: DateTime<Utc>,
}

impl History {
    /// Writes bounces and replies, in one transaction, with what follows from them: suppressed recipients and the
    /// counters. No event is emitted.
    pub async fn write_responses(
        &self,
        bounces: &[PastBounce],
        replies: &[PastReply],
    ) -> Result<(), HistoryError> {
        let mut transaction = transaction::begin(&self.pool).await?;
        let mut returned = Vec::new();
        // Each was read at a time of its own, and there are few.
        for past in bounces {
            let new = std::slice::from_ref(&past.bounce);
            bounces::insert(&mut transaction, past.credential, new, past.at, MOST).await?;
            if past.bounce.bounce_type == BounceType::Permanent {
                let suppressed = [(comparison_key(&past.bounce.recipient), past.bounce.log)];
                suppressions::note(&mut transaction, past.app, &suppressed, past.at).await?;
                returned.push(past.bounce.log);
            }
        }
        bounced_messages::mark(&mut transaction, &returned).await?;
        let mut by_mailbox: BTreeMap<CredentialId, Vec<String>> = BTreeMap::new();
        for reply in replies {
            let known = by_mailbox.entry(reply.credential).or_default();
            known.push(reply.message_id.clone());
        }
        for (credential, message_ids) in by_mailbox {
            replies::insert(&mut transaction, credential, &message_ids, self.now).await?;
        }
        let logged: Vec<NewReply<'_>> = (replies.iter())
            .map(|reply| NewReply {
                key: &reply.message_id,
                log: reply.log,
                from_address: &reply.from_address,
                replied_at: reply.at,
            })
            .collect();
        replies::add_to_log(&mut transaction, &logged).await?;
        Ok(transaction.commit().await?)
    }
}
