//! Processes bounces: each is reported to the app, shown in the log and counted, and its recipient is recorded as
//! undeliverable.
//! A bounce comes from a stranger, so it counts only for a message sent from this very mailbox whose Message-ID or log
//! id the stranger knows, and so has received or relayed. Any other bounce is ignored, and each message has a bounded
//! number of them.

mod found;
mod original;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use self::found::{Found, found};
use self::original::originals;
use super::Mailboxes;
use mailgate_bounces::Bounce;
use mailgate_providers::mail::received::Received;
use mailgate_storage::bounces::{self, NewBounce};
use mailgate_storage::mailboxes::Mailbox;
use mailgate_storage::{bounced_messages, suppressions, webhook_messages};
use mailgate_types::bounce_type::BounceType;
use mailgate_types::email_address::comparison_key;
use mailgate_types::event::Emission;
use mailgate_types::ids::{AppId, LogId};

/// Maximum bounces of one type per message: further ones are ignored.
const MOST: i64 = 100;

/// Messages marked in one transaction.
const BATCH: i64 = 1_000;

/// Bounces that were reported.
#[derive(Debug, Default)]
pub(super) struct ToldBounces(BTreeMap<BounceType, u64>);

impl ToldBounces {
    /// Counts them, once they are committed.
    pub(super) fn count(self, mailbox: &Mailbox) {
        let all: u64 = self.0.values().sum();
        if all > 0 {
            tracing::info!(credential_id = %mailbox.id, bounces = all, "bounces were found");
        }
        for (bounce_type, bounces) in self.0 {
            metrics::counter!(
                "mailgate_bounces_total",
                "plugin" => mailbox.plugin.as_str(),
                "bounce_type" => bounce_type.as_str()
            )
            .increment(bounces);
        }
    }
}

/// Emits the events of these messages that are bounces of the mailbox's own mail, and stores their effects, within the
/// caller's transaction.
pub(super) async fn tell(
    connection: &mut PgConnection,
    app: AppId,
    mailbox: &Mailbox,
    messages: &[Received],
    now: DateTime<Utc>,
) -> Result<ToldBounces, sqlx::Error> {
    let named: Vec<(&Received, &Bounce)> = messages
        .iter()
        .filter_map(|received| Some((received, received.bounce.as_ref()?)))
        .collect();
    if named.is_empty() {
        return Ok(ToldBounces::default());
    }
    let originals = originals(connection, mailbox, &named).await?;
    let found: Vec<Found<'_>> = named
        .iter()
        .flat_map(|(received, bounce)| found(received, bounce, &originals))
        .collect();
    if found.is_empty() || !bounces::lock_mailbox(connection, app, mailbox.id).await? {
        return Ok(ToldBounces::default());
    }
    let wanted: Vec<NewBounce> = found.iter().map(|found| found.bounce.clone()).collect();
    let fresh = bounces::insert(connection, mailbox.id, &wanted, now, MOST).await?;
    let mut by_key: HashMap<&[u8], &Found<'_>> = HashMap::new();
    for one in &found {
        // Of several with one key, the first was stored.
        by_key.entry(&one.bounce.key).or_insert(one);
    }
    let fresh: Vec<&Found<'_>> = fresh
        .iter()
        .filter_map(|key| by_key.get(key.as_slice()).copied())
        .collect();

    let emissions: Vec<Emission> = (fresh.iter())
        .map(|found| found.emission(app, mailbox, now))
        .collect();
    webhook_messages::emit(connection, &emissions, now).await?;
    let final_ones = || {
        let fresh = fresh.iter();
        fresh.filter(|found| found.bounce.bounce_type == BounceType::Permanent)
    };
    let suppressed: Vec<(String, LogId)> = final_ones()
        .filter(|found| found.original.recipient(&found.bounce.recipient).is_some())
        .map(|found| {
            let address = comparison_key(&found.bounce.recipient);
            (address, found.bounce.log)
        })
        .collect();
    if !suppressed.is_empty() {
        suppressions::note(connection, app, &suppressed, now).await?;
    }
    let bounced: BTreeSet<LogId> = final_ones().map(|found| found.bounce.log).collect();
    let bounced: Vec<LogId> = bounced.into_iter().collect();
    bounced_messages::mark(connection, &bounced).await?;

    let mut told = ToldBounces::default();
    for found in fresh {
        *told.0.entry(found.bounce.bounce_type).or_default() += 1;
    }
    Ok(told)
}

impl Mailboxes {
    /// Marks the messages that had bounced before the log showed them as sent. Any number of replicas may call it.
    pub async fn mark_bounced(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let sent = bounced_messages::sent_meanwhile(&mut connection, BATCH).await?;
        bounced_messages::mark(&mut connection, &sent).await
    }
}

#[cfg(test)]
mod tests;
